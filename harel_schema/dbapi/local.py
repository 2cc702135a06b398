"""Sessions on a local file or in memory: what the three local drivers have in common.

Foreign keys are off until `PRAGMA foreign_keys=ON`, on every driver: that is SQLite's own default
and stdlib's. libsql turns them on, which would make a copy or a rebuild of a table fire ON DELETE.
"""

from __future__ import annotations

import contextlib
import sqlite3
import weakref
from itertools import islice
from typing import TYPE_CHECKING, Any

from harel_schema.dbapi import failures, files
from harel_schema.dbapi.changes import effect
from harel_schema.dbapi.parameters import are_exact, bind
from harel_schema.dbapi.reads import one_by_one
from harel_schema.dbapi.session import CHUNK, CHUNK_BYTES, Description, Effect, Result, Row
from harel_schema.dbapi.statements import Kind, Statement, plain_count, pragma, read
from harel_schema.dbapi.waiting import patiently
from harel_schema.errors import BusyError, DatabaseError, NotSupportedError, OperationalError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from harel_schema.dbapi.parameters import Parameters, Value
    from harel_schema.target import Target

__all__ = ["LocalSession", "Sqlite3Session"]

_ROLLBACK = read("ROLLBACK")
_OF_LIBSQL = read("SELECT 1 FROM sqlite_schema WHERE sql LIKE '%libsql_vector_idx%'")
# PRAGMAs that change the file although the connection is query_only: each, or given a value.
_WRITING = frozenset({"OPTIMIZE", "WAL_CHECKPOINT"})
_SETTING = frozenset({"JOURNAL_MODE", "QUERY_ONLY"})


class Stream:
    """A query that is still open; letting go of it ends the read."""

    __slots__ = ("__weakref__", "_fetch", "cursor")

    def __init__(self, fetch: Callable[[Any], tuple[list[Row], bool]], cursor: Any) -> None:
        self.cursor = cursor
        self._fetch = fetch

    def more(self) -> list[Row]:
        """Return the next rows; an empty list at the end."""
        if self.cursor is None:
            return []
        rows, ended = self._fetch(self.cursor)
        if ended:
            self.cursor = None
        return rows


