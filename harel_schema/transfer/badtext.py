"""Text of a server that is not UTF-8, which no answer of a server can hold.

SQLite is asked for the rows with anything but ASCII, and those are looked at here, read as blobs.
It takes 7 ns a character, on one core for each request, so that several are made at once, each
for a range of rowids. Only so is the time bounded that a request takes.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from harel_schema.introspect import quote
from harel_schema.rows import RawText
from harel_schema.transfer.layout import Query, joined

if TYPE_CHECKING:
    from collections.abc import Sequence

    from harel_schema.rows import Row, SortKey
    from harel_schema.transfer.database import Database
    from harel_schema.transfer.layout import Layout

__all__ = ["BadCell", "Extent", "bad_cells", "bad_columns", "survey_tables"]

_AT_ONCE: Final = 4
_PART_BYTES: Final = 50_000_000


class BadCell(NamedTuple):
    """A cell of `table` with such text: the key of its row, and its column."""

    table: Layout
    key: Row
    column: str


class Extent(NamedTuple):
    """The rows of a table, its first rowid and its last one, None where there are none."""

    rows: int
    first: int | None
    last: int | None


_Found: TypeAlias = tuple[list[tuple[int, BadCell]], int]


def bad_columns(table: Layout, row: Row) -> Sequence[str]:
    """Return the columns of a row that hold such text."""
    if RawText not in map(type, row):
        return ()
    cells = zip(table.columns, row, strict=True)
    return [column for column, cell in cells if isinstance(cell, RawText)]


def bad_cells(
    source: Database, tables: Sequence[Layout], extents: Sequence[Extent], size: int, most: int
) -> tuple[list[BadCell], int]:
    """Return the first `most` of such cells, by table and key, and how many there are.

    `size` is that of the database, in bytes.
    """
    parts = max(_AT_ONCE, size // _PART_BYTES)

    def look(part: int) -> _Found:
        narrowed = [
            (position, each)
            for position, (table, extent) in enumerate(zip(tables, extents, strict=True))
            if (each := _part(table, extent, part, parts)) is not None
        ]
        return source.patiently(lambda: _look(source, narrowed, most))

    with ThreadPoolExecutor(_AT_ONCE) as pool:
        found = list(pool.map(look, range(parts)))
    first = sorted(chain.from_iterable(cells for cells, _ in found), key=_order)
    return [cell for _, cell in first[:most]], sum(count for _, count in found)


def _order(found: tuple[int, BadCell]) -> tuple[int, SortKey]:
    position, cell = found
    return position, cell.table.order(cell.key)


def _look(source: Database, tables: Sequence[tuple[int, Layout]], most: int) -> _Found:
    cells: list[tuple[int, BadCell]] = []
    count = 0
    for number, raw in source.stream([table.select(raw=True) for _, table in tables]):
        position, table = tables[number]
        row = joined(raw)
        for column in bad_columns(table, row):
            count += 1
            if len(cells) < most:
                cells.append((position, BadCell(table, table.key_of(row), column)))
    return cells, count


def survey_tables(source: Database, tables: Sequence[Layout]) -> list[Extent]:
    """Count the rows of each table, and find the ends of its rowids, in one request."""
    return [Extent(*cells) for ((*cells,),) in source.survey(list(map(_extent, tables)))]


def _extent(table: Layout) -> Query:
    rowid = "NULL" if table.rowid_name is None else quote(table.rowid_name)
    where = f" WHERE {table.where}" if table.where else ""
    sql = f"SELECT count(*), min({rowid}), max({rowid}) FROM {quote(table.name)}{where}"  # noqa: S608
    return Query(sql)


def _part(table: Layout, extent: Extent, part: int, parts: int) -> Layout | None:
    """Narrow a table to the rows of a part whose text may not be UTF-8; None for no rows."""
    # GLOB reads any byte over 0x7F as a character outside the range. It stops at a NUL, as
    # length() does.
    strange = (
        "(length({c}) < length(CAST({c} AS BLOB))"
        " OR {c} GLOB '*[^' || char(1) || '-' || char(127) || ']*')"
    )
    tests = (f"typeof({c}) = 'text' AND {strange.format(c=c)}" for c in map(quote, table.columns))
    terms = [f"({' OR '.join(tests)})"]
    if table.where:
        terms.insert(0, table.where)
    if extent.rows == 0 or (extent.first is None and part):
        return None
    if extent.first is not None and extent.last is not None:
        step = (extent.last - extent.first) // parts + 1
        lower = extent.first + step * part
        upper = min(lower + step - 1, extent.last)
        if lower > upper:
            return None
        terms.insert(0, f"{quote(table.rowid_name or '')} BETWEEN {lower} AND {upper}")
    return replace(table, where=" AND ".join(terms))
