"""What would make a copy wrong is found here, before its first write."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING

from harel_schema import rows
from harel_schema.dbapi import files
from harel_schema.errors import DatabaseError, TransferError
from harel_schema.introspect import quote
from harel_schema.transfer.badtext import bad_cells, bad_columns, survey_tables
from harel_schema.transfer.database import number
from harel_schema.transfer.layout import (
    Layout,
    Query,
    layout,
    null_key,
    nullable_key,
    sequences,
)
from harel_schema.transfer.model import Estimate
from harel_schema.transfer.progress import Tally
from harel_schema.transfer.reading import TableReader

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from harel_schema.introspect import Table
    from harel_schema.rows import Row
    from harel_schema.target import Target
    from harel_schema.transfer.database import Database
    from harel_schema.transfer.progress import Meter

__all__ = [
    "FOREIGN_KEYS",
    "Size",
    "check_pair",
    "check_rows",
    "check_sound",
    "check_space",
    "damage",
    "layouts",
]

SERVER_ROW_LIMIT = 5_000_000
"""The largest record of a server in bytes (SQLITE_LIMIT_LENGTH of sqld 0.24.32)."""

_NAMED = 10
FOREIGN_KEYS = (
    'SELECT "table", min(rowid), parent, count(*) FROM pragma_foreign_key_check GROUP BY 1, 3'
)
"""Rows that refer to no row: their table, the first rowid, what they refer to, their number."""
_MISMATCH = "foreign key mismatch"
_ROOM = 1.3
# Bytes a second that a copy makes, bytes of a batch, and requests before the first batch.
_RATE = 40_000_000
_BATCH = 4_000_000
_REQUESTS = 15


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
    if dest.path is not None and files.is_replica(dest.path):
        raise TransferError(
            f"{dest} is an embedded replica, whose rows are its server's",
            remedy="copy to the server; the replica follows",
        )
    if same(source, dest):
        raise TransferError(f"{source} and {dest} are the same database", remedy="name another one")


def same(a: Target, b: Target) -> bool:
    """Return whether two targets name one database: one URL, or one file under any path."""
    if a.path is None or b.path is None:
        return a.url == b.url
    return b.path.exists() and a.path.samefile(b.path)


def check_sound(
    database: Database, tables: Sequence[Table], *, foreign_keys: bool = False
) -> str | None:
    """Refuse a damaged database, and one whose text is stored as UTF-16; it has `tables`.

    Returns a line about broken `foreign_keys`, which are copied as they are; None without one.
    Raises `TransferError`, or what reading a damaged file raises.
    """
    target = database.target
    foreign = foreign_keys and any(table.foreign_keys for table in tables)
    queries = ["PRAGMA quick_check", "PRAGMA encoding", *[FOREIGN_KEYS] * foreign]
    try:
        checked, ((encoding,),), *violations = database.survey(list(map(Query, queries)))
        lines = [str(line) for (line,) in checked]
    except DatabaseError as exc:
        if _MISMATCH in exc.message and foreign:
            # SQLite takes a reference to what is no key of its table, and checks none then.
            check_sound(database, tables)
            return f"references that SQLite cannot check, copied as they are: {exc.message}"
        if exc.code != "SQLITE_CORRUPT":
            raise
        lines, violations = [exc.message], []
    found = damage(database, tables, lines)
    if found:
        raise TransferError(
            f"{target} is damaged: {found[0]}",
            remedy="restore it from a backup, or try sqlite3's .recover",
        )
    if encoding != "UTF-8":
        raise TransferError(
            f"{target} stores its text as {encoding}, in another order than UTF-8",
            remedy="make a UTF-8 file of it with sqlite3's .dump first",
        )
    places = [
        f"{table} {'' if rowid is None else f'rowid {rowid} '}-> {parent} ({count:,} in all)"
        for table, rowid, parent, count in chain.from_iterable(violations)
    ]
    return f"rows that refer to no row, copied as they are: {'; '.join(places)}" if places else None


def damage(database: Database, tables: Sequence[Table], lines: list[str]) -> list[str]:
    """Return what SQLite's check of a database, which has `tables`, says of damage."""
    mistaken = {"ok", *_mistaken(database, tables, lines)}
    return [" ".join(line.split()) for line in lines if line not in mistaken]


def _mistaken(database: Database, tables: Sequence[Table], lines: list[str]) -> Iterator[str]:
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