class LocalSession:
    """Transactions, lock waits and read-only rules; a subclass runs one statement once."""

    driver: str

    def __init__(self, target: Target, *, timeout: float, read_only: bool) -> None:
        self.where = str(target)
        self._timeout = timeout
        self._read_only = read_only
        self._snapshot = False
        self._deferred = False
        self._streams: weakref.WeakSet[Stream] = weakref.WeakSet()
        self._raw: Any = None
        self._lease: files.Lease | None = None
        try:
            self._open_file(target)
            self._configure()
        except BaseException:
            self.close()
            raise

    def _open_file(self, target: Target) -> None:
        if target.path is None:
            self._raw = self._connect(":memory:")
        else:
            self._lease = files.use(target, self.driver, create=not self._read_only)
            self._raw = self._connect(files.open_uri(target.path, read_only=self._read_only))

    def _connect(self, name: str) -> Any:
        raise NotImplementedError

    def _run(self, statement: Statement, values: tuple[Value, ...]) -> Result:
        """Run a statement once; raise the mapped error."""
        raise NotImplementedError

    def _configure(self) -> None:
        if self._read_only:
            self._run(read("PRAGMA query_only=1"), ())

    @property
    def in_transaction(self) -> bool:
        """Whether a transaction is open, as SQLite itself says."""
        return bool(self._raw.in_transaction)

    def run(self, statement: Statement, values: tuple[Value, ...], begin: str | None) -> Result:
        """Run a statement; see `Session`."""
        if begin is None:
            return self._attempt(statement, values)
        self._attempt(read(f"BEGIN {begin}"), ())
        try:
            return self._attempt(statement, values)
        except BaseException:
            self._undo()
            raise

    def run_many(
        self, statement: Statement, rows: Iterable[tuple[Value, ...]], begin: str | None
    ) -> int:
        """Run a statement once a row; see `Session`."""
        count = 0
        for values in rows:
            count += self.run(statement, values, begin).rowcount
            begin = None
        return count

    def run_all(
        self, statements: Iterable[tuple[str, Parameters]], *, must_change: bool
    ) -> list[Effect]:
        """Run statements in the open transaction; see `Session`.

        Written for speed: a commit of the store spends its time here. What is plain goes to the
        driver as it is, and a value is looked at again only to explain why the driver refused it.
        """
        effects = []
        change = self._change
        for sql, parameters in statements:
            if (
                type(parameters) is tuple
                and len(parameters) == plain_count(sql)
                and are_exact(parameters)
                and not self._read_only
            ):
                effects.append(change(sql, parameters))
            else:
                effects.append(effect(self, sql, parameters))
            if must_change and not effects[0].rowcount:
                break
        return effects

    def _change(self, sql: str, values: tuple[Value, ...]) -> Effect:
        """Run a plain change, and wait for nobody; the values are of SQLite's own types."""
        raise NotImplementedError

    def run_script(self, statements: Sequence[Statement]) -> None:
        """Run statements one after another; see `Session`."""
        for statement in statements:
            self._attempt(statement, ())

    def run_reads(self, statements: Sequence[Statement]) -> list[list[Row] | None]:
        """Run reads in one transaction; see `Session`."""
        return one_by_one(self, statements)

    def sync(self) -> None:
        """Refuse: there is no primary to sync with."""
        raise NotSupportedError("only an embedded replica can sync", remedy="connect with sync_url")

    def interrupt(self) -> None:
        """Refuse: the libsql libraries have no way to do it."""
        raise NotSupportedError(
            f"{self.driver} cannot interrupt a statement", remedy="use driver='sqlite3'"
        )

    def close(self) -> None:
        """Close the connection and give the file free."""
        raw, self._raw = self._raw, None
        for stream in list(self._streams):
            stream.cursor = None
        try:
            if raw is not None:
                raw.close()
        finally:
            if self._lease is not None:
                self._lease.release()

    def discard(self) -> None:
        """Close: that is as quick as letting go."""
        self.close()

    def abandon(self) -> None:
        """Keep the driver's connection for ever: closing it is the parent's business."""
        import ctypes  # noqa: PLC0415 - only a forked child needs it

        # Not even the end of the child may run the driver's destructor: it would look for
        # threads and locks that only the parent has.
        for kept in (self._raw, *(stream.cursor for stream in self._streams)):
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(kept))
        self._raw = None
        self._lease = None

    def _read(self, description: Description, cursor: Any) -> Result:
        """Return the first rows of a query, and a way to the next where there are more."""
        rows, ended = self._fetch(cursor)
        if ended:
            return Result(description, rows)
        stream = Stream(self._fetch, cursor)
        self._streams.add(stream)
        return Result(description, rows, stream.more)

    def _fetch(self, cursor: Any) -> tuple[list[Row], bool]:
        """Return the next rows, up to `CHUNK`, and whether they are the last.

        It is not called again after the end.
        """
        raise NotImplementedError

    def _undo(self) -> None:
        if self.in_transaction:
            self._run(_ROLLBACK, ())
        self._deferred = self._snapshot = False

    def _attempt(self, statement: Statement, values: tuple[Value, ...]) -> Result:
        if self._read_only:
            self._refuse_writes(statement)
        try:
            result = self._run(statement, values)
        except BusyError as busy:
            if self._is_hopeless(statement, busy):
                raise
            result = patiently(lambda: self._run(statement, values), self._timeout, busy)
        if self._deferred or statement.kind is not Kind.READ:
            self._note(statement)
        return result

    def _is_hopeless(self, statement: Statement, busy: BusyError) -> bool:
        """Whether waiting cannot help: a transaction that has read cannot catch up to write.

        Its snapshot is older than what the holder of the lock is about to commit, and without
        WAL the holder may be waiting for our read lock.
        """
        if busy.code == "SQLITE_BUSY_SNAPSHOT":
            return True
        upgrade = self._deferred and self._snapshot and statement.kind is not Kind.COMMIT
        return upgrade and self.in_transaction

    def _note(self, statement: Statement) -> None:
        match statement.kind:
            case Kind.BEGIN:
                self._deferred, self._snapshot = statement.mode == "DEFERRED", False
            case Kind.SAVEPOINT if not self._deferred:
                self._deferred, self._snapshot = True, False
            case Kind.READ:
                self._snapshot = True
            case Kind.WRITE | Kind.SCHEMA:
                self._deferred = False
            case Kind.COMMIT | Kind.ROLLBACK if not self.in_transaction:
                self._deferred = False

    def _refuse_writes(self, statement: Statement) -> None:
        writes = statement.verb == "VACUUM"
        if statement.kind is Kind.PRAGMA:
            name, given = pragma(statement)
            writes = name in _WRITING or (given and name in _SETTING)
        if writes:
            raise OperationalError(
                f"{self.where}: the connection is read-only", code="SQLITE_READONLY"
            )


