"""Changes of the source into the destination: batch by batch, each read back and compared."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import chain
from typing import TYPE_CHECKING, cast

from harel_schema import rows
from harel_schema.errors import TransferError
from harel_schema.introspect import quote
from harel_schema.transfer.access import Insert
from harel_schema.transfer.layout import Query

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from harel_schema.move.destination import Destination
    from harel_schema.move.statements import ChangeLog
    from harel_schema.rows import Row
    from harel_schema.transfer.access import Work
    from harel_schema.transfer.layout import Layout

__all__ = ["apply", "copy_sequences"]

_ROWS = 1_000
_BYTES = 2_000_000


@dataclass(slots=True)
class _Batch:
    """Keys of a table that have changed, and those of their rows that are still there."""

    layout: Layout
    keys: list[Row] = field(default_factory=list)
    rows: list[Row] = field(default_factory=list)
    size: int = 0


def apply(dest: Destination, log: ChangeLog, found: Iterable[Sequence[object]]) -> int:
    """Carry over the rows of `ChangeLog.changes`, and compare what is there then.

    Returns the number of changed keys. Raises `TransferError` for a row that has no key, or that
    the destination does not give back as it was.
    """
    count = 0
    for batch in _batches(log, found):
        _write(dest, batch)
        count += len(batch.keys)
    return count


def _batches(log: ChangeLog, found: Iterable[Sequence[object]]) -> Iterator[_Batch]:
    batch: _Batch | None = None
    for cells in found:
        layout = log.layouts[cast("int", cells[0])]
        key, row = (cast("Row", part) for part in log.split(cells, layout))
        size = len(rows.encode(row))
        if batch is not None and (
            batch.layout is not layout or len(batch.keys) == _ROWS or batch.size + size > _BYTES
        ):
            yield batch
            batch = None
        batch = batch or _Batch(layout)
        if None in key:
            raise TransferError(
                f"a row whose key is NULL was written to {layout.name} meanwhile",
                remedy="delete it, and run the same command again",
            )
        batch.keys.append(key)
        if cells[1]:
            batch.rows.append(row)
            batch.size += size
    if batch is not None:
        yield batch


def _write(dest: Destination, batch: _Batch) -> None:
    layout = batch.layout
    listed, join, args = _among(layout, batch.keys)
    table = quote(layout.name)
    gone = f"{listed} DELETE FROM {table} WHERE rowid IN (SELECT t.rowid {join})"  # noqa: S608
    work: list[Work] = [Query(gone, args)]
    if batch.rows:
        work.append(Insert(layout, batch.rows))
    dest.transact(work)
    columns = ", ".join(f"t.{quote(column)}" for column in layout.columns)
    there = dest.query(Query(f"{listed} SELECT {columns} {join}", args))
    _compare(dest, layout, batch.rows, there)


def _among(layout: Layout, keys: Sequence[Row]) -> tuple[str, str, Row]:
    """Return a WITH clause that lists `keys`, a FROM clause of their rows `t`, and the values.

    A join in this order, because SQLite would scan the whole table for ``(a, b) IN (VALUES …)``.
    """
    columns = [layout.columns[position] for position in layout.key]
    names = [f"k{position}" for position in range(len(columns))]
    row = f"({', '.join('?' * len(columns))})"
    listed = f"WITH k ({', '.join(names)}) AS (VALUES {', '.join([row] * len(keys))})"
    pairs = zip(columns, names, strict=True)
    terms = " AND ".join(f"t.{quote(column)} = k.{name}" for column, name in pairs)
    join = f"FROM k CROSS JOIN {quote(layout.name)} AS t ON {terms}"
    return listed, join, tuple(chain.from_iterable(keys))


def _compare(
    dest: Destination, layout: Layout, wanted: Iterable[Row], there: Iterable[Row]
) -> None:
    left = {rows.encode(row): row for row in wanted}
    for row in there:
        if left.pop(rows.encode(row), None) is None:
            raise _wrong(dest, layout, row)
    for row in left.values():
        raise _wrong(dest, layout, row)


def _wrong(dest: Destination, layout: Layout, row: Row) -> TransferError:
    return TransferError(
        f"{dest.target} did not keep what was written to it: {layout.name} "
        f"{layout.describe(layout.key_of(row))}",
        remedy="see that nothing else writes to it, and run the same command again",
    )


def copy_sequences(dest: Destination, layout: Layout, sequence_rows: Sequence[Row]) -> None:
    """Set the counters of AUTOINCREMENT to those of the source, and compare them."""
    work: list[Work] = [layout.delete()]
    if sequence_rows:
        work.append(Insert(layout, sequence_rows))
    dest.transact(work)
    _compare(dest, layout, sequence_rows, dest.query(layout.select()))
