"""Full-text indexes (FTS5), as far as a copy can bring them over.

One that keeps its own rows is copied row by row, as a table whose key is the rowid: that indexes
them anew. One over the rows of another table (`content=`) is made empty and rebuilt at the end.
One without rows (`content=''`) cannot be read, and other virtual tables keep what they have in
their own way: those are refused by name.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from harel_schema.errors import TransferError
from harel_schema.introspect import Column, Table, fold, quote
from harel_schema.introspect.tokens import tokenize
from harel_schema.transfer.layout import Query

if TYPE_CHECKING:
    from collections.abc import Sequence

    from harel_schema.introspect import Schema, VirtualTable
    from harel_schema.rows import Value
    from harel_schema.target import Target
    from harel_schema.transfer.database import Database

__all__ = ["FullText", "as_tables", "check_copyable", "full_text"]


@dataclass(frozen=True, slots=True)
class FullText:
    """An index: its columns, whether its rows are another table's, and its own settings."""

    table: VirtualTable
    columns: tuple[str, ...]
    external: bool
    settings: tuple[tuple[str, Value], ...]

    @property
    def name(self) -> str:
        """Its name."""
        return self.table.name

    def complete(self) -> list[Query]:
        """Build it from the other table's rows, and set it up as the source's is."""
        name = quote(self.name)
        work = [Query(f"INSERT INTO {name} ({name}) VALUES ('rebuild')")] if self.external else []  # noqa: S608
        insert = f"INSERT INTO {name} ({name}, rank) VALUES (?, ?)"  # noqa: S608
        return work + [Query(insert, setting) for setting in self.settings]


def full_text(database: Database, schema: Schema) -> tuple[FullText, ...]:
    """Return the indexes of a database that can be copied."""
    found = [(each, _content(each)) for each in schema.virtual_tables if each.module == "fts5"]
    found = [(each, content) for each, content in found if content != ""]
    answers = database.survey([query for each, _ in found for query in _questions(each)])
    pairs = zip(answers[::2], answers[1::2], strict=True)
    return tuple(
        FullText(each, tuple(name for (name,) in columns), content is not None, tuple(settings))
        for (each, content), (columns, settings) in zip(found, pairs, strict=True)
    )


def _content(table: VirtualTable) -> str | None:
    """Return what the option ``content`` names, None without it."""
    tokens = tokenize(table.sql)
    for at, token in enumerate(tokens[:-2]):
        if fold(token.text) == "content" and tokens[at + 1].text == "=":
            return tokens[at + 2].text.strip("'")
    return None


def _questions(table: VirtualTable) -> Sequence[Query]:
    columns = "SELECT name FROM pragma_table_xinfo(?) WHERE hidden = 0"
    config = quote(f"{table.name}_config")
    settings = f"SELECT k, v FROM {config} WHERE k <> 'version' ORDER BY k"  # noqa: S608
    return Query(columns, (table.name,)), Query(settings)


def check_copyable(source: Target, schema: Schema, found: Sequence[FullText]) -> None:
    """Raise `TransferError` for virtual tables that are not among `found`."""
    known = {each.name for each in found}
    others = [table.name for table in schema.virtual_tables if table.name not in known]
    if others:
        raise TransferError(
            f"{source} holds virtual tables whose rows cannot be copied: {', '.join(others)}",
            remedy="copy without --all-tables, or drop them and make them anew in the copy",
        )


def as_tables(schema: Schema, found: Sequence[FullText]) -> Schema:
    """Return `schema` with the indexes that keep their own rows as tables, of kind `shadow`.

    They stay among its virtual tables, as which they are compared.
    """
    made = tuple(
        Table(
            name=each.name,
            columns=tuple(Column(name=name, type="", affinity="BLOB") for name in each.columns),
            shadow=True,
            sql=each.table.sql,
        )
        for each in found
        if not each.external
    )
    return schema.model_copy(update={"tables": (*schema.tables, *made)}) if made else schema
