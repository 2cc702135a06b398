"""Progress for machines: one JSON object a line, on stderr."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from harel_schema.cli.options import Output
    from harel_schema.transfer import Progress

__all__ = ["EventWriter"]

_PAUSE = 0.25


class EventWriter:
    """Writes what a job reports, each change of the phase and otherwise four times a second.

    A line has the fields of `transfer.Progress`, ``"event": "progress"``, and the seconds since
    the job began.
    """

    def __init__(self, output: Output) -> None:
        self._output = output
        self._started = time.monotonic()
        self._phase = ""
        self._next = 0.0

    def __call__(self, step: Progress) -> None:
        """Take a report."""
        now = time.monotonic()
        at_end = step.rows_done == step.rows_total
        if step.phase == self._phase and now < self._next and not at_end:
            return
        self._phase, self._next = step.phase, now + _PAUSE
        self._output.event(
            "progress",
            phase=step.phase,
            table=step.table or None,
            rows_done=step.rows_done,
            rows_total=step.rows_total,
            bytes_done=step.bytes_done,
            seconds=round(now - self._started, 3),
        )
