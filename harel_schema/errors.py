"""Every error that harel-schema raises.

::

    HarelSchemaError
    ├── TargetError                 a database name that cannot be used
    ├── Error                       PEP 249; what `harel_schema.dbapi` raises
    │   ├── InterfaceError
    │   └── DatabaseError
    │       ├── DataError
    │       ├── IntegrityError
    │       ├── InternalError
    │       ├── NotSupportedError
    │       ├── ProgrammingError
    │       └── OperationalError
    │           ├── BusyError           another connection holds the lock
    │           ├── NotADatabaseError   the file is something else, encrypted or damaged
    │           ├── AuthError           the server refused the token (401, 403)
    │           ├── ServerError         the server answered, but not with a result
    │           ├── ConnectionLost      no answer; the request may have been applied
    │           │   └── RequestTimeout
    │           └── TransactionLost     the server ended our transaction or stream
    ├── StoreError
    │   ├── StoreConflict           a stale write lost the version check
    │   ├── StoreMoved              the database was moved; nothing was written
    │   └── CursorError             a page cursor that this store did not make
    ├── MigrationError
    │   ├── SchemaMismatch          the tables are not what the revision promises
    │   └── UnknownRevision         the database is ahead of this version of the tool
    ├── TransferError               a copy, a move or a verify that was refused or failed
    ├── ServerNotFound              no sqld binary to start
    └── ServerNotStarted            sqld ended or stayed silent

An error says what happened and, where there is one, the next step (`remedy`), in one line.
No error carries a token: messages name a database by its masked form.
"""

from __future__ import annotations

__all__ = [
    "AuthError",
    "BusyError",
    "ConnectionLost",
    "CursorError",
    "DataError",
    "DatabaseError",
    "Error",
    "HarelSchemaError",
    "IntegrityError",
    "InterfaceError",
    "InternalError",
    "MigrationError",
    "NotADatabaseError",
    "NotSupportedError",
    "OperationalError",
    "ProgrammingError",
    "RequestTimeout",
    "SchemaMismatch",
    "ServerError",
    "ServerNotFound",
    "ServerNotStarted",
    "StoreConflict",
    "StoreError",
    "StoreMoved",
    "TargetError",
    "TransactionLost",
    "TransferError",
    "UnknownRevision",
    "Warning",
]


