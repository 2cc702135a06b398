"""The two kinds of database that rows are moved between: a local file, and a server.

Both are read by streams of rows in one snapshot, and written by transactions that happen whole
or not at all, and once. What differs is how: a file is read and written by one connection of
`harel_schema.dbapi`, a server by Hrana batches, one request a transaction.
"""

from __future__ import annotations

import random
import time
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext
from dataclasses import dataclass
from itertools import chain, islice
from math import inf
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, TypeVar

from harel_schema import dbapi, hrana, introspect
from harel_schema.errors import (
    BusyError,
    ConnectionLost,
    IntegrityError,
    OperationalError,
    ServerError,
    TransactionLost,
    TransferError,
)
from harel_schema.transfer.layout import Query
from harel_schema.transfer.paging import PageReader

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from harel_schema.introspect import Schema
    from harel_schema.rows import Row
    from harel_schema.target import Target
    from harel_schema.transfer.layout import Layout, Scan
    from harel_schema.transfer.paging import Run

__all__ = [
    "Database",
    "Insert",
    "LocalDatabase",
    "RemoteDatabase",
    "Work",
    "is_passing",
    "number",
    "open_database",
    "patiently",
    "pause",
    "size_of",
]

_TIMEOUT = 60.0
_ATTEMPTS = 6
_FIRST_WAIT = 0.05
_LONGEST_WAIT = 5.0
# What a gateway answers when it is overloaded, or its server is away for a moment.
_PASSING = (429, 502, 503, 504)
# SQLITE_MAX_VARIABLE_NUMBER of a server.
_VARIABLES = 32_766
# Steps of a transaction before the first statement: PRAGMA, BEGIN.
_PREAMBLE = 2


@dataclass(frozen=True, slots=True)
class Insert:
    """Rows to insert; `keep_existing` skips those whose key is there."""

    layout: Layout
    rows: Sequence[Row]
    keep_existing: bool = False


_T = TypeVar("_T")
_SIZE = Query("SELECT page_count * page_size FROM pragma_page_count, pragma_page_size")

Cells: TypeAlias = tuple[Any, ...]
Work: TypeAlias = Query | Insert


class Database(Protocol):
    """A database that rows are read from or written to."""

    target: Target

    @property
    def remote(self) -> bool:
        """Whether a server holds it."""

    @property
    def round_trip(self) -> float:
        """The seconds that the shortest answer has taken so far; 0 for a file."""

    def schema(self, prefix: str | None) -> Schema:
        """Read the schema, and the rows of the version table of `prefix`."""

    def query(self, query: Query) -> list[Cells]:
        """Return the rows of a small result."""

    def snapshot(self) -> AbstractContextManager[None]:
        """Hold one state of a file for all that is read inside; a server cannot."""

    def stream(self, queries: Sequence[Query]) -> Iterator[tuple[int, Cells]]:
        """Yield the rows of `queries`, each with the position of its query, in one snapshot.

        The memory in use does not grow with the result.
        """

    def scan(self, scans: Sequence[Scan]) -> Iterator[Run]:
        """Yield the rows of `scans` in runs, each with the position of its scan, in one snapshot.

        As `stream`, but faster. No run is empty.
        """

    def transact(self, work: Sequence[Work], applied: Callable[[], bool]) -> None:
        """Do `work` in one transaction, once.

        `applied` tells whether it is done: asked when the answer to a request is lost, and when
        a constraint fails because an earlier request was applied after all. `work` must fail
        the second time. Raises `TransferError` when the server cannot be reached.
        """

    def close(self) -> None:
        """Let go of the database."""


@contextmanager
def open_database(
    target: Target, *, read_only: bool, timeout: float = _TIMEOUT
) -> Iterator[Database]:
    """Open `target`; for reading it is opened so that nothing is created or changed.

    `timeout` is how many seconds to wait for a lock, or for a silent server. Raises what
    `harel_schema.dbapi.connect` raises.
    """
    database: Database
    if target.url is not None:
        client = hrana.Client(target.url, auth_token=target.auth_token, timeout=timeout)
        database = RemoteDatabase(target, client)
    else:
        connection = dbapi.connect(
            target,
            driver="sqlite3",
            isolation_level=None,
            timeout=timeout,
            read_only=read_only,
            check_same_thread=False,
        )
        database = LocalDatabase(target, connection)
    try:
        yield database
    finally:
        database.close()


def is_passing(error: OperationalError) -> bool:
    """Return whether the same request may succeed a little later."""
    if isinstance(error, ServerError):
        return error.status in _PASSING
    return isinstance(error, ConnectionLost | BusyError | TransactionLost)


def pause(attempt: int) -> None:
    """Wait before attempt number `attempt`, from 0; the first repetition comes at once."""
    if attempt > 1:
        time.sleep(random.random() * min(_LONGEST_WAIT, _FIRST_WAIT * 2**attempt))  # noqa: S311


def patiently(action: Callable[[], _T]) -> _T:
    """Return what `action`, which only reads, gives; repeat it while its failure may pass."""
    attempt = 0
    while True:
        pause(attempt)
        try:
            return action()
        except OperationalError as exc:
            attempt += 1
            if attempt == _ATTEMPTS or not is_passing(exc):
                raise


