"""A libSQL server as an end of a copy: written by batches, one request a transaction."""

from __future__ import annotations

import threading
import time
from concurrent.futures import Future, wait
from contextlib import AbstractContextManager, closing, nullcontext
from itertools import chain, islice
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
from harel_schema.transfer.paging import Pages, hand_on

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Iterator, Sequence

    from harel_schema.introspect import Schema
    from harel_schema.target import Target
    from harel_schema.transfer.database import Cells, Run, Work
    from harel_schema.transfer.layout import Scan

__all__ = ["RemoteDatabase"]

# SQLITE_MAX_VARIABLE_NUMBER of a server.
_VARIABLES = 32_766
# Steps of a transaction before the first statement: PRAGMA, BEGIN.
_PREAMBLE = 2
# Seconds for an answer after which rows are streamed: they come slower, but without waiting.
_FAR = 0.005
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
        if self._shortest == inf:
            # The first request opens the connection.
            for _ in range(2):
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
        for position, run in self._streamed(queries):
            for row in run:
                yield position, row

    def _streamed(self, queries: Sequence[Query]) -> Generator[Run]:
        statements = [hrana.Statement(*query) for query in queries]
        entries = self._client.cursor(_in_transaction(statements, begin="BEGIN"))
        position = 0
        for entry in entries:
            match entry:
                case hrana.StepBegin(step):
                    position = step - _PREAMBLE
                case hrana.Rows(rows):
                    yield position, rows
                case hrana.StepError(_, error):
                    raise error

    def scan(self, scans: Sequence[Scan]) -> Iterator[Run]:
        """See `Database`; read ahead in a thread of its own."""
        if self.round_trip > _FAR:
            runs = self._streamed([scan.query() for scan in scans])
            reader = ReadAhead(lambda ahead: hand_on(runs, ahead))
        else:
            reader = ReadAhead(Pages(self._client, scans))
        with reader as ahead:
            yield from ahead

    def prepare(self, insert: Insert) -> Work:
        """See `Database`."""
        return Prepared(list(map(hrana.encode_statement, _inserts(insert))))

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
        return _inserts(work)
    return [hrana.Statement(*work, want_rows=False)]


def _inserts(work: Insert) -> Iterator[hrana.Statement]:
    most = max(1, _VARIABLES // len(work.layout.columns))
    left = iter(work.rows)
    while rows := list(islice(left, most)):
        sql = work.layout.insert(len(rows), keep_existing=work.keep_existing)
        yield hrana.Statement(sql, tuple(chain.from_iterable(rows)), want_rows=False)


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
