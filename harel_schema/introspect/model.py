"""What a database's schema is, as frozen values.

Two values are equal when SQLite behaves the same by them. What is kept only to be shown or to
write a remedy (`sql`, the name of a constraint that nothing ever reports) does not take part in
`facts()`, by which `harel_schema.drift` compares.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

from pydantic import BaseModel, ConfigDict

from harel_schema.introspect.tokens import fold, quote

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Self

__all__ = [
    "Affinity",
    "Check",
    "Column",
    "ForeignKey",
    "Generated",
    "Index",
    "Key",
    "Schema",
    "Table",
    "Term",
    "Trigger",
    "View",
    "VirtualTable",
    "affinity",
]

Affinity = Literal["TEXT", "NUMERIC", "INTEGER", "REAL", "BLOB"]


class _Value(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", ignored_types=(cached_property,))

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """Return a changed copy, without what was computed from the fields before."""
        copied = super().model_copy(update=update, deep=deep)
        for name in vars(copied).keys() - type(self).model_fields.keys():
            del vars(copied)[name]
        return copied


class Generated(_Value):
    """A generated column: its expression, and whether it is stored."""

    expression: str
    stored: bool


class Column(_Value):
    """A column of a table.

    `type` is the declared type in upper case, "" without one. `default` and the conflict clause
    of NOT NULL are None where the statement names none. `hidden` is `PRAGMA table_xinfo`'s
    number: 0, 2 (generated, virtual) or 3 (generated, stored).
    """

    name: str
    type: str
    affinity: Affinity
    not_null: bool = False
    not_null_conflict: str | None = None
    default: str | None = None
    collation: str = "BINARY"
    generated: Generated | None = None
    hidden: int = 0


class Term(_Value):
    """A column of a key or an index: a folded name or an expression, order and collation."""

    text: str
    desc: bool = False
    collation: str = "BINARY"

    def __str__(self) -> str:
        collate = "" if self.collation == "BINARY" else f" COLLATE {self.collation}"
        return f"{self.text}{collate}{' DESC' if self.desc else ''}"


class Key(_Value):
    """A PRIMARY KEY or UNIQUE constraint; `conflict` is its ON CONFLICT where it is not ABORT."""

    terms: tuple[Term, ...]
    conflict: str | None = None

    def __str__(self) -> str:
        conflict = f" ON CONFLICT {self.conflict}" if self.conflict else ""
        return f"({', '.join(map(str, self.terms))}){conflict}"


class Check(_Value):
    """A CHECK constraint. Its name counts, because SQLite names it when the check fails."""

    expression: str
    name: str | None = None

    def __str__(self) -> str:
        return f"{f'CONSTRAINT {quote(self.name)} ' if self.name else ''}CHECK ({self.expression})"


class ForeignKey(_Value):
    """A foreign key; without `parent_columns` it means a primary key that is not in the schema."""

    columns: tuple[str, ...]
    parent: str
    parent_columns: tuple[str, ...] = ()
    on_update: str = "NO ACTION"
    on_delete: str = "NO ACTION"
    deferred: bool = False

    def __str__(self) -> str:
        text = f"({', '.join(self.columns)}) REFERENCES {quote(self.parent)}"
        if self.parent_columns:
            text += f" ({', '.join(self.parent_columns)})"
        for event, action in (("UPDATE", self.on_update), ("DELETE", self.on_delete)):
            if action != "NO ACTION":
                text += f" ON {event} {action}"
        return text + (" DEFERRABLE INITIALLY DEFERRED" if self.deferred else "")


class Index(_Value):
    """An index made by CREATE INDEX; `where` is the condition of a partial one."""

    name: str
    table: str
    terms: tuple[Term, ...]
    unique: bool = False
    where: str | None = None
    sql: str = ""


class Trigger(_Value):
    """A trigger on a table or a view; `body` is the canonical text after its name."""

    name: str
    table: str
    body: str
    sql: str = ""


class View(_Value):
    """A view; `body` is the canonical text after its name."""

    name: str
    body: str
    sql: str = ""


class VirtualTable(_Value):
    """A virtual table; `body` is the canonical text after its name (USING module …)."""

    name: str
    module: str
    body: str
    sql: str = ""


class Table(_Value):
    """An ordinary table with all that hangs on it.

    `rowid_alias` is the column that is the rowid (INTEGER PRIMARY KEY), None without one.
    `shadow` is True for the storage of a virtual table.
    """

    name: str
    columns: tuple[Column, ...]
    primary_key: Key | None = None
    rowid_alias: str | None = None
    autoincrement: bool = False
    without_rowid: bool = False
    strict: bool = False
    uniques: tuple[Key, ...] = ()
    checks: tuple[Check, ...] = ()
    foreign_keys: tuple[ForeignKey, ...] = ()
    indexes: tuple[Index, ...] = ()
    triggers: tuple[Trigger, ...] = ()
    shadow: bool = False
    sql: str = ""

    @cached_property
    def by_name(self) -> dict[str, Column]:
        """The columns by folded name."""
        return {fold(column.name): column for column in self.columns}


class Schema(_Value):
    """A whole database, each kind sorted by folded name.

    `versions` holds the rows of `{prefix}_alembic_version`; None when there is no such table or
    no prefix was named. `view_triggers` are the INSTEAD OF triggers.
    """

    tables: tuple[Table, ...] = ()
    views: tuple[View, ...] = ()
    virtual_tables: tuple[VirtualTable, ...] = ()
    view_triggers: tuple[Trigger, ...] = ()
    prefix: str | None = None
    versions: tuple[str, ...] | None = None

    @cached_property
    def by_name(self) -> dict[str, Table]:
        """The tables by folded name."""
        return {fold(table.name): table for table in self.tables}

    def table(self, name: str) -> Table | None:
        """The table of that name, in any case of letters, or None."""
        return self.by_name.get(fold(name))


def affinity(declared: str) -> Affinity:
    """The affinity of a declared type (https://sqlite.org/datatype3.html, 3.1)."""
    text = fold(declared)
    if "int" in text:
        return "INTEGER"
    if any(part in text for part in ("char", "clob", "text")):
        return "TEXT"
    if not text or "blob" in text:
        return "BLOB"
    if any(part in text for part in ("real", "floa", "doub")):
        return "REAL"
    return "NUMERIC"