class Sqlite3Session(LocalSession):
    """A connection of stdlib `sqlite3`: exact, and free of the GIL while it works."""

    driver = "sqlite3"
    _raw: sqlite3.Connection

    def _connect(self, name: str) -> sqlite3.Connection:
        try:
            return sqlite3.connect(
                name, timeout=0, isolation_level=None, check_same_thread=False, uri=True
            )
        except failures.OF_SQLITE3 as error:
            raise failures.from_sqlite3(error, self.where) from error

    def _run(self, statement: Statement, values: tuple[Value, ...]) -> Result:
        try:
            cursor = self._raw.execute(statement.body, _arguments(statement, values))
            if cursor.description is None:
                return self._changes(statement, cursor)
            return self._rows(statement, cursor)
        except failures.OF_SQLITE3 as error:
            failure = failures.from_sqlite3(error, self.where)
            if statement.kind is not Kind.ROLLBACK or failure.code != "SQLITE_INTERRUPT":
                raise failure from error
        # No statement gets through as long as a read that was interrupted is open.
        for stream in list(self._streams):
            if stream.cursor is not None:
                stream.cursor.close()
        return self._run(statement, values)

    def _change(self, sql: str, values: tuple[Value, ...]) -> Effect:
        try:
            cursor = self._raw.execute(sql, values)
        except (OverflowError, UnicodeEncodeError):
            bind(read(sql), values)
            raise
        except failures.OF_SQLITE3 as error:
            raise failures.from_sqlite3(error, self.where) from error
        return Effect(cursor.rowcount, cursor.lastrowid)

    def _changes(self, statement: Statement, cursor: sqlite3.Cursor) -> Result:
        if statement.kind is not Kind.WRITE:
            return Result()
        rowcount = cursor.rowcount
        if rowcount < 0:
            # stdlib counts only behind a first word that it knows, and WITH is none of them.
            (rowcount,) = self._raw.execute("SELECT changes()").fetchone()
        lastrowid = cursor.lastrowid if statement.inserts else None
        return Result(rowcount=rowcount, lastrowid=lastrowid)

    def run_many(
        self, statement: Statement, rows: Iterable[tuple[Value, ...]], begin: str | None
    ) -> int:
        """Run a statement once a row, prepared once where no row has to wait for a lock."""
        if (
            self._deferred
            or statement.main
            or statement.returning >= 0
            or not (begin or self.in_transaction)
        ):
            return super().run_many(statement, rows, begin)
        if begin:
            self._attempt(read(f"BEGIN {begin}"), ())
        taken = 0

        def counted() -> Iterator[tuple[Value, ...]]:
            nonlocal taken
            for taken, row in enumerate(rows, 1):  # noqa: B007 - read after a failure
                yield row

        try:
            arguments = (_arguments(statement, row) for row in counted())
            return self._raw.executemany(statement.body, arguments).rowcount
        except BaseException as error:
            if begin and taken <= 1:
                self._undo()
            if isinstance(error, failures.OF_SQLITE3):
                raise failures.from_sqlite3(error, self.where) from error
            raise

    def _rows(self, statement: Statement, cursor: sqlite3.Cursor) -> Result:
        if statement.kind is Kind.READ:
            return self._read(cursor.description, cursor)
        result = Result(cursor.description, cursor.fetchall())
        if statement.kind is Kind.WRITE:
            result.rowcount = len(result.rows)
            result.lastrowid = cursor.lastrowid if statement.inserts else None
        return result

    def needs_libsql(self) -> bool:
        """Whether the schema has something that only libSQL understands."""
        try:
            return bool(self._run(_OF_LIBSQL, ()).rows)
        except DatabaseError as error:
            return "malformed database schema" in error.message

    def _fetch(self, cursor: sqlite3.Cursor) -> tuple[list[Row], bool]:
        rows: list[Row] = []
        size = 0
        try:
            for row in islice(cursor, CHUNK):
                rows.append(row)
                # Inline, and by the exact class: the copy of a database spends its time here.
                for cell in row:
                    kind = cell.__class__
                    if kind is str or kind is bytes:
                        size += len(cell)
                if size > CHUNK_BYTES:
                    return rows, False
        except failures.OF_SQLITE3 as error:
            raise failures.from_sqlite3(error, self.where) from error
        return rows, len(rows) < CHUNK

    def interrupt(self) -> None:
        """Stop the statement that another thread runs; it raises `OperationalError` there."""
        raw = self._raw
        # Closed meanwhile: then nothing runs.
        if raw is not None:
            with contextlib.suppress(sqlite3.ProgrammingError):
                raw.interrupt()

    def create_function(
        self, name: str, narg: int, function: Callable[..., Value], *, deterministic: bool
    ) -> None:
        """Let SQL call a function of Python."""
        self._raw.create_function(name, narg, function, deterministic=deterministic)


def _arguments(
    statement: Statement, values: tuple[Value, ...]
) -> tuple[Value, ...] | dict[str, Value]:
    """Return the values as stdlib wants them: by name where the placeholders have names."""
    # stdlib warns of a sequence from Python 3.12 on, and refuses it from 3.14 on.
    return values if statement.names is None else dict(zip(statement.names, values, strict=True))
