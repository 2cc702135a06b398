"""Rows into the destination: batch by batch, each with its mark in the ledger."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from harel_schema import rows
from harel_schema.transfer.access import Insert
from harel_schema.transfer.ledger import Range

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from harel_schema.rows import Row
    from harel_schema.transfer.access import Database, Work
    from harel_schema.transfer.layout import Layout
    from harel_schema.transfer.ledger import Ledger
    from harel_schema.transfer.model import Limits

__all__ = ["Batch", "Counts", "RangeWriter"]


@dataclass(slots=True)
class Counts:
    """Rows of a table: those of the source, and those that were written."""

    rows: int = 0
    bytes: int = 0
    written: int = 0


@dataclass(slots=True)
class Batch:
    """Rows that are to be written together."""

    rows: list[Row] = field(default_factory=list)
    encoded: list[bytes] = field(default_factory=list)
    size: int = 0

    def add(self, row: Row) -> None:
        """Take a row."""
        encoded = rows.encode(row)
        self.rows.append(row)
        self.encoded.append(encoded)
        self.size += len(encoded)

    def digest(self) -> bytes:
        """Return the digest of the rows."""
        return rows.digest(self.encoded)

    def full(self, limits: Limits) -> bool:
        """Return whether another row belongs into the next batch."""
        return len(self.rows) >= limits.rows or self.size >= limits.size


class RangeWriter:
    """Brings the ranges of the ledger up to the source, one after another.

    A range that is to do gets its rows. A range that is done keeps them when the source's rows
    still have its digest; when they changed since, they are written anew.
    """

    def __init__(
        self,
        database: Database,
        ledger: Ledger,
        limits: Limits,
        progress: Callable[[str, int, int], None],
    ) -> None:
        self._database = database
        self._ledger = ledger
        self._limits = limits
        self._progress = progress

    def table(self, layout: Layout, source_rows: Iterator[Row]) -> Counts:
        """Write the rows of a table, which come in the order of its key."""
        counts = Counts()
        pending = next(source_rows, None)

        def up_to(upper: Row | None) -> Iterator[Row]:
            nonlocal pending
            end = None if upper is None else layout.order(upper)
            while pending is not None:
                if end is not None and layout.order(layout.key_of(pending)) > end:
                    return
                yield pending
                pending = next(source_rows, None)

        for part in self._ledger.ranges(layout):
            self._range(layout, part, up_to(part.upper), counts)
        return counts

    def _range(
        self, layout: Layout, part: Range, source_rows: Iterator[Row], counts: Counts
    ) -> None:
        batch = Batch()
        for row in source_rows:
            # A range that is done is read as one batch, whatever the limits were then.
            if batch.full(self._limits) and len(batch.rows) >= part.count:
                part = self._write(layout, part, batch, batch.rows[-1], counts)
                batch = Batch()
            batch.add(row)
        to_do = bool(batch.rows) if part.digest is None else part.digest != batch.digest()
        if to_do:
            self._write(layout, part, batch, None, counts)
        else:
            self._count(layout, batch, counts)

    def _write(
        self, layout: Layout, part: Range, batch: Batch, last: Row | None, counts: Counts
    ) -> Range:
        """Write the first rows of `part`, or with `last` None all; return what is left of it."""
        upper = part.upper if last is None else layout.key_of(last)
        done = Range(part.table, part.lower, upper, len(batch.rows), batch.digest())
        work: list[Work] = [*self._ledger.advance(part, done)]
        if part.digest is not None:
            work.append(layout.delete(part.lower, part.upper))
        if batch.rows:
            work.append(Insert(layout, batch.rows))
        self._database.transact(work, lambda: self._ledger.holds(done))
        counts.written += len(batch.rows)
        self._count(layout, batch, counts)
        return Range(part.table, upper, part.upper)

    def _count(self, layout: Layout, batch: Batch, counts: Counts) -> None:
        counts.rows += len(batch.rows)
        counts.bytes += batch.size
        self._progress(layout.name, len(batch.rows), batch.size)
