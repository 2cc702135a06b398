"""Sessions of the `libsql` and `libsql_experimental` libraries, made exact.

What they get wrong, and what is done about it here:

- An int outside 32 bits is bound as a REAL: such an int is written into the text as a literal.
- Text is read up to its first NUL, and text that is not UTF-8 is a panic: `exact` reads text as
  its bytes.
- `rowcount` adds up on a cursor, and fetching past the end runs the statement again: every
  execution has a cursor of its own, and nothing is fetched after the end.
- Both log to stdout as the environment's RUST_LOG says when they are imported: `load`.
"""

from __future__ import annotations

import importlib
import os
import threading
import traceback
from typing import TYPE_CHECKING, Any

from harel_schema.dbapi import exact, failures
from harel_schema.dbapi.changes import effect
from harel_schema.dbapi.local import LocalSession
from harel_schema.dbapi.parameters import bind
from harel_schema.dbapi.session import CHUNK, CHUNK_BYTES, Effect, Result, Row
from harel_schema.dbapi.statements import Kind, Statement, read
from harel_schema.errors import Error, IntegrityError, OperationalError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from harel_schema.dbapi.parameters import Value
    from harel_schema.dbapi.session import Description
    from harel_schema.target import Target

__all__ = ["ExperimentalSession", "LibsqlSession", "load"]

_import_lock = threading.Lock()
# Rows that are fetched at a time, before their size is looked at.
_STEP = 8


def load(name: str) -> Any:
    """Import a libsql library with its logging off.

    Both read RUST_LOG once, when they are imported, and write what it asks for to stdout, where
    it would break a command's data. A value that the user has set stays in the environment, for
    the processes that we start, but these libraries do not get to see it.
    """
    with _import_lock:
        before = os.environ.get("RUST_LOG")
        os.environ["RUST_LOG"] = "off"
        try:
            return importlib.import_module(name)
        finally:
            if before is not None:
                os.environ["RUST_LOG"] = before


