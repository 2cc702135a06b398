"""A libSQL server as an end of a copy: written by batches, one request a transaction."""

from __future__ import annotations

import threading
import time
from concurrent.futures import Future, wait
from contextlib import AbstractContextManager, closing, nullcontext
from itertools import chain
from math import inf
from typing import TYPE_CHECKING, TypeVar

from harel_schema import dbapi, hrana, introspect
from harel_schema.dbapi import waiting
from harel_schema.errors import (
    BusyError,
    IntegrityError,
    OperationalError,
    RequestTimeout,
    TransactionLost,
    TransferError,
)
from harel_schema.transfer.ahead import ReadAhead
from harel_schema.transfer.behind import carry_out
from harel_schema.transfer.database import ATTEMPTS, Insert, Prepared, is_passing, no_room, pause
from harel_schema.transfer.layout import Query
from harel_schema.transfer.paging import Pages

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from harel_schema.introspect import Schema
    from harel_schema.target import Target
    from harel_schema.transfer.database import Cells, Run, Work
    from harel_schema.transfer.layout import Scan

__all__ = ["RemoteDatabase"]

# Steps of a transaction before the first statement: PRAGMA, BEGIN.
_PREAMBLE = 2
# Seconds for an answer after which larger pages are worth their memory.
_FAR = 0.005
# Bytes of a page.
_PAGE, _FAR_PAGE = 1_000_000, 4_000_000
# How often a server that seems far is asked again.
_PINGS = 3
# Seconds that a request may take which has the server look at everything; meanwhile it is asked
# now and then whether it is there.
_LONG = 600.0
# Seconds that a server which was silent is given to show that it is there.
_SIGN = 5.0

_T = TypeVar("_T")


