"""The rows of a server's tables, read ahead of who takes them.

A page is one request on one stream, in one read transaction. sqld sends a page of 1.4 kB rows
three times as fast as a streamed result (a cursor), of which each row is an HTTP chunk of its
own; but a page is at most 10 MB, and is found by its key. What that cannot read, a cursor does.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Final, TypeAlias

from harel_schema import hrana, rows
from harel_schema.errors import OperationalError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Self

    from harel_schema.rows import Row
    from harel_schema.transfer.layout import Scan

__all__ = ["PageReader", "Run"]

Run: TypeAlias = "tuple[int, Sequence[Row]]"
"""Rows of one scan, after its position."""

_FIRST_ROWS: Final = 200
_MOST_ROWS: Final = 5_000
_GROWTH: Final = 4
_PAGE_BYTES: Final = 1_000_000
# The server drops a stream after 10 s of silence.
_SILENCE: Final = 3.0
_JOIN: Final = 2.0


class PageReader:
    """Reads `scans` in one snapshot of the server, in a thread of its own, a page ahead.

    An iterator of runs, and a context manager that ends the thread.
    """

    def __init__(self, client: hrana.Client, scans: Sequence[Scan]) -> None:
        self._client = client
        self._scans = scans
        self._changed = threading.Condition()
        self._page: Run | None = None
        self._error: BaseException | None = None
        self._ended = self._stopped = self._streaming = False
        self._rows = _FIRST_ROWS
        self._thread = threading.Thread(target=self._run, name="harel-schema-reader", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *exc_info: object) -> None:
        with self._changed:
            self._stopped = True
            self._changed.notify_all()
        # A server that does not answer is not waited for.
        self._thread.join(_JOIN)

    def __iter__(self) -> Iterator[Run]:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._page or self._ended)
                page, self._page = self._page, None
                self._changed.notify_all()
            if page is not None:
                yield page
            elif self._error is not None:
                raise self._error
            else:
                return

    def _run(self) -> None:
        try:
            with self._client.stream() as stream:
                stream.execute(hrana.Statement("BEGIN"))
                for position, scan in enumerate(self._scans):
                    for page in self._pages(stream, scan):
                        if not self._hand_over((position, page), stream):
                            return
        except BaseException as exc:  # noqa: BLE001 - it is raised where the rows are taken
            self._error = exc
        finally:
            with self._changed:
                self._ended = True
                self._changed.notify_all()

    def _hand_over(self, page: Run, stream: hrana.Stream) -> bool:
        """Wait until the page before was taken; return False when no more are wanted."""
        while True:
            with self._changed:
                if self._changed.wait_for(lambda: self._stopped or not self._page, _SILENCE):
                    self._page = page
                    self._changed.notify_all()
                    return not self._stopped
            if not self._streaming:
                stream.pipeline((hrana.GetAutocommit(),))

    def _pages(self, stream: hrana.Stream, scan: Scan) -> Iterator[Sequence[Row]]:
        """Yield the rows of a table, in pages of about `_PAGE_BYTES`."""
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
        self._streaming = True
        yield from _streamed(stream, left)
        self._streaming = False

    def _adapt(self, page: Sequence[Row]) -> None:
        size = sum(map(rows.size, page)) // len(page) or 1
        self._rows = max(1, min(_PAGE_BYTES // size, len(page) * _GROWTH, _MOST_ROWS))


def _streamed(stream: hrana.Stream, scan: Scan) -> Iterator[Sequence[Row]]:
    """Yield rows as they arrive, whatever their size and number."""
    batch = hrana.Batch((hrana.Step(hrana.Statement(*scan.query())),))
    for entry in stream.cursor(batch):
        if isinstance(entry, hrana.Rows):
            yield entry.rows
        elif isinstance(entry, hrana.StepError):
            raise entry.error
