"""Counts what a job has done, and tells the caller."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harel_schema.transfer.model import Progress

if TYPE_CHECKING:
    from harel_schema.transfer.model import OnProgress, Phase

__all__ = ["Meter", "Tally"]

_STEP = 5_000


class Meter:
    """The progress of one phase after another, over all tables."""

    def __init__(self, callback: OnProgress | None, total: int | None = None) -> None:
        self._callback = callback
        self._phase: Phase = "check"
        self._total = total
        self._rows = self._bytes = 0

    def start(self, phase: Phase, total: int | None = None) -> None:
        """Begin a phase, of `total` rows."""
        self._phase, self._total = phase, total
        self._rows = self._bytes = 0
        self.add("", 0, 0)

    def add(self, table: str, rows: int, size: int) -> None:
        """Count `rows` more rows of `table`, of `size` bytes."""
        self._rows += rows
        self._bytes += size
        if self._callback is not None:
            self._callback(Progress(self._phase, table, self._rows, self._total, self._bytes))


class Tally:
    """Counts the rows of a table and their bytes, and tells a meter now and then."""

    __slots__ = ("_meter", "_table", "_told_bytes", "_told_rows", "rows", "size")

    def __init__(self, table: str, meter: Meter | None = None) -> None:
        self.rows = self.size = 0
        self._table = table
        self._meter = meter
        self._told_rows = self._told_bytes = 0

    def add(self, size: int) -> None:
        """Count a row of `size` bytes."""
        self.rows += 1
        self.size += size
        if self.rows % _STEP == 0:
            self.tell()

    def tell(self) -> None:
        """Tell the meter what was counted since the last time."""
        if self._meter is not None:
            more = self.rows - self._told_rows, self.size - self._told_bytes
            self._meter.add(self._table, *more)
            self._told_rows, self._told_bytes = self.rows, self.size
