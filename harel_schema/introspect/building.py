"""The rows of the PRAGMAs and the text of the statements to a `Schema`. Pure."""

from __future__ import annotations

from collections import defaultdict
from itertools import chain
from typing import TYPE_CHECKING, Any, TypeAlias

from harel_schema.introspect.ddl import (
    ColumnText,
    TableText,
    after_name,
    index_text,
    table_text,
    trigger_body,
)
from harel_schema.introspect.model import (
    Check,
    Column,
    ForeignKey,
    Generated,
    Index,
    Key,
    Schema,
    Table,
    Term,
    Trigger,
    View,
    VirtualTable,
    affinity,
)
from harel_schema.introspect.tokens import canonical, fold, tokenize, unwrap

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

__all__ = ["Builder", "Row", "Rows"]

Row: TypeAlias = tuple[Any, ...]
Rows: TypeAlias = list[Row]

_ROWID_NAMES = ("rowid", "oid", "_rowid_")
_STORED = 3
_LITERALS = ("null", "true", "false", "current_date", "current_time", "current_timestamp")


def _by_name(thing: Table | View | VirtualTable | Trigger | Index) -> str:
    return fold(thing.name)


def _grouped(rows: Iterable[Row]) -> dict[str, Rows]:
    """Rows by their first cell, without it."""
    groups: dict[str, Rows] = defaultdict(list)
    for row in rows:
        groups[row[0]].append(row[1:])
    return groups


class Builder:
    """Joins the rows of the PRAGMAs with the text of the statements."""

    def __init__(
        self, master: Rows, tables: Rows, columns: Rows, indexes: Rows, foreign_keys: Rows
    ) -> None:
        self.master = master
        self.sql = {(kind, name): sql or "" for kind, name, _, _, sql in master}
        self.flags = {name: (kind, bool(wr), bool(strict)) for name, kind, wr, strict in tables}
        self.columns = _grouped(columns)
        self.indexes = _grouped(indexes)
        self.foreign_keys = _grouped(foreign_keys)
        self.names = frozenset(fold(row[1]) for row in chain(master, columns)) | {
            "new",
            "old",
            "excluded",
            *_ROWID_NAMES,
        }

    def schema(self, prefix: str | None, versions: Rows | None) -> Schema:
        """Return all of it; `versions` are the rows of the version table, None without one."""
        triggers = self._triggers()
        views = [
            View(name=name, body=canonical(after_name(sql), self.names), sql=sql)
            for kind, name, _, _, sql in self.master
            if kind == "view"
        ]
        tables = [
            self._table(name, triggers)
            for kind, name, _, root, _ in self.master
            if kind == "table" and root
        ]
        virtual = [
            _virtual_table(name, sql)
            for kind, name, _, root, sql in self.master
            if kind == "table" and not root
        ]
        return Schema(
            tables=tuple(sorted(tables, key=_by_name)),
            views=tuple(sorted(views, key=_by_name)),
            virtual_tables=tuple(sorted(virtual, key=_by_name)),
            view_triggers=tuple(t for view in views for t in triggers.get(fold(view.name), ())),
            prefix=prefix,
            versions=None if versions is None else tuple(str(row[0]) for row in versions),
        )

    def _triggers(self) -> dict[str, list[Trigger]]:
        found: dict[str, list[Trigger]] = defaultdict(list)
        for kind, name, table, _, sql in sorted(self.master, key=lambda row: fold(row[1])):
            if kind == "trigger":
                body = trigger_body(after_name(sql), self.names)
                found[fold(table)].append(Trigger(name=name, table=table, body=body, sql=sql))
        return found

    def _table(self, name: str, triggers: Mapping[str, Sequence[Trigger]]) -> Table:
        sql = self.sql["table", name]
        text = table_text(sql)
        rows = self.columns[name]
        names = frozenset(fold(row[0]) for row in rows) | {fold(name), *_ROWID_NAMES}
        kind, without_rowid, strict = self.flags.get(name, ("table", False, False))
        primary, uniques, indexes = self._keys(name, text, names)
        return Table(
            name=name,
            columns=tuple(_column(row, text, names) for row in rows),
            primary_key=primary or _rowid_key(rows, text),
            rowid_alias=None if primary else next((row[0] for row in rows if row[4]), None),
            autoincrement=text.autoincrement,
            without_rowid=without_rowid,
            strict=strict,
            uniques=uniques,
            checks=_checks(text, names),
            foreign_keys=self._foreign_keys(name, text),
            indexes=indexes,
            triggers=tuple(triggers.get(fold(name), ())),
            shadow=kind == "shadow",
            sql=sql,
        )

    def _keys(
        self, table: str, text: TableText, names: frozenset[str]
    ) -> tuple[Key | None, tuple[Key, ...], tuple[Index, ...]]:
        primary, uniques, indexes = None, [], []
        for name, rows in _grouped(self.indexes[table]).items():
            origin = rows[0][1]
            if origin == "c":
                indexes.append(_index(name, table, self.sql["index", name], rows, names))
                continue
            key = Key(terms=tuple(_term(fold(row[3]), row) for row in rows))
            if origin == "pk":
                primary = key.model_copy(update={"conflict": text.primary_conflict})
            else:
                conflict = text.conflicts.get(tuple(term.text for term in key.terms))
                uniques.append(key.model_copy(update={"conflict": conflict}))
        return primary, tuple(sorted(uniques, key=str)), tuple(sorted(indexes, key=_by_name))

    def _foreign_keys(self, table: str, text: TableText) -> tuple[ForeignKey, ...]:
        groups = _grouped(self.foreign_keys[table])
        # The PRAGMA counts from the last foreign key of the text to the first.
        deferred = dict(zip(groups, reversed(text.deferred), strict=False))
        keys = []
        for number, rows in groups.items():
            parent, _, _, on_update, on_delete = rows[0]
            to = [row[2] for row in rows]
            if None in to:
                to = self._primary_columns(parent)
            keys.append(
                ForeignKey(
                    columns=tuple(fold(row[1]) for row in rows),
                    parent=fold(parent),
                    parent_columns=tuple(map(fold, to)),
                    on_update=on_update,
                    on_delete=on_delete,
                    deferred=deferred.get(number, False),
                )
            )
        return tuple(sorted(keys, key=str))

    def _primary_columns(self, table: str) -> list[str]:
        named = next((name for name in self.columns if fold(name) == fold(table)), "")
        rows = self.columns.get(named, [])
        return [row[0] for row in sorted(rows, key=lambda row: row[4]) if row[4]]