class HarelSchemaError(Exception):
    """Base of every error raised by this package.

    `remedy` is the next step for the user, or None; `str()` joins message and remedy.
    """

    def __init__(self, message: str, *, remedy: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.remedy = remedy

    def __str__(self) -> str:
        return f"{self.message}; {self.remedy}" if self.remedy else self.message

    def __reduce__(self) -> tuple[object, ...]:
        # Subclasses have constructors of their own; copy the state, do not call them.
        return (_rebuild, (type(self), self.args, self.__dict__.copy()))


def _rebuild(
    cls: type[HarelSchemaError], args: tuple[object, ...], state: dict[str, object]
) -> HarelSchemaError:
    error = cls.__new__(cls, *args)
    error.args = args
    error.__dict__.update(state)
    return error


class TargetError(HarelSchemaError, ValueError):
    """A database name that cannot be parsed, or names something that is no database."""


class Warning(HarelSchemaError):  # noqa: A001 - the name is PEP 249's
    """PEP 249: an important warning. Never raised here; part of the module interface."""


class Error(HarelSchemaError):
    """PEP 249: base of the errors of the driver layer.

    `code` is SQLite's name of the result (``SQLITE_BUSY``, ``SQLITE_CONSTRAINT_UNIQUE``),
    a Hrana code (``STREAM_EXPIRED``), or None when neither the driver nor the server named one.
    """

    def __init__(self, message: str, *, code: str | None = None, remedy: str | None = None) -> None:
        super().__init__(message, remedy=remedy)
        self.code = code


class InterfaceError(Error):
    """PEP 249: misuse of the interface, such as a closed connection."""


class DatabaseError(Error):
    """PEP 249: base of the errors that the database reports."""


class DataError(DatabaseError):
    """PEP 249: a value that the database cannot hold."""


class IntegrityError(DatabaseError):
    """PEP 249: a constraint failed."""


class InternalError(DatabaseError):
    """PEP 249: the database reports an inconsistency of its own."""


class NotSupportedError(DatabaseError):
    """PEP 249: the database cannot do this."""


class ProgrammingError(DatabaseError):
    """PEP 249: wrong parameters, or a call that does not fit the statement.

    Bad SQL and a missing table are `OperationalError`, as in stdlib `sqlite3`.
    """


class OperationalError(DatabaseError):
    """PEP 249: a statement or the database failed, for whatever reason but the ones beside."""


class BusyError(OperationalError):
    """Another connection held the lock for longer than the timeout."""


class NotADatabaseError(OperationalError):
    """The file is not a SQLite database, is encrypted, or is damaged."""


class AuthError(OperationalError):
    """The server refused the token (HTTP 401 or 403)."""


class ServerError(OperationalError):
    """The server answered with something that is no result (HTTP 4xx, 5xx, a broken body).

    `status` is the HTTP status, or None.
    """

    def __init__(
        self,
        message: str,
        *,
        status: int | None = None,
        code: str | None = None,
        remedy: str | None = None,
    ) -> None:
        super().__init__(message, code=code, remedy=remedy)
        self.status = status


class ConnectionLost(OperationalError):
    """The server could not be reached, or the connection broke.

    `sent` is False when the request certainly did not reach the server, so that sending it
    again is safe; True when it may have been applied.
    """

    def __init__(
        self,
        message: str,
        *,
        sent: bool,
        code: str | None = None,
        remedy: str | None = None,
    ) -> None:
        super().__init__(message, code=code, remedy=remedy)
        self.sent = sent


class RequestTimeout(ConnectionLost):
    """The server did not answer in time."""


class TransactionLost(OperationalError):
    """The server took our transaction or stream away; everything in it was rolled back."""


class StoreError(HarelSchemaError):
    """Base of the runtime store's errors."""


class StoreConflict(StoreError, RuntimeError):
    """A save lost the version check: the stored row moved past the version it was loaded at.

    `execution_id`, `expected` (the stale version) and `found` (the stored version, None when
    there is no such execution). Load again and retry, or drop the stale work.
    """

    def __init__(self, execution_id: str, expected: int, found: int | None) -> None:
        super().__init__(
            f"stale write to {execution_id}: expected version {expected}, found {found}"
        )
        self.execution_id = execution_id
        self.expected = expected
        self.found = found


class StoreMoved(StoreError):
    """The database was moved and takes no more writes; nothing was written.

    `address` is where it is now: the URL of a server, or the absolute path of a file.
    """

    def __init__(self, address: str) -> None:
        super().__init__(f"the database was moved to {address}", remedy="open it there")
        self.address = address


class CursorError(StoreError, ValueError):
    """A page cursor that no store made, or that was made for other filters."""


class MigrationError(HarelSchemaError):
    """A migration that was refused or failed; the database is as it was before."""


class SchemaMismatch(MigrationError):
    """The database's tables are not those that its revision promises.

    `differences` holds one line a difference.
    """

    def __init__(
        self, message: str, *, differences: tuple[str, ...] = (), remedy: str | None = None
    ) -> None:
        super().__init__(message, remedy=remedy)
        self.differences = differences


class UnknownRevision(MigrationError):
    """The database is at a revision that this version of the tool does not know."""

    def __init__(self, message: str, *, revision: str, remedy: str | None = None) -> None:
        super().__init__(message, remedy=remedy)
        self.revision = revision


class TransferError(HarelSchemaError):
    """A copy, a move or a verify that was refused before its first write, or that failed."""


class ServerNotFound(HarelSchemaError):
    """No sqld binary: neither named by the environment nor brought by a package."""


class ServerNotStarted(HarelSchemaError):
    """sqld was started and ended, or did not answer in time; the message has its log's end."""
