"""A session on a libSQL server: one Hrana stream, one request a statement.

Every request also asks whether a transaction is still open, and every statement of a transaction
carries the condition that it is: a statement never runs in autocommit by mistake. The server
ends a transaction older than 5 s when another writer waits, and a stream after 10 s of silence.
Then the transaction is lost: `TransactionLost`, and nothing more is sent until `rollback`.
"""

from __future__ import annotations

import weakref
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from harel_schema import errors as e
from harel_schema.dbapi import steps
from harel_schema.dbapi.changes import in_order
from harel_schema.dbapi.channel import OPEN, Channel
from harel_schema.dbapi.reads import one_by_one
from harel_schema.dbapi.session import Result, Row
from harel_schema.dbapi.statements import Kind, Statement, pragma
from harel_schema.dbapi.waiting import patiently
from harel_schema.hrana import messages as m
from harel_schema.hrana.client import Client

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Sequence

    from harel_schema.dbapi.parameters import Parameters, Value
    from harel_schema.dbapi.session import Effect
    from harel_schema.target import Target

__all__ = ["RemoteSession"]

T = TypeVar("T")

_LOST = "the transaction was lost: the server ended it, and rolled it back"
_REMEDY = "roll back, and run it again from its beginning"
_SCRIPT_CHUNK = 100