def check_space(dest: Target, size: int, *, resumed: bool) -> int | None:
    """Refuse a file for which the disk has no room; `size` is that of the source in bytes.

    What a copy that is `resumed` has written need not be written again. Returns how many bytes
    are free, None for a server.
    """
    if dest.path is None:
        return None
    free = shutil.disk_usage(dest.path.parent).free
    needed = size * _ROOM - (dest.path.stat().st_size if resumed else 0)
    if free < needed:
        raise TransferError(
            f"{dest} needs about {needed / 1e6:,.0f} MB, and its disk has "
            f"{free / 1e6:,.0f} MB free",
            remedy="free some disk space",
        )
    return free


def estimate(size: int, free: int | None, distance: float, tables: int) -> Estimate:
    """Guess what a copy takes; `distance` is the seconds that an answer takes."""
    requests = size / _BATCH + tables + _REQUESTS
    return Estimate(bytes=size, seconds=size / _RATE + distance * requests, free=free)


def layouts(tables: Sequence[Table], *databases: Database) -> list[Layout]:
    """Return how the rows of `tables` are read, alike in all `databases`, sequence rows first."""
    nullable = [table for table in tables if nullable_key(table)]
    queries = list(map(null_key, nullable))
    answers = [database.survey(queries) for database in databases if queries]
    null = {
        table.name
        for answer in answers
        for table, ((found,),) in zip(nullable, answer, strict=True)
        if found
    }
    found = [layout(table, null_keys=table.name in null) for table in tables]
    counters = sequences(tables)
    return [counters, *found] if counters is not None else found


class _Findings:
    """The rows that the copy could not bring over: how many, and where the first ones are."""

    def __init__(self, source: Database, what: str, remedy: str) -> None:
        self._source = source
        self._what = what
        self._remedy = remedy
        self._places: list[str] = []
        self._count = 0

    def add(self, table: Layout, key: Row, detail: str) -> None:
        """Count a row, given by its key."""
        self._count += 1
        if len(self._places) < _NAMED:
            self._places.append(f"{table.name} {_place(self._source, table, key)}{detail}")

    def refuse(self, count: int | None = None) -> None:
        """Raise `TransferError` if anything was found, `count` in all if that is known."""
        if not self._places:
            return
        left = (count or self._count) - len(self._places)
        more = f"; and {left:,} more" if left else ""
        places = "; ".join(self._places)
        raise TransferError(
            f"{self._source.target} {self._what}: {places}{more}", remedy=self._remedy
        )


def _place(source: Database, table: Layout, key: Row) -> str:
    """Return the rowid of a row, which can be typed, or its key where there is no rowid."""
    query = table.rowid(key)
    return table.describe(key) if query is None else f"rowid {number(source, query)}"


def check_rows(
    source: Database,
    tables: Sequence[Layout],
    *,
    size: int,
    to_server: bool,
    meter: Meter,
) -> dict[str, Size]:
    """Read every row of the source, which has `size` bytes, and return the size of each table.

    Of a server, only the rows are read whose text may not be UTF-8. Raises
    `TransferError` naming rows that the copy could not bring over.
    """
    bad_text = _Findings(source, "holds text that is not UTF-8", "repair or delete these rows")
    if source.remote:
        return _check_rows_of_server(source, tables, size, bad_text)
    too_large = _Findings(
        source,
        f"holds rows over the server's limit of {SERVER_ROW_LIMIT:,} bytes",
        "shorten or delete these rows",
    )
    sizes: dict[str, Size] = {}
    for table, found in TableReader(source, tables).tables():
        tally = Tally(table.name, meter)
        for row in found:
            encoded = rows.size(row)
            for column in bad_columns(table, row):
                bad_text.add(table, table.key_of(row), f", column {column}")
            if to_server and encoded > SERVER_ROW_LIMIT:
                record = rows.record_size(row)
                if record > SERVER_ROW_LIMIT:
                    too_large.add(table, table.key_of(row), f" ({record:,} bytes)")
            tally.add(encoded)
        tally.tell()
        sizes[table.name] = Size(tally.rows, tally.size)
    bad_text.refuse()
    too_large.refuse()
    return sizes


def _check_rows_of_server(
    source: Database, tables: Sequence[Layout], size: int, bad_text: _Findings
) -> dict[str, Size]:
    extents = survey_tables(source, tables)
    cells, count = bad_cells(source, tables, extents, size, _NAMED)
    for table, key, column in cells:
        bad_text.add(table, key, f", column {column}")
    bad_text.refuse(count)
    pairs = zip(tables, extents, strict=True)
    return {table.name: Size(extent.rows, None) for table, extent in pairs}