def number(database: Database, query: Query) -> int:
    """Return the only cell of a result, a number."""
    ((found,),) = database.query(query)
    if not isinstance(found, int):
        raise TransferError(f"{database.target} answered {found!r} instead of a number")
    return found


def size_of(database: Database) -> int:
    """Return the size of a database in bytes, indexes and free pages included."""
    return number(database, _SIZE)


class LocalDatabase:
    """A file, by one connection."""

    remote = False
    round_trip = 0.0

    def __init__(self, target: Target, connection: dbapi.Connection) -> None:
        self.target = target
        self._connection = connection

    def schema(self, prefix: str | None) -> Schema:
        """See `Database`."""
        return introspect.read(self._connection, prefix=prefix)

    def query(self, query: Query) -> list[Cells]:
        """See `Database`."""
        return self._connection.execute(*query).fetchall()

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """See `Database`."""
        self._connection.begin("DEFERRED")
        try:
            # A deferred transaction has no snapshot before its first read.
            self.query(Query("SELECT count(*) FROM sqlite_schema"))
            yield
        finally:
            self._connection.rollback()

    def stream(self, queries: Sequence[Query]) -> Iterator[tuple[int, Cells]]:
        """See `Database`; the snapshot is that of the transaction that is open."""
        for position, query in enumerate(queries):
            for row in self._connection.execute(*query):
                yield position, row

    def scan(self, scans: Sequence[Scan]) -> Iterator[Run]:
        """See `Database`; the snapshot is that of the transaction that is open."""
        for position, scan in enumerate(scans):
            for run in self._connection.execute(*scan.query()).runs():
                yield position, run

    def transact(self, work: Sequence[Work], applied: Callable[[], bool]) -> None:
        """See `Database`. A file's answer is never lost, so `applied` is not asked."""
        del applied
        self._connection.begin("IMMEDIATE")
        try:
            for item in work:
                if isinstance(item, Insert):
                    sql = item.layout.insert(keep_existing=item.keep_existing)
                    self._connection.executemany(sql, item.rows)
                else:
                    self._connection.execute(*item)
            self._connection.commit()
        except BaseException:
            self._connection.rollback()
            raise

    def close(self) -> None:
        """See `Database`."""
        self._connection.close()


class RemoteDatabase:
    """A libSQL server, by Hrana."""

    remote = True

    def __init__(self, target: Target, client: hrana.Client) -> None:
        self.target = target
        self.round_trip = inf
        self._client = client

    def schema(self, prefix: str | None) -> Schema:
        """See `Database`."""

        def read() -> Schema:
            connected = dbapi.connect(self.target, timeout=_TIMEOUT, read_only=True)
            with closing(connected) as connection:
                return introspect.read(connection, prefix=prefix)

        return patiently(read)

    def query(self, query: Query) -> list[Cells]:
        """See `Database`."""
        statement = hrana.Statement(*query)
        started = time.monotonic()
        found = patiently(lambda: self._client.execute(statement, idempotent=True).rows)
        self.round_trip = min(self.round_trip, time.monotonic() - started)
        return found

    def snapshot(self) -> AbstractContextManager[None]:
        """See `Database`."""
        return nullcontext()

    def stream(self, queries: Sequence[Query]) -> Iterator[tuple[int, Cells]]:
        """See `Database`; one streamed request."""
        statements = [hrana.Statement(*query) for query in queries]
        entries = self._client.cursor(_in_transaction(statements, begin="BEGIN"))
        position = 0
        for entry in entries:
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
        with PageReader(self._client, scans) as pages:
            yield from pages

    def transact(self, work: Sequence[Work], applied: Callable[[], bool]) -> None:
        """See `Database`."""
        statements = list(chain.from_iterable(map(_statements, work)))
        batch = _in_transaction(statements, begin="BEGIN IMMEDIATE")
        failure: OperationalError | None = None
        for attempt in range(_ATTEMPTS):
            pause(attempt)
            try:
                if failure is not None and applied():
                    return
                self._send(batch)
            except IntegrityError:
                if applied():
                    return
                raise
            except OperationalError as exc:
                if not is_passing(exc):
                    raise
                failure = exc
            else:
                return
        raise TransferError(
            f"{self.target}: gave up after {_ATTEMPTS} attempts: {failure}",
            remedy="run the same command again; it goes on where this one stopped",
        ) from failure

    def _send(self, batch: hrana.Batch) -> None:
        result = self._client.batch(batch)
        if result.results[-2] is not None:
            return
        error = next((error for error in result.errors if error is not None), None)
        raise error or TransactionLost("the server ended the transaction")

    def close(self) -> None:
        """See `Database`."""
        self._client.close()


def _statements(work: Work) -> Iterator[hrana.Statement]:
    if not isinstance(work, Insert):
        yield hrana.Statement(*work, want_rows=False)
        return
    most = max(1, _VARIABLES // len(work.layout.columns))
    left = iter(work.rows)
    while rows := list(islice(left, most)):
        sql = work.layout.insert(len(rows), keep_existing=work.keep_existing)
        yield hrana.Statement(sql, tuple(chain.from_iterable(rows)), want_rows=False)


def _in_transaction(statements: Sequence[hrana.Statement], *, begin: str) -> hrana.Batch:
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
