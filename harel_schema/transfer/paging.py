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
        yield from _gathered(stream.cursor(batch))
        self._streaming = False


def _gathered(entries: Iterator[hrana.CursorEntry]) -> Iterator[Sequence[Row]]:
    """Yield the rows of a stream, which has an entry for each, many at a time."""
    found: list[Row] = []
    size = 0
    for entry in entries:
        match entry:
            case hrana.Rows(rows=more):
                if size > _RUN_BYTES:
                    yield found
                    found, size = [], 0
                found += more
                size += sum(map(rows.size, more))
            case hrana.StepError(_, error):
                raise error
    if found:
        yield found