class RemoteDatabase:
    """A libSQL server, by Hrana.

    `timeout` is in seconds: how long a lock is waited for, and how long the server may be silent.
    One that was is asked once more, in a few seconds, whether it is there.
    """

    remote = True

    def __init__(self, target: Target, timeout: float) -> None:
        self.target = target
        self._timeout = timeout
        self._shortest = inf
        self._pings = 0
        self._client = self._connect(timeout)
        self._patient = self._connect(_LONG)

    def _connect(self, timeout: float) -> hrana.Client:
        assert self.target.url is not None  # noqa: S101 - the caller has a server
        return hrana.Client(self.target.url, auth_token=self.target.auth_token, timeout=timeout)

    def schema(self, prefix: str | None) -> Schema:
        """See `Database`."""

        def read() -> Schema:
            connected = dbapi.connect(
                self.target, read_only=True, timeout=self._timeout, request_timeout=self._timeout
            )
            with closing(connected) as connection:
                return introspect.read(connection, prefix=prefix)

        return self.patiently(read)

    def query(self, query: Query) -> list[Cells]:
        """See `Database`."""
        statement = hrana.Statement(*query)
        started = time.monotonic()
        found = self.patiently(lambda: self._client.execute(statement, idempotent=True).rows)
        self._shortest = min(self._shortest, time.monotonic() - started)
        return found

    @property
    def round_trip(self) -> float:
        """See `Database`."""
        # The first request opens the connection, and a busy moment is no distance.
        while self._shortest == inf or (self._pings < _PINGS and self._shortest > _FAR):
            self._pings += 1
            self.query(Query("SELECT 1"))
        return self._shortest

    def survey(self, queries: Sequence[Query]) -> list[list[Cells]]:
        """See `Database`."""
        batch = hrana.Batch([hrana.Step(hrana.Statement(*query)) for query in queries])
        found = self.patiently(lambda: self._take_long(batch))
        for error in filter(None, found.errors):
            raise error
        return [[*result.rows] for result in found.results if result is not None]

    def _take_long(self, batch: hrana.Batch) -> hrana.BatchResult:
        """Wait for an answer as long as the server is there."""
        answer: Future[hrana.BatchResult] = Future()
        # A daemon: a server that does not answer is not waited for.
        threading.Thread(
            target=carry_out,
            args=(answer, lambda: self._patient.batch(batch, idempotent=True)),
            daemon=True,
        ).start()
        while not wait([answer], self._timeout).done:
            if not self._is_there():
                raise RequestTimeout(
                    f"{self.target} did not answer for {self._timeout:g} s", sent=True
                )
        return answer.result()

    def _is_there(self) -> bool:
        """Return whether the server answers another request, by another connection."""
        with self._connect(min(_SIGN, self._timeout)) as client:
            try:
                client.execute(hrana.Statement("SELECT 1"), idempotent=True)
            except OperationalError:
                return False
        return True

    def may_pass(self, error: OperationalError) -> bool:
        """See `Database`."""
        if isinstance(error, RequestTimeout):
            return self._is_there()
        return isinstance(error, BusyError) or is_passing(error)

    def patiently(self, action: Callable[[], _T]) -> _T:
        """See `Database`."""
        for attempt in range(1, ATTEMPTS):
            try:
                return self._waiting(action)
            except OperationalError as exc:
                if isinstance(exc, BusyError) or not self.may_pass(exc):
                    raise
            pause(attempt)
        return self._waiting(action)

    def _waiting(self, action: Callable[[], _T]) -> _T:
        """Return what `action` gives when it gets its lock."""
        try:
            return action()
        except BusyError as exc:
            busy = BusyError(f"{self.target}: {exc.message}", code=exc.code)
            return waiting.patiently(action, self._timeout, busy)

    def snapshot(self) -> AbstractContextManager[None]:
        """See `Database`."""
        return nullcontext()

    def stream(self, queries: Sequence[Query]) -> Iterator[tuple[int, Cells]]:
        """See `Database`; one streamed request."""
        statements = [hrana.Statement(*query) for query in queries]
        position = 0
        for entry in self._client.cursor(_in_transaction(statements, begin="BEGIN")):
            match entry:
                case hrana.StepBegin(step):
                    position = step - _PREAMBLE
                case hrana.Rows(rows):
                    for row in rows:
                        yield position, row
                case hrana.StepError(_, error):
                    raise error

    def scan(self, scans: Sequence[Scan]) -> Iterator[Run]:
        """See `Database`; read ahead in a thread of its own."""
        size = _FAR_PAGE if self.round_trip > _FAR else _PAGE
        with ReadAhead(Pages(self._client, scans, size)) as ahead:
            yield from ahead

    def prepare(self, insert: Insert) -> Work:
        """See `Database`."""
        return Prepared([hrana.encode_statement(_sent(query)) for query in insert.statements()])

    def transact(self, work: Sequence[Work], applied: Callable[[], bool]) -> None:
        """See `Database`."""
        statements = list(chain.from_iterable(map(_statements, work)))
        batch = _in_transaction(statements, begin="BEGIN IMMEDIATE")
        attempt = 0
        while True:
            pause(attempt)
            try:
                if attempt and applied():
                    return
                self._waiting(lambda: self._send(batch))
            except IntegrityError:
                if applied():
                    return
                raise
            except OperationalError as exc:
                if full := no_room(exc, f"{self.target}: "):
                    raise full from exc
                attempt += 1
                again = not isinstance(exc, BusyError) and self.may_pass(exc)
                if not again and not isinstance(exc, RequestTimeout):
                    raise
                if not again or attempt == ATTEMPTS:
                    raise TransferError(
                        f"{self.target}: gave up: {exc.message}",
                        remedy="run the same command again; it goes on where this one stopped",
                    ) from exc
            else:
                return

    def _send(self, batch: hrana.Batch) -> None:
        result = self._client.batch(batch)
        if result.results[-2] is not None:
            return
        error = next((error for error in result.errors if error is not None), None)
        raise error or TransactionLost("the server ended the transaction")

    def close(self) -> None:
        """See `Database`."""
        self._client.close()
        self._patient.close()


def _statements(work: Work) -> Iterable[hrana.Statement | hrana.Encoded]:
    if isinstance(work, Prepared):
        return work.statements
    if isinstance(work, Insert):
        return map(_sent, work.statements())
    return [_sent(work)]


def _sent(query: Query) -> hrana.Statement:
    return hrana.Statement(*query, want_rows=False)


def _in_transaction(
    statements: Sequence[hrana.Statement | hrana.Encoded], *, begin: str
) -> hrana.Batch:
    """Wrap `statements` in a transaction: all of them run, in it, or none counts.

    The last step but one is COMMIT.
    """
    steps = [
        # The rows of a table may refer to rows that come later. Off for this stream only.
        hrana.Step(hrana.Statement("PRAGMA foreign_keys = OFF", want_rows=False)),
        hrana.Step(hrana.Statement(begin, want_rows=False), hrana.Ok(0)),
    ]
    for statement in (*statements, hrana.Statement("COMMIT", want_rows=False)):
        # A server may end the transaction by itself; what follows must not run in autocommit.
        ours = hrana.And((hrana.Ok(len(steps) - 1), hrana.Not(hrana.IsAutocommit())))
        steps.append(hrana.Step(statement, ours))
    rollback = hrana.Statement("ROLLBACK", want_rows=False)
    steps.append(hrana.Step(rollback, hrana.Not(hrana.IsAutocommit())))
    return hrana.Batch(steps)
