"""The rows of several tables, one table after another, in the order of their keys."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harel_schema.errors import OperationalError
from harel_schema.transfer.database import pause
from harel_schema.transfer.layout import Scan, joined

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator, Sequence

    from harel_schema.rows import Row
    from harel_schema.transfer.database import Database, Run
    from harel_schema.transfer.layout import Layout

__all__ = ["TableReader"]

_ATTEMPTS = 6
_SUSPICIOUS = 3


class TableReader:
    """Reads `layouts` of `database`, all in one snapshot.

    When the connection to a server breaks, reading goes on after the last row, in a new snapshot:
    `snapshots` counts them. Text that is not UTF-8 is read as `rows.RawText`.
    """

    def __init__(self, database: Database, layouts: Sequence[Layout]) -> None:
        self.snapshots = 0
        self._database = database
        self._layouts = layouts
        self._raw: set[int] = set()

    def tables(self) -> Generator[tuple[Layout, Iterator[Row]]]:
        """Yield each table with its rows; those are to be read before the next table.

        Close it when it is not read to its end: a thread may be reading ahead.
        """
        runs = self._runs()
        pending = next(runs, None)

        def of_table(position: int) -> Iterator[Row]:
            nonlocal pending
            while pending is not None and pending[0] == position:
                yield from pending[1]
                pending = next(runs, None)

        try:
            for position, layout in enumerate(self._layouts):
                own = of_table(position)
                yield layout, own
                for _ in own:
                    pass
        finally:
            runs.close()

    def _runs(self) -> Generator[Run]:
        at, last, fruitless = 0, None, 0
        while True:
            self.snapshots += 1
            first = at
            try:
                for offset, run in self._database.scan(self._scans(at, last)):
                    at = first + offset
                    found = list(map(joined, run)) if at in self._raw else run
                    last, fruitless = self._layouts[at].key_of(found[-1]), 0
                    yield at, found
            except OperationalError as exc:
                fruitless += 1
                self._recover(at, exc, fruitless)
            else:
                return

    def _scans(self, at: int, last: Row | None) -> list[Scan]:
        """Return what is left to read after key `last` of table `at`."""
        left = [Scan(self._layouts[at], last, at in self._raw)] if self._layouts else []
        rest = range(at + 1, len(self._layouts))
        return left + [Scan(self._layouts[each], None, each in self._raw) for each in rest]

    def _recover(self, at: int, error: OperationalError, fruitless: int) -> None:
        """Prepare to go on in table `at` or after it, or raise `error`."""
        passing = self._database.may_pass(error)
        undecodable = "utf-8" in str(error).lower()
        # A server breaks a stream off at text that is not UTF-8, and cannot say so.
        suspicious = passing and fruitless == _SUSPICIOUS
        if (undecodable or suspicious) and at not in self._raw:
            self._raw.update(range(at, len(self._layouts)))
        elif not passing or fruitless > _ATTEMPTS:
            raise error
        else:
            pause(fruitless)