class RemoteSession:
    """A connection to a libSQL server over Hrana."""

    driver = "hrana"

    def __init__(
        self, target: Target, *, timeout: float, request_timeout: float, read_only: bool
    ) -> None:
        assert target.url is not None  # noqa: S101 - the caller has a server
        self.where = str(target)
        self._timeout = timeout
        self._read_only = read_only
        self._client = Client(target.url, auth_token=target.auth_token, timeout=request_timeout)
        self._channel = Channel(self._client)
        self._open = False
        self._lost = False
        self._pending: weakref.ref[_Rest] | None = None

    @property
    def in_transaction(self) -> bool:
        """Whether a transaction is open, or was lost and waits for `rollback`."""
        return self._open or self._lost

    def run(self, statement: Statement, values: tuple[Value, ...], begin: str | None) -> Result:
        """Run a statement in one request, its BEGIN included; see `Session`."""
        if statement.kind is Kind.ROLLBACK and statement.mode != "TO":
            return self._roll_back()
        self._admit(statement)
        try:
            return self._patiently(statement, partial(self._once, statement, values, begin))
        except e.ConnectionLost as error:
            if self._open or self._lost or not _is_repeatable(statement, error):
                raise
        return self._once(statement, values, begin)

    def run_many(
        self, statement: Statement, rows: Iterable[tuple[Value, ...]], begin: str | None
    ) -> int:
        """Run a statement once a row, many rows a request; see `Session`."""
        self._admit(statement)
        count = 0
        for chunk in steps.chunks(rows):
            count += self._patiently(statement, partial(self._rows, statement, chunk, begin))
            begin = None
        return count

    def run_all(
        self, statements: Iterable[tuple[str, Parameters]], *, must_change: bool
    ) -> list[Effect]:
        """Run statements in their order, one a request; see `Session`."""
        return in_order(self, statements, must_change=must_change)

    def run_script(self, statements: Sequence[Statement]) -> None:
        """Run statements in their order, many a request; see `Session`."""
        for statement in statements:
            self._admit(statement)
        for at in range(0, len(statements), _SCRIPT_CHUNK):
            chunk = statements[at : at + _SCRIPT_CHUNK]
            try:
                self._chain(steps.script(chunk, OPEN if self._open else None))
            except e.Error as error:
                if error.code != "SQL_PARSE_ERROR":
                    raise
                # The server parses a whole batch before it runs any of it. SQLite does not.
                for statement in chunk:
                    self.run(statement, (), None)

    def run_reads(self, statements: Sequence[Statement]) -> list[list[Row] | None]:
        """Run reads in one request on a stream of their own; see `Session`."""
        if self.in_transaction:
            return one_by_one(self, statements)
        for statement in statements:
            self._admit(statement)
        try:
            return self._channel.read(statements)
        except e.Error as error:
            if error.code != "RESPONSE_TOO_LARGE":
                raise
        return one_by_one(self, statements)

    def sync(self) -> None:
        """Refuse: every read is the primary's."""
        raise e.NotSupportedError(
            "only an embedded replica can sync", remedy="connect with sync_url"
        )

    def interrupt(self) -> None:
        """Refuse: Hrana has no way to do it."""
        raise e.NotSupportedError("a statement on a server cannot be interrupted")

    def close(self) -> None:
        """Close the stream and the HTTP connections; see `Session`."""
        self._open = self._lost = False
        rest = self._pending and self._pending()
        if rest:
            rest.close()
        self._channel.close()
        self._client.close()

    def discard(self) -> None:
        """Hang up; the server rolls back when the stream expires. See `Session`."""
        self._channel.drop()
        self._client.close()

    def abandon(self) -> None:
        """Leave the parent's sockets alone; see `Session`."""
        self._channel.drop()

    def _once(self, statement: Statement, values: tuple[Value, ...], begin: str | None) -> Result:
        guard = OPEN if self._open else None
        step = steps.of(statement, values)
        plan = steps.one(step, guard, begin, star=statement.star)
        try:
            results = self._chain(plan, ends=statement.kind is Kind.COMMIT)
        except e.Error as error:
            if error.code != "RESPONSE_TOO_LARGE" or statement.kind is not Kind.READ:
                raise
            return self._stream(m.Step(step, guard))
        if statement.kind is Kind.PRAGMA:
            self._remember(statement)
        return steps.result(statement, results[0])

    def _rows(self, statement: Statement, rows: list[tuple[Value, ...]], begin: str | None) -> int:
        guard = OPEN if self._open else None
        results = self._chain(steps.many(statement, rows, guard, begin))
        return sum(result.affected_row_count for result in results)

    def _chain(self, plan: steps.Plan, *, ends: bool = False) -> list[m.StatementResult]:
        """Run a chain of steps and return the results of those that matter.

        Raises the first error. A step that was skipped although nothing failed before it found
        no open transaction.
        """
        self._drain()
        was_open = self._open
        try:
            batch, autocommit = self._channel.send(plan.steps, fresh=not was_open)
        except BaseException as error:
            self._open = False
            # What came of a COMMIT without an answer is for the caller to find out.
            self._lost = was_open and not (ends and isinstance(error, e.ConnectionLost))
            raise
        self._open = not autocommit
        if isinstance(batch, e.Error):
            raise batch
        for failure in filter(None, batch.errors):
            raise self._note(failure, was_open=was_open)
        found = [result for result in batch.results[plan.first : plan.last] if result is not None]
        if len(found) < plan.last - plan.first:
            raise self._note(e.TransactionLost(_LOST, remedy=_REMEDY), was_open=was_open)
        return found

    def _note(self, error: e.Error, *, was_open: bool) -> e.Error:
        if isinstance(error, e.TransactionLost) and was_open:
            self._open, self._lost = False, True
        return error

    def _roll_back(self) -> Result:
        """End the transaction; that it is gone already is no failure."""
        lost, self._lost = self._lost, False
        if lost:
            return Result()
        if not self._open:
            raise e.OperationalError("cannot rollback - no transaction is active")
        try:
            self._chain(steps.one(m.Statement("ROLLBACK"), OPEN, None))
        except (e.TransactionLost, e.ConnectionLost):
            self._open = self._lost = False
        return Result()

    def _stream(self, step: m.Step) -> Result:
        """Read a result that is too large for one response, as it arrives."""
        entries = self._channel.cursor(step, fresh=not self._open)
        first = next(entries, None)
        if isinstance(first, m.StepError):
            raise self._note(first.error, was_open=self._open)
        if not isinstance(first, m.StepBegin):
            raise self._note(e.TransactionLost(_LOST, remedy=_REMEDY), was_open=self._open)
        rest = _Rest(entries)
        self._pending = weakref.ref(rest)
        return Result(steps.description(first.columns), (), rest.more)

    def _drain(self) -> None:
        """Read a streamed result to its end: the stream takes one request at a time."""
        rest = self._pending and self._pending()
        if rest:
            rest.drain()
        self._pending = None

    def _patiently(self, statement: Statement, action: Callable[[], T]) -> T:
        try:
            return action()
        except e.BusyError as busy:
            if self._open and statement.kind is not Kind.COMMIT:
                raise
            named = e.BusyError(f"{self.where}: {busy.message}", code=busy.code)
            return patiently(action, self._timeout, named)

    def _admit(self, statement: Statement) -> None:
        if self._lost:
            raise e.TransactionLost(_LOST, remedy=_REMEDY)
        if self._read_only and steps.writes(statement):
            raise e.OperationalError(
                f"{self.where}: the connection is read-only", code="SQLITE_READONLY"
            )

    def _remember(self, statement: Statement) -> None:
        name, given = pragma(statement)
        if given:
            self._channel.remember(name, statement.body)


class _Rest:
    """The rows of a streamed result that are still to come."""

    def __init__(self, entries: Generator[m.CursorEntry]) -> None:
        self._entries = entries
        self._rows: list[Row] = []

    def more(self) -> Sequence[Row]:
        """Return the next rows; an empty list at the end."""
        if self._rows:
            rows, self._rows = self._rows, []
            return rows
        for entry in self._entries:
            if isinstance(entry, m.Rows):
                return entry.rows
            if isinstance(entry, m.StepError):
                raise entry.error
        return []

    def drain(self) -> None:
        """Read what is left into memory."""
        rows: list[Row] = []
        while found := self.more():
            rows += found
        self._rows = rows

    def close(self) -> None:
        """Stop reading."""
        self._entries.close()


def _is_repeatable(statement: Statement, error: e.ConnectionLost) -> bool:
    # After a timeout the caller's patience is spent, whatever the statement.
    return statement.kind is Kind.READ and not isinstance(error, e.RequestTimeout)
