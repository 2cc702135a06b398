"""The end of a move: rounds of changes until few are left, then the last ones under the lock."""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING

from harel_schema.errors import OperationalError, TransferError
from harel_schema.move.catchup import apply, copy_sequences
from harel_schema.move.destination import Silent
from harel_schema.move.model import Switched
from harel_schema.transfer.access import is_passing, pause

if TYPE_CHECKING:
    from harel_schema.move.destination import Destination
    from harel_schema.move.filling import Filling
    from harel_schema.move.source import Source
    from harel_schema.move.statements import ChangeLog
    from harel_schema.transfer.access import Database
    from harel_schema.transfer.progress import Meter

__all__ = ["Switch"]

# Entries of the change log that are carried over at once.
_ROUND = 5_000
# Writers may wait when the rest takes this many seconds by the pace of the last round, whatever the
# size of the rows; or when it is hardly anything.
_SECONDS = 0.5
_LAST = 20
# Rounds in a row that leave no fewer entries behind than there were before.
_FRUITLESS = 50
_ATTEMPTS = 8


class Switch:
    """Brings the destination up to the source, fences the source, and opens the destination."""

    def __init__(  # noqa: PLR0913, PLR0917 - what a move consists of
        self,
        source: Source,
        reader: Database,
        dest: Destination,
        log: ChangeLog,
        filling: Filling,
        meter: Meter,
    ) -> None:
        self._source = source
        self._reader = reader
        self._dest = dest
        self._log = log
        self._filling = filling
        self._meter = meter
        self._rounds = self._changes = 0

    def run(self) -> Switched:
        """Do it, and return what it took.

        Raises `TransferError` when the writers are too fast, or when it cannot go on; the source
        is open then, unless the fence was committed.
        """
        attempt = 0
        while True:
            pause(attempt)
            self._catch_up()
            self._meter.start("switch")
            try:
                started, last = self._fence()
                break
            except OperationalError as exc:
                attempt += 1
                self._source.roll_back()
                if attempt == _ATTEMPTS or not _may_pass(exc):
                    raise
                self._dest.state, self._dest.patient = "catching up", True
                self._dest.refresh()
            except BaseException:
                self._source.roll_back()
                raise
        fenced = time.monotonic()
        self._meter.add("", 0, 0)
        self._dest.patient = True
        self._dest.publish(self._filling.contents)
        opened = time.monotonic()
        self._meter.add("", 0, 0)
        return Switched(
            rounds=self._rounds,
            changes=self._changes,
            last_changes=last,
            fence_pause=fenced - started,
            pause=opened - started,
        )

    def _catch_up(self) -> None:
        """Carry changes over until so few are left that writers may wait for them."""
        self._meter.start("catch up")
        shortest, fruitless, pace = None, 0, math.inf
        while True:
            count, upper = self._source.pending(self._log, _ROUND)
            if count <= _LAST or (count < _ROUND and count * pace <= _SECONDS):
                return
            started = time.monotonic()
            self._round(upper)
            pace = (time.monotonic() - started) / count
            backlog = self._source.backlog(self._log)
            if shortest is None or backlog < shortest:
                shortest, fruitless = backlog, 0
            else:
                fruitless += 1
            if fruitless == _FRUITLESS:
                raise TransferError(
                    f"{self._source.target} changes faster than its changes can be carried over "
                    f"({backlog:,} are waiting)",
                    remedy="run the same command again at a quieter time, or stop some writers",
                )

    def _round(self, upper: int) -> None:
        """Carry over what the entries up to `upper` speak of, and drop them."""
        for attempt in range(_ATTEMPTS):
            pause(attempt)
            try:
                with self._reader.snapshot():
                    found = self._reader.stream([self._log.changes(upper)])
                    count = apply(self._dest, self._log, (row for _, row in found))
                self._source.trim(self._log, upper, self._dest.run)
            except OperationalError as exc:
                if not is_passing(exc) or attempt == _ATTEMPTS - 1:
                    raise
                self._source.roll_back()
                self._dest.refresh()
            else:
                break
        self._rounds += 1
        self._changes += count
        self._meter.add("", count, 0)

    def _fence(self) -> tuple[float, int]:
        """Carry over the last changes under the write lock, and fence the source.

        Returns when writers began to wait (monotonic seconds), and the number of changes.
        """
        source, dest, sequences = self._source, self._dest, self._filling.sequences
        source.lock()
        started = time.monotonic()
        self._meter.add("", 0, 0)
        dest.patient = False
        last = apply(dest, self._log, source.read(self._log.changes()))
        dest.state = "complete"
        if sequences is not None:
            copy_sequences(dest, sequences, source.read(sequences.select()))
        else:
            dest.transact(())
        self._meter.add("", last, 0)
        source.fence(self._filling.fenced, dest.name, self._log.triggers)
        return started, last


def _may_pass(error: OperationalError) -> bool:
    return is_passing(error) or isinstance(error, Silent)
