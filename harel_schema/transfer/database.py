"""What a copy asks of a database, be it a file or a server, and how it asks again.

Both are read by streams of rows in one snapshot, and written by transactions that happen whole
or not at all, and once.
"""

from __future__ import annotations

import random
import time
from dataclasses import dataclass
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, TypeVar

from harel_schema.errors import (
    ConnectionLost,
    OperationalError,
    RequestTimeout,
    ServerError,
    TransactionLost,
    TransferError,
)
from harel_schema.transfer.layout import Query

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from contextlib import AbstractContextManager

    from harel_schema import hrana
    from harel_schema.introspect import Schema
    from harel_schema.rows import Row
    from harel_schema.target import Target
    from harel_schema.transfer.layout import Layout, Scan

__all__ = [
    "ATTEMPTS",
    "Cells",
    "Database",
    "Insert",
    "Prepared",
    "Run",
    "Work",
    "is_passing",
    "no_room",
    "number",
    "pause",
    "size_of",
]

ATTEMPTS = 6
"""How often a request is sent at most, while its failure may pass."""

_FIRST_WAIT = 0.05
_LONGEST_WAIT = 5.0
# SQLITE_MAX_VARIABLE_NUMBER, since SQLite 3.32.
_VARIABLES = 32_766
# A file that must not grow, by a quota or a limit, is an I/O error.
_NO_ROOM = ("SQLITE_FULL", "SQLITE_IOERR")
# What a gateway answers when it is overloaded, or its server is away for a moment.
_PASSING = (429, 502, 503, 504)


@dataclass(frozen=True, slots=True)
class Insert:
    """Rows to insert; `keep_existing` skips those whose key is there."""

    layout: Layout
    rows: Sequence[Row]
    keep_existing: bool = False

    def statements(self) -> Iterator[Query]:
        """Yield the statements, with as many rows in each as it has room for parameters.

        Python's lock is let go of while a statement runs: with many rows in each, another thread
        makes the next batch meanwhile.
        """
        most = max(1, _VARIABLES // len(self.layout.columns))
        left = iter(self.rows)
        while rows := list(islice(left, most)):
            sql = self.layout.insert(len(rows), keep_existing=self.keep_existing)
            yield Query(sql, tuple(chain.from_iterable(rows)))


_T = TypeVar("_T")
_SIZE = Query("SELECT page_count * page_size FROM pragma_page_count, pragma_page_size")

Cells: TypeAlias = tuple[Any, ...]
Run: TypeAlias = "tuple[int, Sequence[Row]]"
Work: TypeAlias = "Query | Insert | Prepared"


@dataclass(frozen=True, slots=True)
class Prepared:
    """Work in the form in which it is sent."""

    statements: Sequence[hrana.Encoded]


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

    def survey(self, queries: Sequence[Query]) -> list[list[Cells]]:
        """Return the rows of small results, each of which may take minutes, in one request."""

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

    def prepare(self, insert: Insert) -> Work:
        """Return `insert` so that `transact`, which may run in another thread, takes less time."""

    def transact(self, work: Sequence[Work], applied: Callable[[], bool]) -> None:
        """Do `work` in one transaction, once.

        `applied` tells whether it is done: asked when the answer to a request is lost, and when
        a constraint fails because an earlier request was applied after all. `work` must fail
        the second time. Raises `TransferError` when the server cannot be reached.
        """

    def patiently(self, action: Callable[[], _T]) -> _T:
        """Return what `action`, which only reads, gives; repeat it while its failure may pass."""

    def may_pass(self, error: OperationalError) -> bool:
        """Return whether what failed so is worth another try, at once or a little later."""

    def close(self) -> None:
        """Let go of the database."""


def no_room(error: BaseException, where: str = "") -> TransferError | None:
    """Return what a copy says of a disk that is full at `where`; None for any other error."""
    if not isinstance(error, OperationalError) or not (error.code or "").startswith(_NO_ROOM):
        return None
    return TransferError(
        f"{where}{error.message}",
        remedy="free some disk space, and run the same command again: it goes on where this one "
        "stopped",
    )


def is_passing(error: OperationalError) -> bool:
    """Return whether the same request may succeed a little later.

    A timeout is final, and so is a lock that was waited for: the time is spent.
    """
    if isinstance(error, ServerError):
        return error.status in _PASSING
    passing = isinstance(error, ConnectionLost | TransactionLost)
    return passing and not isinstance(error, RequestTimeout)


def pause(attempt: int) -> None:
    """Wait before attempt number `attempt`, from 0; the first repetition comes at once."""
    if attempt > 1:
        time.sleep(random.random() * min(_LONGEST_WAIT, _FIRST_WAIT * 2**attempt))  # noqa: S311


def number(database: Database, query: Query) -> int:
    """Return the only cell of a result, a number."""
    ((found,),) = database.query(query)
    if not isinstance(found, int):
        raise TransferError(f"{database.target} answered {found!r} instead of a number")
    return found


def size_of(database: Database) -> int:
    """Return the size of a database in bytes, indexes and free pages included."""
    return number(database, _SIZE)
