"""Rows into the destination: batch by batch, each with its mark in the ledger."""

from __future__ import annotations

import time
from dataclasses import dataclass
from hashlib import blake2b
from http import HTTPStatus
from typing import TYPE_CHECKING

from harel_schema import rows
from harel_schema.errors import ServerError
from harel_schema.transfer.behind import Writer
from harel_schema.transfer.database import Insert
from harel_schema.transfer.ledger import Range
from harel_schema.transfer.pace import Pace

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Self

    from harel_schema.rows import Row
    from harel_schema.transfer.database import Database, Work
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


class Batch:
    """Rows that are to be written together, in the order of their key."""

    def __init__(self) -> None:
        self.rows: list[Row] = []
        self.size = 0
        self._hash = blake2b(digest_size=rows.DIGEST_SIZE)

    def add(self, row: Row) -> None:
        """Take a row."""
        encoded = rows.encode(row)
        self.rows.append(row)
        self.size += len(encoded)
        self._hash.update(encoded)

    def digest(self) -> bytes:
        """Return the digest of the rows."""
        return self._hash.digest()

    def full(self, limits: Limits) -> bool:
        """Return whether another row belongs into the next batch."""
        return len(self.rows) >= limits.rows or self.size >= limits.size


class RangeWriter:
    """Brings the ranges of the ledger up to the source, one after another.

    A range that is to do gets its rows. A range that is done keeps them when the source's rows
    still have its digest; when they changed since, they are written anew. A server gets a batch
    while the next one is read. A context manager: leaving it waits for the last batch.
    """

    def __init__(
        self,
        database: Database,
        ledger: Ledger,
        limits: Limits | None,
        progress: Callable[[str, int, int], None],
    ) -> None:
        self._database = database
        self._ledger = ledger
        self._pace = Pace(limits, database.round_trip)
        self._progress = progress
        self._writer = Writer()
        self._ranges = ledger.ranges()

    def __enter__(self) -> Self:
        self._writer.__enter__()
        return self

    def __exit__(self, exc_type: type[BaseException] | None, *exc_info: object) -> None:
        self._writer.__exit__(exc_type, *exc_info)

    def table(self, layout: Layout, source_rows: Iterator[Row]) -> Counts:
        """Write the rows of a table, which come in the order of its key.

        The counts are complete when the writer was left.
        """
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

        parts = self._ranges.get(layout.name, [])
        for part in sorted(parts, key=lambda part: layout.order(part.lower) if part.lower else ()):
            self._range(layout, part, up_to(part.upper), counts)
        return counts

    def _range(
        self, layout: Layout, part: Range, source_rows: Iterator[Row], counts: Counts
    ) -> None:
        batch = Batch()
        for row in source_rows:
            # A range that is done is read as one batch, whatever the limits were then.
            if batch.full(self._pace.limits) and len(batch.rows) >= part.count:
                part = self._write(layout, part, batch, batch.rows[-1], counts)
                batch = Batch()
            batch.add(row)
        to_do = bool(batch.rows) if part.digest is None else part.digest != batch.digest()
        if to_do:
            self._write(layout, part, batch, None, counts)
        else:
            self._count(layout, batch, counts, 0)

    def _write(
        self, layout: Layout, part: Range, batch: Batch, last: Row | None, counts: Counts
    ) -> Range:
        """Write the first rows of `part`, or with `last` None all; return what is left of it."""
        upper = part.upper if last is None else layout.key_of(last)
        done = Range(part.table, part.lower, upper, len(batch.rows), batch.digest())
        work = self._work(layout, part, batch.rows, done)
        self._writer.put(
            lambda: self._timed(layout, part, batch.rows, done, work),
            lambda: self._count(layout, batch, counts, len(batch.rows)),
        )
        return Range(part.table, upper, part.upper)

    def _work(self, layout: Layout, part: Range, found: list[Row], done: Range) -> list[Work]:
        work: list[Work] = [*self._ledger.advance(part, done)]
        if part.digest is not None:
            work.append(layout.delete(part.lower, part.upper))
        if found:
            work.append(self._database.prepare(Insert(layout, found)))
        return work

    def _timed(
        self, layout: Layout, part: Range, found: list[Row], done: Range, work: list[Work]
    ) -> None:
        started = time.monotonic()
        self._apply(layout, part, found, done, work)
        self._pace.took(time.monotonic() - started)

    def _apply(
        self, layout: Layout, part: Range, found: list[Row], done: Range, work: list[Work]
    ) -> None:
        """Write `found`, the rows of `done`; in halves if a server refuses them for their size."""
        try:
            self._database.transact(work, lambda: self._ledger.holds(done))
        except ServerError as exc:
            if exc.status != HTTPStatus.REQUEST_ENTITY_TOO_LARGE or len(found) == 1:
                raise
            self._pace.refused()
            middle = len(found) // 2
            upper = layout.key_of(found[middle - 1])
            left = Range(part.table, upper, part.upper)
            self._half(layout, part, found[:middle], upper)
            self._half(layout, left, found[middle:], done.upper)

    def _half(self, layout: Layout, part: Range, found: list[Row], upper: Row | None) -> None:
        digest = rows.digest(map(rows.encode, found))
        done = Range(part.table, part.lower, upper, len(found), digest)
        self._apply(layout, part, found, done, self._work(layout, part, found, done))

    def _count(self, layout: Layout, batch: Batch, counts: Counts, written: int) -> None:
        counts.rows += len(batch.rows)
        counts.bytes += batch.size
        counts.written += written
        self._progress(layout.name, len(batch.rows), batch.size)
