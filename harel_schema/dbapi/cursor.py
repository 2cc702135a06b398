"""The cursor of every driver."""

# ruff: noqa: SLF001 - a cursor is the other half of its connection

from __future__ import annotations

from typing import TYPE_CHECKING

from harel_schema.dbapi.parameters import Parameters, bind
from harel_schema.dbapi.statements import Kind, read, read_one, split
from harel_schema.errors import InterfaceError, ProgrammingError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from typing import Self

    from harel_schema.dbapi.connection import Connection
    from harel_schema.dbapi.session import Description, Row

__all__ = ["Cursor"]


class Cursor:
    """PEP 249's cursor; iterable.

    `description` is None after a statement without rows, and the fetch methods then find none,
    as in stdlib `sqlite3`. `rowcount` is the number of rows that the last INSERT, REPLACE, UPDATE
    or DELETE changed, and -1 after anything else. `lastrowid` is the rowid of the row that this
    cursor's last INSERT or REPLACE wrote. Queries are read as they are fetched; the rows of a
    RETURNING clause at once, so that the statement is complete.
    """

    # Most cursors run one statement: what they start with costs nothing as the class's own.
    arraysize = 1
    description: Description | None = None
    rowcount = -1
    lastrowid: int | None = None
    _rows: Sequence[Row] = ()
    _at = 0
    _more: Callable[[], Sequence[Row]] | None = None
    _closed = False

    def __init__(self, connection: Connection) -> None:
        self.connection = connection

    def execute(self, sql: str, parameters: Parameters = ()) -> Self:
        """Run one statement, beginning a transaction first where the isolation level asks for it.

        When the statement that a transaction was begun for fails, the transaction ends with it:
        there was nothing else in it, and no lock stays behind.
        """
        statement = read_one(sql)
        values = bind(statement, parameters)
        connection = self.connection
        with connection._turn():
            self._reset()
            if statement.kind is Kind.EMPTY:
                return self
            begin = connection._mode_to_begin(statement)
            result = connection._session.run(statement, values, begin)
        self.description = result.description
        self.rowcount = result.rowcount
        self._rows, self._more = result.rows, result.more
        if result.lastrowid is not None:
            self.lastrowid = result.lastrowid
        return self

    def executemany(self, sql: str, parameters: Iterable[Parameters]) -> Self:
        """Run an INSERT, REPLACE, UPDATE or DELETE once for each set of parameters.

        Stops at the first failure; what was done before it stays in the transaction. `rowcount`
        is the sum. Rows of a RETURNING clause are dropped.
        """
        statement = read_one(sql)
        if statement.kind is not Kind.WRITE:
            raise ProgrammingError("executemany() runs INSERT, REPLACE, UPDATE and DELETE only")
        connection = self.connection
        with connection._turn():
            self._reset()
            begin = connection._mode_to_begin(statement)
            rows = (bind(statement, each) for each in parameters)
            self.rowcount = connection._session.run_many(statement, rows, begin)
        return self

    def executescript(self, script: str) -> Self:
        """Run the statements of a script in their order, stopping at the first that fails.

        Nothing begins or commits by itself, whatever the isolation level, and unlike stdlib's: in
        an open transaction they all belong to it, and without one each stands alone. Write BEGIN
        and COMMIT into the script, or call `begin` before, to make it whole.
        """
        statements = [read(part) for part in split(script)]
        for statement in statements:
            bind(statement, ())
        with self.connection._turn():
            self._reset()
            self.connection._session.run_script(statements)
        return self

    def fetchone(self) -> Row | None:
        """Return the next row, or None at the end."""
        self._check()
        while self._at >= len(self._rows):
            if not self._load():
                return None
        self._at += 1
        return self._rows[self._at - 1]

    def fetchmany(self, size: int | None = None) -> list[Row]:
        """Return the next `size` rows (default: `arraysize`), fewer at the end."""
        size = self.arraysize if size is None else size
        rows: list[Row] = []
        while len(rows) < size:
            row = self.fetchone()
            if row is None:
                break
            rows.append(row)
        return rows

    def fetchall(self) -> list[Row]:
        """Return the rows that are left."""
        self._check()
        rows = list(self._rows[self._at :])
        while self._load():
            rows += self._rows
        self._at = len(self._rows)
        return rows

    def runs(self) -> Iterator[Sequence[Row]]:
        """Yield the rows that are left, as many at a time as the driver reads: for large results.

        A run of `sqlite3` has at most 128 rows, and no further row once it has a megabyte.
        """
        self._check()
        while self._at < len(self._rows) or self._load():
            run = self._rows[self._at :]
            self._at = len(self._rows)
            yield run
            self._check()

    def __iter__(self) -> Iterator[Row]:
        return self

    def __next__(self) -> Row:
        row = self.fetchone()
        if row is None:
            raise StopIteration
        return row

    def setinputsizes(self, sizes: object) -> None:
        """Do nothing, as PEP 249 allows."""

    def setoutputsize(self, size: int, column: int | None = None) -> None:
        """Do nothing, as PEP 249 allows."""

    def close(self) -> None:
        """Let go of the rows; the cursor is of no more use."""
        self._clear()
        self._closed = True

    def _check(self) -> None:
        if self._closed:
            raise InterfaceError("the cursor is closed")
        self.connection._check()

    def _reset(self) -> None:
        if self._closed:
            raise InterfaceError("the cursor is closed")
        self._clear()
        self.description = None
        self.rowcount = -1

    def _clear(self) -> None:
        self._rows, self._at, self._more = (), 0, None

    def _load(self) -> bool:
        """Read the next rows; tell whether there were any."""
        if self._more is None:
            return False
        with self.connection._turn():
            rows = self._more()
        if not rows:
            self._more = None
            return False
        self._rows, self._at = rows, 0
        return True
