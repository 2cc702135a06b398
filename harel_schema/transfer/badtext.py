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
from harel_schema.transfer.database import patiently, size_of
from harel_schema.transfer.layout import Query, joined

if TYPE_CHECKING:
    from collections.abc import Sequence

    from harel_schema.rows import Row, SortKey
    from harel_schema.transfer.database import Database
    from harel_schema.transfer.layout import Layout

__all__ = ["BadCell", "bad_cells", "bad_columns"]

_AT_ONCE: Final = 4
_PART_BYTES: Final = 50_000_000


class BadCell(NamedTuple):
    """A cell of `table` with such text: the key of its row, and its column."""

    table: Layout
    key: Row
    column: str


_Found: TypeAlias = tuple[list[tuple[int, BadCell]], int]


def bad_columns(table: Layout, row: Row) -> Sequence[str]:
    """Return the columns of a row that hold such text."""
    if RawText not in map(type, row):
        return ()
    cells = zip(table.columns, row, strict=True)
    return [column for column, cell in cells if isinstance(cell, RawText)]


def bad_cells(source: Database, tables: Sequence[Layout], most: int) -> tuple[list[BadCell], int]:
    """Return the first `most` of such cells, by table and key, and how many there are."""
    parts = max(_AT_ONCE, size_of(source) // _PART_BYTES)
    spans = _spans(source, tables)

    def look(part: int) -> _Found:
        narrowed = [
            (position, each)
            for position, table in enumerate(tables)
            if (each := _part(table, spans.get(position), part, parts)) is not None
        ]
        return patiently(lambda: _look(source, narrowed, most))

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


def _spans(source: Database, tables: Sequence[Layout]) -> dict[int, tuple[int, int] | None]:
    """Return the least and the greatest rowid of each table that has them, None without rows."""
    positions, queries = [], []
    for position, table in enumerate(tables):
        if table.rowid_name is not None:
            rowid = quote(table.rowid_name)
            sql = f"SELECT min({rowid}), max({rowid}) FROM {quote(table.name)}"  # noqa: S608
            positions.append(position)
            queries.append(Query(sql))
    found = zip(positions, source.survey(queries), strict=True)
    return {
        position: None if least is None else (least, greatest)
        for position, ((least, greatest),) in found
    }


def _part(table: Layout, span: tuple[int, int] | None, part: int, parts: int) -> Layout | None:
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
    if table.rowid_name is None:
        if part:
            return None
    elif span is None:
        return None
    else:
        step = (span[1] - span[0]) // parts + 1
        lower = span[0] + step * part
        upper = min(lower + step - 1, span[1])
        if lower > upper:
            return None
        terms.insert(0, f"{quote(table.rowid_name)} BETWEEN {lower} AND {upper}")
    return replace(table, where=" AND ".join(terms))
