"""What would make a copy wrong is found here, before its first write."""

from __future__ import annotations

import shutil
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from harel_schema import rows
from harel_schema.errors import DatabaseError, TransferError
from harel_schema.introspect import quote
from harel_schema.rows import RawText
from harel_schema.transfer.access import number, patiently
from harel_schema.transfer.layout import (
    Layout,
    Query,
    joined,
    layout,
    null_key,
    nullable_key,
    sequences,
)
from harel_schema.transfer.progress import Tally
from harel_schema.transfer.reading import TableReader

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from harel_schema.introspect import Table
    from harel_schema.rows import Row
    from harel_schema.target import Target
    from harel_schema.transfer.access import Database
    from harel_schema.transfer.progress import Meter

__all__ = ["Size", "check_pair", "check_rows", "check_sound", "check_space", "layouts"]

SERVER_ROW_LIMIT = 5_000_000
"""The largest record of a server in bytes (SQLITE_LIMIT_LENGTH of sqld 0.24.32)."""

_NAMED = 10
_ROOM = 1.3


@dataclass(frozen=True, slots=True)
class Size:
    """Rows of a table, and their canonical bytes, None where they were not read."""

    rows: int
    bytes: int | None


def check_pair(source: Target, dest: Target) -> None:
    """Refuse databases that cannot be the two ends of a copy, before either is opened.

    Raises `TargetError` for one that cannot be read or written, `TransferError` for a database
    in memory and for one that is both.
    """
    for target in (source, dest):
        if target.kind == "memory":
            raise TransferError(
                f"{target} ends with this process", remedy="name a file or a server"
            )
    source.check_readable()
    dest.check_writable()
    if same(source, dest):
        raise TransferError(f"{source} and {dest} are the same database", remedy="name another one")


def same(a: Target, b: Target) -> bool:
    """Return whether two targets name one database: one URL, or one file under any path."""
    if a.path is None or b.path is None:
        return a.url == b.url
    return b.path.exists() and a.path.samefile(b.path)


def check_sound(database: Database, tables: Iterable[Table]) -> None:
    """Refuse a damaged database, and one whose text is stored as UTF-16.

    Raises `TransferError`, or what reading a damaged file raises.
    """
    target = database.target
    try:
        lines = [str(line) for (line,) in database.query(Query("PRAGMA quick_check"))]
    except DatabaseError as exc:
        if exc.code != "SQLITE_CORRUPT":
            raise
        lines = [exc.message]
    mistaken = {"ok", *_mistaken(database, tables, lines)}
    damage = next((" ".join(line.split()) for line in lines if line not in mistaken), None)
    if damage is not None:
        raise TransferError(
            f"{target} is damaged: {damage}",
            remedy="restore it from a backup, or try sqlite3's .recover",
        )
    ((encoding,),) = database.query(Query("PRAGMA encoding"))
    if encoding != "UTF-8":
        raise TransferError(
            f"{target} stores its text as {encoding}, in another order than UTF-8",
            remedy="make a UTF-8 file of it with sqlite3's .dump first",
        )


def _mistaken(database: Database, tables: Iterable[Table], lines: list[str]) -> Iterator[str]:
    """Yield the lines that speak of a NULL where there is none.

    SQLite 3.40's check takes the columns of a WITHOUT ROWID table in the wrong order.
    """
    for table in tables:
        for column in table.columns:
            line = f"NULL value in {table.name}.{column.name}"
            if line in lines:
                name = quote(column.name)
                sql = f"SELECT count(*) FROM {quote(table.name)} WHERE typeof({name}) = 'null'"  # noqa: S608
                if number(database, Query(sql)) == 0:
                    yield line


def check_space(dest: Target, needed: int) -> None:
    """Refuse a file for which the disk has no room; `needed` is in bytes."""
    if dest.path is None:
        return
    free = shutil.disk_usage(dest.path.parent).free
    if free < needed * _ROOM:
        raise TransferError(
            f"{dest} needs about {needed * _ROOM / 1e6:,.0f} MB, and its disk has "
            f"{free / 1e6:,.0f} MB free",
            remedy="free some disk space",
        )


def layouts(tables: Iterable[Table], *databases: Database) -> list[Layout]:
    """Return how the rows of `tables` are read, alike in all `databases`, sequence rows first."""
    tables = list(tables)
    found = [
        layout(
            table,
            null_keys=nullable_key(table) and any(_has_null(db, table) for db in databases),
        )
        for table in tables
    ]
    counters = sequences(tables)
    return [counters, *found] if counters is not None else found