def _column(row: Row, text: TableText, names: frozenset[str]) -> Column:
    name, declared, not_null, default, _, hidden = row
    clauses = text.columns.get(fold(name), ColumnText())
    generated = None
    if clauses.generated is not None:
        expression = canonical(unwrap(clauses.generated), names)
        generated = Generated(expression=expression, stored=hidden == _STORED)
    return Column(
        name=name,
        type=canonical(tokenize(declared)).upper(),
        affinity=affinity(declared),
        not_null=bool(not_null),
        not_null_conflict=clauses.not_null_conflict if not_null else None,
        default=None if default is None else _default(default),
        collation=clauses.collation,
        generated=generated,
        hidden=hidden,
    )


def _default(text: str) -> str:
    tokens = unwrap(tokenize(text))
    zero = len(tokens) == 2 and tokens[1].text in ("0", "0.0")  # noqa: PLR2004 - sign and zero
    if len(tokens) > 1 and (tokens[0].text == "+" or (zero and tokens[0].text == "-")):
        # SQLite stores no negative zero.
        tokens = tokens[1:]
    if len(tokens) == 1 and tokens[0].kind in ("word", "quoted"):
        # A lone name is a string, in its own case of letters.
        name = text.strip("() \t\r\n") if tokens[0].kind == "word" else tokens[0].text
        if tokens[0].kind == "quoted" or tokens[0].text not in _LITERALS:
            return "'" + name.replace("'", "''") + "'"
    return canonical(tokens, ())


def _rowid_key(rows: Rows, text: TableText) -> Key | None:
    names = [row[0] for row in rows if row[4]]
    if not names:
        return None
    terms = tuple(Term(text=fold(name)) for name in names)
    return Key(terms=terms, conflict=text.primary_conflict)


def _checks(text: TableText, names: frozenset[str]) -> tuple[Check, ...]:
    checks = (
        Check(expression=canonical(unwrap(expression), names), name=name)
        for name, expression in text.checks
    )
    return tuple(sorted(checks, key=str))


def _term(text: str, row: Row) -> Term:
    return Term(text=text, desc=bool(row[4]), collation=fold(row[5]).upper())


def _index(name: str, table: str, sql: str, rows: Rows, names: frozenset[str]) -> Index:
    text = index_text(sql)
    terms = [
        _term(fold(row[3]) if row[3] is not None else canonical(unwrap(tokens), names), row)
        for row, tokens in zip(rows, text.terms, strict=False)
    ]
    return Index(
        name=name,
        table=table,
        terms=tuple(terms),
        unique=bool(rows[0][0]),
        where=None if text.where is None else canonical(unwrap(text.where), names),
        sql=sql,
    )


def _virtual_table(name: str, sql: str) -> VirtualTable:
    tokens = after_name(sql)
    module = tokens[1].text if len(tokens) > 1 else ""
    return VirtualTable(name=name, module=fold(module), body=canonical(tokens), sql=sql)
