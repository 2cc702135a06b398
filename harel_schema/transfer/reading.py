"""The rows of several tables, one table after another, in the order of their keys."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harel_schema.errors import OperationalError
from harel_schema.transfer.access import is_passing, pause
from harel_schema.transfer.layout import joined

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from harel_schema.rows import Row
    from harel_schema.transfer.access import Database
    from harel_schema.transfer.layout import Layout, Query

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

    def tables(self) -> Iterator[tuple[Layout, Iterator[Row]]]:
        """Yield each table with its rows; those are to be read before the next table."""
        flat = self._flat()
        pending = next(flat, None)

        def of_table(position: int) -> Iterator[Row]:
            nonlocal pending
            while pending is not None and pending[0] == position:
                yield pending[1]
                pending = next(flat, None)

        for position, layout in enumerate(self._layouts):
            own = of_table(position)
            yield layout, own
            for _ in own:
                pass

    def _flat(self) -> Iterator[tuple[int, Row]]:
        at, last, fruitless = 0, None, 0
        while True:
            self.snapshots += 1
            try:
                for position, row in self._rows_after(at, last):
                    at, last, fruitless = position, self._layouts[position].key_of(row), 0
                    yield position, row
            except OperationalError as exc:
                fruitless += 1
                self._recover(at, exc, fruitless)
            else:
                return

    def _recover(self, at: int, error: OperationalError, fruitless: int) -> None:
        """Prepare to go on in table `at` or after it, or raise `error`."""
        passing = is_passing(error)
        undecodable = "utf-8" in str(error).lower()
        # A server breaks a stream off at text that is not UTF-8, and cannot say so.
        suspicious = passing and fruitless == _SUSPICIOUS
        if (undecodable or suspicious) and at not in self._raw:
            self._raw.update(range(at, len(self._layouts)))
        elif not passing or fruitless > _ATTEMPTS:
            raise error
        else:
            pause(fruitless)

    def _rows_after(self, at: int, last: Row | None) -> Iterator[tuple[int, Row]]:
        queries = [self._query(at, last)]
        queries += [self._query(position) for position in range(at + 1, len(self._layouts))]
        for offset, row in self._database.stream(queries):
            position = at + offset
            yield position, (joined(row) if position in self._raw else row)

    def _query(self, position: int, lower: Row | None = None) -> Query:
        layout = self._layouts[position]
        return layout.select(lower, raw=position in self._raw)