def _has_null(database: Database, table: Table) -> bool:
    return bool(database.query(null_key(table))[0][0])


class _Findings:
    """The rows that the copy could not bring over: how many, and where the first ones are."""

    def __init__(self, what: str, remedy: str) -> None:
        self._what = what
        self._remedy = remedy
        self._places: list[str] = []
        self._count = 0

    def add(self, places: Iterable[str]) -> None:
        for place in places:
            self._count += 1
            if self._count <= _NAMED:
                self._places.append(place)

    def refuse(self, target: Target) -> None:
        if self._count == 0:
            return
        more = f"; and {self._count - _NAMED:,} more" if self._count > _NAMED else ""
        places = "; ".join(self._places)
        raise TransferError(f"{target} {self._what}: {places}{more}", remedy=self._remedy)


def check_rows(
    source: Database,
    tables: Sequence[Layout],
    *,
    to_server: bool,
    meter: Meter,
) -> dict[str, Size]:
    """Read every row of the source once, and return the size of each table.

    Of a server, only the rows are read whose text may not be UTF-8. Raises
    `TransferError` naming rows that the copy could not bring over.
    """
    if source.remote:
        return patiently(lambda: _check_rows_of_server(source, tables))
    bad_text, too_large = (
        _bad_text(),
        _Findings(
            f"holds rows over the server's limit of {SERVER_ROW_LIMIT:,} bytes",
            "shorten or delete these rows",
        ),
    )
    sizes: dict[str, Size] = {}
    for table, found in TableReader(source, tables).tables():
        tally = Tally(table.name, meter)
        for row in found:
            size = rows.size(row)
            bad_text.add(_bad_cells(source, table, row))
            if to_server and size > SERVER_ROW_LIMIT:
                too_large.add(_too_large(source, table, row))
            tally.add(size)
        tally.tell()
        sizes[table.name] = Size(tally.rows, tally.size)
    bad_text.refuse(source.target)
    too_large.refuse(source.target)
    return sizes


def _check_rows_of_server(source: Database, tables: Sequence[Layout]) -> dict[str, Size]:
    bad_text = _bad_text()
    bad_text.add(_bad_text_of_server(source, tables))
    bad_text.refuse(source.target)
    counts = source.stream([table.count() for table in tables])
    return {tables[position].name: Size(count, None) for position, (count,) in counts}


def _bad_text() -> _Findings:
    return _Findings("holds text that is not UTF-8", "repair or delete these rows")


def _too_large(source: Database, table: Layout, row: Row) -> Iterator[str]:
    record = rows.record_size(row)
    if record > SERVER_ROW_LIMIT:
        yield f"{table.name} {_place(source, table, row)} ({record:,} bytes)"


def _bad_text_of_server(source: Database, tables: Sequence[Layout]) -> Iterator[str]:
    suspicious = list(map(_suspicious, tables))
    for position, row in source.stream([table.select(raw=True) for table in suspicious]):
        yield from _bad_cells(source, tables[position], joined(row))


def _suspicious(table: Layout) -> Layout:
    """Narrow a table to the rows whose text may not be UTF-8."""
    # GLOB reads any byte over 0x7F as a character outside the range, and stops at a NUL.
    strange = "({c} GLOB '*[^' || char(1) || '-' || char(127) || ']*' OR instr({c}, char(0)))"
    cells = map(quote, table.columns)
    tests = (f"typeof({c}) = 'text' AND {strange.format(c=c)}" for c in cells)
    where = f"({' OR '.join(tests)})"
    if table.where:
        where = f"{table.where} AND {where}"
    return replace(table, where=where)


def _bad_cells(source: Database, table: Layout, row: Row) -> Sequence[str]:
    if RawText not in map(type, row):
        return ()
    return [
        f"{table.name} {_place(source, table, row)}, column {column}"
        for column, cell in zip(table.columns, row, strict=True)
        if isinstance(cell, RawText)
    ]


def _place(source: Database, table: Layout, row: Row) -> str:
    """Return the rowid of a row, which can be typed, or its key where there is no rowid."""
    query = table.rowid(table.key_of(row))
    try:
        ((rowid,),) = source.query(query)
    except DatabaseError:
        return table.describe(table.key_of(row))
    return f"rowid {rowid}"
