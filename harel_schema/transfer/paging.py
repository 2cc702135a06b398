"""The rows of a server's tables, page by page.

A page is one request on one stream, in one read transaction. sqld sends a page of 1.4 kB rows
three times as fast as a streamed result (a cursor), of which each row is an HTTP chunk of its
own; but a page is at most 10 MB, is found by its key, and costs a round trip. What it cannot
read, a cursor does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from harel_schema import hrana, rows
from harel_schema.errors import OperationalError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from harel_schema.rows import Row
    from harel_schema.transfer.ahead import ReadAhead
    from harel_schema.transfer.database import Run
    from harel_schema.transfer.layout import Scan

__all__ = ["Pages"]

_FIRST_ROWS: Final = 200
_MOST_ROWS: Final = 5_000
_GROWTH: Final = 4
_RUN_BYTES: Final = 1_000_000


class Pages:
    """Reads `scans` in one snapshot of the server, in pages of about `size` bytes."""

    def __init__(self, client: hrana.Client, scans: Sequence[Scan], size: int) -> None:
        self._client = client
        self._scans = scans
        self._size = size
        self._rows = _FIRST_ROWS
        self._streaming = False

    def __call__(self, ahead: ReadAhead) -> None:
        """Hand the pages over."""
        with self._client.stream() as stream:

            def keep() -> None:
                # A cursor that is being read has the stream to itself.
                if not self._streaming:
                    stream.pipeline((hrana.GetAutocommit(),))

            stream.execute(hrana.Statement("BEGIN"))
            for position, scan in enumerate(self._scans):
                for page in self._pages(stream, scan):
                    if not ahead.hand_over((position, page), keep):
                        return

    def _pages(self, stream: hrana.Stream, scan: Scan) -> Iterator[Sequence[Row]]:
        left = scan
        while scan.layout.seekable:
            wanted = self._rows
            try:
                page = stream.execute(hrana.Statement(*left.query(wanted))).rows
            except OperationalError as exc:
                if exc.code != "RESPONSE_TOO_LARGE":
                    raise
                self._rows = 1
                if wanted == 1:
                    break
                continue
            if page:
                yield page
            if len(page) < wanted:
                return
            left = left.after(page[-1])
            self._adapt(page)
        yield from self._rest(stream, left)

    def _adapt(self, page: Sequence[Row]) -> None:
        size = sum(map(rows.size, page)) // len(page) or 1
        self._rows = max(1, min(self._size // size, len(page) * _GROWTH, _MOST_ROWS))

    def _rest(self, stream: hrana.Stream, scan: Scan) -> Iterator[Sequence[Row]]:
        """Yield rows that no page can bring, whatever their size and number."""
        self._streaming = True
        batch = hrana.Batch((hrana.Step(hrana.Statement(*scan.query())),))
        for _, run in _gathered(_arriving(stream.cursor(batch))):
            yield run
        self._streaming = False


def _arriving(entries: Iterator[hrana.CursorEntry]) -> Iterator[Run]:
    for entry in entries:
        if isinstance(entry, hrana.Rows):
            yield 0, entry.rows
        elif isinstance(entry, hrana.StepError):
            raise entry.error


def _gathered(runs: Iterator[Run]) -> Iterator[Run]:
    """Join runs: a stream has one for each row."""
    found: list[Row] = []
    at = size = 0
    for position, run in runs:
        if found and (position != at or size > _RUN_BYTES):
            yield at, found
            found, size = [], 0
        at = position
        found += run
        size += sum(map(rows.size, run))
    if found:
        yield at, found
