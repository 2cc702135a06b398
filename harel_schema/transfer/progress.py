"""Counts what a job has done, and tells the caller."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harel_schema.transfer.model import Progress

if TYPE_CHECKING:
    from harel_schema.transfer.model import OnProgress, Phase

__all__ = ["Meter"]


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