class LibsqlSession(LocalSession):
    """A connection of the `libsql` library."""

    driver = "libsql"

    def __init__(self, target: Target, *, timeout: float, read_only: bool) -> None:
        self._shapes: dict[str, exact.Shape] = {}
        self._codec = ""
        super().__init__(target, timeout=timeout, read_only=read_only)

    def _connect(self, name: str) -> Any:
        return self._open(name, timeout=0.0)

    def _open(self, name: str, **options: Any) -> Any:
        try:
            return load(self.driver).connect(name, isolation_level=None, **options)
        except BaseException as error:
            raise failures.from_libsql(error, self.where) from error

    def _configure(self) -> None:
        self._run(read("PRAGMA foreign_keys=OFF"), ())
        super()._configure()

    def _run(self, statement: Statement, values: tuple[Value, ...]) -> Result:
        try:
            return self._run_exactly(statement, values)
        except BaseException as error:
            # A driver's connection stays open, and its file locked, for as long as one of its
            # cursors lives, and a traceback that somebody keeps would keep the cursor.
            traceback.clear_frames(error.__traceback__)
            raise

    def _run_exactly(self, statement: Statement, values: tuple[Value, ...]) -> Result:
        if statement.kind is Kind.READ and statement.verb != "EXPLAIN":
            return self._select(statement, values)
        if statement.kind is Kind.WRITE:
            try:
                return self._write(statement, values)
            except OperationalError as error:
                cause = error.__cause__
                raise self._raised_by_trigger(error, cause) or error from cause
        cursor = self._execute(*exact.inline(statement, values))
        if not cursor.description:
            return Result()
        return Result(cursor.description, self._fetch_all(cursor))

    def _select(self, statement: Statement, values: tuple[Value, ...]) -> Result:
        shape = self._shape(statement)
        text, parameters = exact.inline(statement, values)
        cursor = self._execute(shape.head + text + shape.tail, parameters)
        return self._read(shape.description, cursor)

    def _write(self, statement: Statement, values: tuple[Value, ...]) -> Result:
        if statement.returning < 0:
            cursor = self._execute(*exact.inline(statement, values))
            lastrowid = cursor.lastrowid if statement.inserts else None
            return Result(rowcount=cursor.rowcount, lastrowid=lastrowid)
        description = self._columns(exact.returning_probe(statement))
        statement = exact.returning(statement, description)
        cursor = self._execute(*exact.inline(statement, values))
        rows = self._decode(self._fetch_all(cursor))
        lastrowid = cursor.lastrowid if statement.inserts else None
        return Result(description, rows, rowcount=len(rows), lastrowid=lastrowid)

    def _change(self, sql: str, values: tuple[Value, ...]) -> Effect:
        if not exact.are_small(values):
            return effect(self, sql, values)
        cursor = self._raw.cursor()
        try:
            cursor.execute(sql, values)
            return Effect(cursor.rowcount, cursor.lastrowid)
        except BaseException as error:
            bind(read(sql), values)
            failure = failures.from_libsql(error, self.where)
            raise self._raised_by_trigger(failure, error) or failure from error
        finally:
            del cursor  # see `_run`

    def _execute(self, text: str, parameters: tuple[Value, ...] = ()) -> Any:
        try:
            # Not the connection's execute: a cursor that is used once has the right rowcount.
            cursor = self._raw.cursor()
            cursor.execute(text, parameters)
        except BaseException as error:
            raise failures.from_libsql(error, self.where) from error
        return cursor

    def _columns(self, text: str) -> Description:
        columns: Description = self._execute(text).description
        return columns

    def _fetch(self, cursor: Any) -> tuple[list[Row], bool]:
        found: list[Row] = []
        size = 0
        try:
            while len(found) < CHUNK and size < CHUNK_BYTES:
                rows = cursor.fetchmany(_STEP) or []
                found += rows
                # Asked again at its end, the driver would run the statement again.
                if len(rows) < _STEP:
                    return self._decode(found), True
                size += sum(len(c) for row in rows for c in row if isinstance(c, str | bytes))
        except BaseException as error:
            raise failures.from_libsql(error, self.where) from error
        return self._decode(found), False

    def _fetch_all(self, cursor: Any) -> list[Any]:
        try:
            return cursor.fetchall() or []
        except BaseException as error:
            raise failures.from_libsql(error, self.where) from error

    def _decode(self, rows: Sequence[Any]) -> list[Row]:
        if not rows:
            return []
        if not self._codec:
            # A database that has been read never changes its encoding.
            self._codec = str(self._execute("PRAGMA encoding").fetchall()[0][0]).lower()
        return exact.decode(rows, self._codec)

    def _shape(self, statement: Statement) -> exact.Shape:
        """Return the shape of a query, kept from the first time that it ran.

        A ``*`` may mean other columns than it did then, so that is looked up each time.
        """
        text = statement.body
        shape = self._shapes.get(text)
        if shape is not None and shape.columns is None:
            return shape
        columns = self._columns(exact.columns_probe(statement)) if statement.star else None
        if shape is None or shape.columns != columns:
            # Run with every parameter NULL, which mostly finds nothing: only the names matter,
            # and a query around it would change those that occur twice.
            shape = exact.wrap(self._columns(text), columns)
            self._shapes[text] = shape
        return shape

    def _raised_by_trigger(
        self, error: Error, cause: BaseException | None
    ) -> IntegrityError | None:
        """Return the error that stdlib raises when the text is that of a trigger's RAISE()."""
        if error.code != "SQLITE_ERROR":
            return None
        literal = "'" + str(cause).replace("'", "''") + "'"
        # The text of a RAISE() is a literal in the trigger, so the schema tells whose it is.
        query = (
            "SELECT count(*) FROM (SELECT sql FROM sqlite_schema WHERE type = 'trigger' "
            "UNION ALL SELECT sql FROM sqlite_temp_schema WHERE type = 'trigger') "
            "WHERE instr(sql, ?)"
        )
        if not self._execute(query, (literal,)).fetchall()[0][0]:
            return None
        return IntegrityError(error.message, code="SQLITE_CONSTRAINT_TRIGGER")


class ExperimentalSession(LibsqlSession):
    """A connection of the `libsql_experimental` library, which has no timeout to turn off."""

    driver = "libsql_experimental"

    def _connect(self, name: str) -> Any:
        return self._open(name)
