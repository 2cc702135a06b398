"""The connection and the cursor of every driver: PEP 249 over a `Session`."""

from __future__ import annotations

import contextlib
import os
import threading
import weakref
from typing import TYPE_CHECKING, Any

from harel_schema import errors, leases
from harel_schema.dbapi.cursor import Cursor
from harel_schema.dbapi.statements import Kind, Statement, read

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from types import TracebackType
    from typing import Self

    from harel_schema.dbapi.parameters import Parameters, Value
    from harel_schema.dbapi.session import Effect, Row, Session
    from harel_schema.target import Target

__all__ = ["Connection", "interrupt_all"]

_MODES = ("DEFERRED", "IMMEDIATE", "EXCLUSIVE")
_COMMIT = read("COMMIT")
_ROLLBACK = read("ROLLBACK")
_BEGIN = {mode: read(f"BEGIN {mode}") for mode in _MODES}
_CLOSED = "the connection is closed"
_FORKED = (
    "the connection belongs to the process that opened it, not to a fork of it; "
    "close a file before the fork; to a server connect again, with an engine after "
    "`engine.dispose(close=False)`"
)


class Connection:
    """A connection to a database, of whatever driver; `harel_schema.dbapi.connect` makes it.

    One thread at a time may use it, and with `check_same_thread` only the one that made it. After
    a fork the child's copy refuses every call but `close`, and never touches the driver.

    `target` is the database, `driver` the name of what speaks to it, `read_only` whether it refuses
    writes. As a context manager it commits, or rolls back on an error, and stays open.
    """

    Warning = errors.Warning
    Error = errors.Error
    InterfaceError = errors.InterfaceError
    DatabaseError = errors.DatabaseError
    DataError = errors.DataError
    OperationalError = errors.OperationalError
    IntegrityError = errors.IntegrityError
    InternalError = errors.InternalError
    ProgrammingError = errors.ProgrammingError
    NotSupportedError = errors.NotSupportedError

    def __init__(
        self,
        session: Session,
        target: Target,
        *,
        isolation_level: str | None = "IMMEDIATE",
        read_only: bool = False,
        check_same_thread: bool = True,
    ) -> None:
        self.target = target
        self.driver = session.driver
        self.read_only = read_only
        self.isolation_level = isolation_level
        self._session = session
        self._refusal: str | None = None
        self._thread = threading.get_ident() if check_same_thread else None
        self._lock = threading.Lock()
        _connections.add(self)

    def __repr__(self) -> str:
        state = f" ({self._refusal.partition('; ')[0]})" if self._refusal else ""
        return f"<Connection to {self.target} by {self.driver}{state}>"

    @property
    def usable(self) -> bool:
        """Whether the connection is open, and opened by this process and no parent of it."""
        return self._refusal is None

    @property
    def isolation_level(self) -> str | None:
        """The mode in which a transaction begins by itself, or None: it never does."""
        return self._isolation_level

    @isolation_level.setter
    def isolation_level(self, mode: str | None) -> None:
        self._isolation_level = None if mode is None else _mode(mode)

    @property
    def in_transaction(self) -> bool:
        """Whether a transaction is open; False again after SQLite itself rolled one back."""
        self._check()
        return self._session.in_transaction

    def cursor(self) -> Cursor:
        """Return a new cursor."""
        self._check()
        return Cursor(self)

    def execute(self, sql: str, parameters: Parameters = ()) -> Cursor:
        """Run one statement on a new cursor, and return the cursor."""
        return Cursor(self).execute(sql, parameters)

    def executemany(self, sql: str, parameters: Iterable[Parameters]) -> Cursor:
        """Run one statement for each set of parameters on a new cursor, and return the cursor."""
        return Cursor(self).executemany(sql, parameters)

    def executescript(self, script: str) -> Cursor:
        """Run the statements of a script on a new cursor, and return the cursor."""
        return Cursor(self).executescript(script)

    def execute_reads(self, statements: Sequence[str]) -> list[list[Row] | None]:
        """Run SELECTs without parameters on one snapshot and return the rows of each.

        None for a statement whose table does not exist. On a server this is ONE request, unless
        the answer is larger than the server sends in one.
        """
        with self._turn():
            return self._session.run_reads([read(sql) for sql in statements])

    def begin(self, mode: str | None = None) -> None:
        """Begin a transaction: in `mode`, else in that of `isolation_level`, else IMMEDIATE.

        Raises `OperationalError` when one is open, `BusyError` when the lock was not to be had.
        """
        statement = _BEGIN[_mode(mode or self._isolation_level or "IMMEDIATE")]
        with self._turn():
            self._session.run(statement, (), None)

    def execute_all(
        self, statements: Iterable[tuple[str, Parameters]], *, must_change: bool = False
    ) -> list[Effect]:
        """Run statements in their order and return what each did, in one call.

        For a transaction that holds the write lock, so begun IMMEDIATE: nothing is waited for. With
        `must_change` the first statement decides: when it changed no row, no other is run.
        """
        with self._turn():
            return self._session.run_all(statements, must_change=must_change)

    def commit(self) -> None:
        """Commit the transaction; does nothing outside of one.

        A commit that fails with `BusyError` leaves the transaction open, as SQLite does: call
        it again, or roll back.
        """
        self._end(_COMMIT)

    def rollback(self) -> None:
        """Roll the transaction back; does nothing outside of one."""
        self._end(_ROLLBACK)

    def sync(self) -> None:
        """Bring an embedded replica up to date; `NotSupportedError` for any other database."""
        with self._turn():
            self._session.sync()

    def interrupt(self) -> None:
        """Stop the statement that another thread runs, which raises `OperationalError` there.

        The one call that is meant for another thread. `NotSupportedError` unless by `sqlite3`.
        """
        if self._refusal is not None:
            raise errors.InterfaceError(self._refusal)
        self._session.interrupt()

    def create_function(
        self, name: str, narg: int, function: Callable[..., Value], *, deterministic: bool = False
    ) -> None:
        """Let SQL on this connection call `function` of `narg` arguments as `name`.

        `NotSupportedError` unless by `sqlite3`.
        """
        with self._turn():
            create = getattr(self._session, "create_function", None)
            if create is None:
                raise errors.NotSupportedError(f"{self.driver} cannot call functions of Python")
            create(name, narg, function, deterministic=deterministic)

    def close(self) -> None:
        """Close the connection; what is not committed is rolled back. May be called again."""
        if self._refusal is not None:
            return
        with self._turn():
            self._refusal = _CLOSED
            self._session.close()

    def __enter__(self) -> Self:
        self._check()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if kind is None:
            try:
                self.commit()
            except BaseException:
                self._roll_back_quietly()
                raise
        else:
            self._roll_back_quietly()

    def __del__(self) -> None:
        # An error of the constructor leaves an object without these.
        if getattr(self, "_refusal", _CLOSED) is None:
            with contextlib.suppress(errors.Error):
                self._session.discard()

    def _end(self, statement: Statement) -> None:
        with self._turn():
            if self._session.in_transaction:
                self._session.run(statement, (), None)

    def _roll_back_quietly(self) -> None:
        # The error that led here says more than one of the rollback would.
        with contextlib.suppress(errors.Error):
            self.rollback()

    def _turn(self) -> threading.Lock:
        """Return the lock to hold while one call of one thread uses the session.

        By ``with``: an interrupt may come after a call of `acquire`, and then nobody releases it.
        """
        self._check()
        if self._lock.locked():
            raise errors.ProgrammingError("two threads use the connection at once")
        return self._lock

    def _check(self) -> None:
        if self._refusal is not None:
            raise errors.InterfaceError(self._refusal)
        if self._thread is not None and self._thread != threading.get_ident():
            raise errors.ProgrammingError(
                "the connection belongs to the thread that opened it",
                remedy="connect with check_same_thread=False, and use it from one at a time",
            )

    def _mode_to_begin(self, statement: Statement) -> str | None:
        """Return the mode of the transaction that must begin before `statement`, or None."""
        if self._isolation_level is None or statement.kind not in (Kind.WRITE, Kind.SCHEMA):
            return None
        return None if self._session.in_transaction else self._isolation_level

    def _abandon(self) -> None:
        self._refusal = self._refusal or _FORKED
        self._lock = threading.Lock()
        self._session.abandon()


def _mode(mode: str) -> str:
    upper = mode.upper()
    if upper not in _MODES:
        raise errors.ProgrammingError(
            f"there is no isolation level {mode!r}", remedy=f"use {', '.join(_MODES)} or None"
        )
    return upper


_connections: weakref.WeakSet[Any] = weakref.WeakSet()


def interrupt_all() -> None:
    """Stop the statements that other threads run, by the drivers that can.

    For a thread that asks again and again: an open connection may be passed over once.
    """
    # RuntimeError: a connection was opened or let go meanwhile.
    with contextlib.suppress(RuntimeError):
        for connection in list(_connections):
            with contextlib.suppress(errors.InterfaceError, errors.NotSupportedError):
                connection.interrupt()


def _after_fork() -> None:
    for connection in list(_connections):
        connection._abandon()  # noqa: SLF001 - the same module
    leases.forget_after_fork()


os.register_at_fork(after_in_child=_after_fork)
