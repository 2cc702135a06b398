"""How a table's rows are named, ordered and written: one `Layout` a table, and its SQL. Pure.

Rows are read in the order of a key, so that reading can go on after any row (keyset) and two
databases can be compared side by side. The key is the primary key. Where a table has none, or
holds NULL in it, which SQLite allows, the key is the rowid; then the rowid is a column of the row.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, NamedTuple

from harel_schema import rows
from harel_schema.errors import TransferError
from harel_schema.introspect import fold, quote

if TYPE_CHECKING:
    from collections.abc import Sequence

    from harel_schema.introspect import Table, Term
    from harel_schema.rows import Row, SortKey, Value

__all__ = [
    "SEQUENCES",
    "Layout",
    "Query",
    "Scan",
    "joined",
    "layout",
    "null_key",
    "nullable_key",
    "sequences",
]

SEQUENCES = "sqlite_sequence"
_ROWID_NAMES = ("rowid", "_rowid_", "oid")
_COLLATIONS = ("BINARY", "NOCASE", "RTRIM")


class Query(NamedTuple):
    """A statement and the values of its parameters."""

    sql: str
    args: tuple[Value, ...] = ()


@dataclass(frozen=True, slots=True)
class Layout:
    """The columns of a table that are copied and compared, in order, and its key.

    `columns` leaves generated columns out, and begins with the rowid's name where rowids are
    kept. `key` holds positions in `columns`; `terms` the SQL of each of them, with a COLLATE
    where the key's collation is not the column's; `collations` the key's collations.
    `where` is SQL that every statement is narrowed by, "" for the whole table. `seekable` says
    that the rows after a key are found by an index, without sorting the table. `rowid_name` is a
    name of the rowid, None where there is none.
    """

    name: str
    columns: tuple[str, ...]
    key: tuple[int, ...]
    terms: tuple[str, ...]
    collations: tuple[str, ...]
    where: str = field(default="", kw_only=True)
    seekable: bool = field(default=True, kw_only=True, compare=False)
    rowid_name: str | None = field(default=None, kw_only=True, compare=False)

    def key_of(self, row: Row) -> Row:
        """Return the key of `row`."""
        return tuple([row[position] for position in self.key])

    def order(self, key: Row) -> SortKey:
        """Return what orders `key` among the keys of this table, as the database orders them."""
        return rows.sort_key(key, self.collations)

    def describe(self, key: Row) -> str:
        """Return ``column=value, …`` for people to read."""
        names = (self.columns[position] for position in self.key)
        return ", ".join(f"{name}={value!r}" for name, value in zip(names, key, strict=True))

    def _between(self, lower: Row | None, upper: Row | None) -> Query:
        terms = [self.where] if self.where else []
        args: list[Value] = []
        for sign, key in ((">", lower), ("<=", upper)):
            if key is not None:
                terms.append(f"{_tuple(self.terms)} {sign} {_tuple(list(map(_mark, key)))}")
                args += _args(key)
        return Query(f" WHERE {' AND '.join(terms)}" if terms else "", tuple(args))

    def select(
        self, lower: Row | None = None, *, raw: bool = False, limit: int | None = None
    ) -> Query:
        """Read the rows after key `lower`, in the order of the key, `limit` of them at most.

        `raw` reads text that may not be UTF-8: the cells with text as blobs, then for each cell
        whether it is text.
        """
        clause, args = self._between(lower, None)
        cells = list(map(quote, self.columns))
        if raw:
            is_text = [f"typeof({cell}) = 'text'" for cell in cells]
            cells = [
                f"iif({t}, CAST({c} AS BLOB), {c})" for t, c in zip(is_text, cells, strict=True)
            ]
            cells += is_text
        order = ", ".join(self.terms)
        sql = f"SELECT {', '.join(cells)} FROM {quote(self.name)}{clause} ORDER BY {order}"  # noqa: S608
        return Query(sql if limit is None else f"{sql} LIMIT {limit}", args)

    def rowid(self, key: Row) -> Query | None:
        """Look up the rowid of the row with `key`; None where there is none."""
        if self.rowid_name is None:
            return None
        tests = " AND ".join(
            f"{term} IS {_mark(cell)}" for term, cell in zip(self.terms, key, strict=True)
        )
        sql = f"SELECT {quote(self.rowid_name)} FROM {quote(self.name)} WHERE {tests}"  # noqa: S608
        return Query(sql, _args(key))

    def count(self) -> Query:
        """Count the rows."""
        clause, args = self._between(None, None)
        return Query(f"SELECT count(*) FROM {quote(self.name)}{clause}", args)  # noqa: S608

    def aggregates(self) -> tuple[Query, tuple[str, ...]]:
        """Ask for cheap sums over the table, and name each of them; the first is the count."""
        cells = [(column, quote(column)) for column in self.columns]
        sums = [("count", "count(*)")]
        sums += [(f"least key, {term}", f"min({term})") for term in self.terms]
        sums += [(f"greatest key, {term}", f"max({term})") for term in self.terms]
        sums += [(f"bytes of {n}", f"total(length(CAST({c} AS BLOB)))") for n, c in cells]
        sums += [
            (f"{kind} cells of {name}", f"count(*) FILTER (WHERE typeof({cell}) = '{kind}')")
            for name, cell in cells
            for kind in ("null", "integer", "real", "text", "blob")
        ]
        wanted = ", ".join(sql for _, sql in sums)
        clause, args = self._between(None, None)
        query = Query(f"SELECT {wanted} FROM {quote(self.name)}{clause}", args)  # noqa: S608
        return query, tuple(name for name, _ in sums)

    def delete(self, lower: Row | None = None, upper: Row | None = None) -> Query:
        """Delete the rows after key `lower` up to and with key `upper`."""
        clause, args = self._between(lower, upper)
        return Query(f"DELETE FROM {quote(self.name)}{clause}", args)  # noqa: S608

    def insert(self, count: int = 1, *, keep_existing: bool = False) -> str:
        """Return the INSERT of `count` rows; `keep_existing` skips a key that is there."""
        names = ", ".join(map(quote, self.columns))
        marks = f"({', '.join('?' * len(self.columns))})"
        tail = f" ON CONFLICT ({', '.join(self.terms)}) DO NOTHING" if keep_existing else ""
        values = ", ".join([marks] * count)
        return f"INSERT INTO {quote(self.name)} ({names}) VALUES {values}{tail}"  # noqa: S608


@dataclass(frozen=True, slots=True)
class Scan:
    """What is to be read of a table: the rows after key `lower`; `raw` as in `Layout.select`."""

    layout: Layout
    lower: Row | None = None
    raw: bool = False

    def query(self, limit: int | None = None) -> Query:
        """Read the first `limit` of the rows, or all."""
        return self.layout.select(self.lower, raw=self.raw, limit=limit)

    def after(self, row: Row) -> Scan:
        """Return what is left when `row` was read."""
        return replace(self, lower=self.layout.key_of(joined(row) if self.raw else row))


def joined(row: Row) -> Row:
    """Return the cells of a row that was selected raw."""
    half = len(row) // 2
    return tuple(
        rows.text(cell) if is_text and isinstance(cell, bytes) else cell
        for cell, is_text in zip(row[:half], row[half:], strict=True)
    )


def _tuple(terms: Sequence[str]) -> str:
    return terms[0] if len(terms) == 1 else f"({', '.join(terms)})"


def _mark(value: Value) -> str:
    return "CAST(? AS TEXT)" if isinstance(value, rows.RawText) else "?"


def _args(key: Row) -> Row:
    return tuple(cell.data if isinstance(cell, rows.RawText) else cell for cell in key)


def layout(table: Table, *, null_keys: bool = False) -> Layout:
    """Return the layout of `table`.

    `null_keys` says that its primary key holds NULL somewhere, so that the rowid must do.
    Raises `TransferError` for a table whose rows cannot be told apart or ordered.
    """
    stored = tuple(column.name for column in table.columns if column.hidden == 0)
    if table.rowid_alias is not None:
        alias = table.rowid_alias
        return _by_number(table.name, stored, alias)
    rowid = _rowid(table)
    if table.primary_key is None or null_keys:
        if rowid is None:
            raise TransferError(
                f"{table.name} has no key, and columns that hide its rowid under every name",
                remedy="give it a primary key",
            )
        return _by_number(table.name, (rowid, *stored), rowid)
    key = table.primary_key.terms
    collations = tuple(term.collation for term in key)
    strange = next((name for name in collations if name not in _COLLATIONS), None)
    if strange is not None:
        raise TransferError(
            f"the key of {table.name} is ordered by the collation {strange}, "
            "which is not one of SQLite's own",
            remedy="copy without this table",
        )
    positions = {fold(name): position for position, name in enumerate(stored)}
    terms = tuple(_term(table, term) for term in key)
    return Layout(
        table.name,
        stored,
        tuple(positions[term.text] for term in key),
        terms,
        collations,
        seekable=not any(term.desc for term in key),
        rowid_name=rowid,
    )


def _by_number(table: str, columns: tuple[str, ...], rowid: str) -> Layout:
    key = columns.index(rowid)
    return Layout(table, columns, (key,), (quote(rowid),), ("BINARY",), rowid_name=rowid)


def _term(table: Table, term: Term) -> str:
    column = table.by_name[term.text]
    if column.collation == term.collation:
        return quote(column.name)
    return f"{quote(column.name)} COLLATE {term.collation}"


def _rowid(table: Table) -> str | None:
    """Return a name of the rowid that no column has taken; None where there is none."""
    taken = {fold(column.name) for column in table.columns}
    names = () if table.without_rowid else _ROWID_NAMES
    return next((name for name in names if name not in taken), None)


def nullable_key(table: Table) -> bool:
    """Return whether the primary key of `table` may hold NULL, which makes it no key."""
    if table.primary_key is None or table.rowid_alias is not None or table.without_rowid:
        return False
    return any(not table.by_name[term.text].not_null for term in table.primary_key.terms)


def null_key(table: Table) -> Query:
    """Ask whether a NULL is in the primary key of `table`; for a `nullable_key` only."""
    terms = table.primary_key.terms if table.primary_key else ()
    names = (quote(table.by_name[term.text].name) for term in terms)
    holds = " OR ".join(f"{name} IS NULL" for name in names)
    return Query(f"SELECT EXISTS (SELECT 1 FROM {quote(table.name)} WHERE {holds})")  # noqa: S608


def sequences(tables: Sequence[Table]) -> Layout | None:
    """Return the layout of the sequence rows of `tables`; None if none has AUTOINCREMENT."""
    names = [table.name for table in tables if table.autoincrement]
    if not names:
        return None
    listed = ", ".join("'" + name.replace("'", "''") + "'" for name in names)
    return Layout(
        SEQUENCES, ("name", "seq"), (0,), ("name",), ("BINARY",), where=f"name IN ({listed})"
    )
