"""Every error of a local driver, as an error of ours: the class that stdlib `sqlite3` would raise.

stdlib names SQLite's result code. The libsql libraries raise `ValueError` with SQLite's text and
nothing else, so the code is read from the text, which SQLite keeps stable (`sqlite3ErrStr`).
"""

from __future__ import annotations

import re
import sqlite3

from harel_schema import errors as e
from harel_schema.target import AUTH_REMEDY

__all__ = ["OF_SQLITE3", "from_code", "from_libsql", "from_sqlite3", "from_sync", "is_panic"]

_CLASSES: dict[str, type[e.Error]] = {
    "SQLITE_AUTH": e.DatabaseError,
    "SQLITE_BUSY": e.BusyError,
    "SQLITE_CONSTRAINT": e.IntegrityError,
    "SQLITE_CORRUPT": e.DatabaseError,
    "SQLITE_INTERNAL": e.InternalError,
    "SQLITE_MISMATCH": e.IntegrityError,
    "SQLITE_MISUSE": e.InterfaceError,
    "SQLITE_NOTADB": e.NotADatabaseError,
    "SQLITE_NOTFOUND": e.InternalError,
    "SQLITE_RANGE": e.InterfaceError,
    "SQLITE_TOOBIG": e.DataError,
}
# Failures of the file rather than of the statement: the message names the file.
_OF_THE_FILE = frozenset(
    {
        "SQLITE_BUSY",
        "SQLITE_CANTOPEN",
        "SQLITE_CORRUPT",
        "SQLITE_FULL",
        "SQLITE_IOERR",
        "SQLITE_NOTADB",
        "SQLITE_PERM",
        "SQLITE_PROTOCOL",
        "SQLITE_READONLY",
    }
)
_REMEDIES = {
    "SQLITE_BUSY_SNAPSHOT": "run the transaction again, begun IMMEDIATE",
    "SQLITE_CORRUPT": "restore it from a backup, or try sqlite3's .recover",
    "SQLITE_FULL": "free some disk space",
    "SQLITE_IOERR": "see that the disk is well and has room",
    "SQLITE_NOTADB": "check the path; a SQLite database begins with 'SQLite format 3'",
    "SQLITE_READONLY": "allow writing to the file",
    "SQLITE_READONLY_DIRECTORY": "allow writing to its folder, where SQLite keeps a journal and, "
    "in WAL mode, what readers share; or copy the file to another one",
}

_TEXTS = {
    "access permission denied": "SQLITE_PERM",
    "attempt to write a readonly database": "SQLITE_READONLY",
    "bad parameter or other API misuse": "SQLITE_MISUSE",
    "column index out of range": "SQLITE_RANGE",
    "constraint failed": "SQLITE_CONSTRAINT",
    "database disk image is malformed": "SQLITE_CORRUPT",
    "database is locked": "SQLITE_BUSY",
    "database or disk is full": "SQLITE_FULL",
    "database schema is locked: main": "SQLITE_LOCKED",
    "database table is locked": "SQLITE_LOCKED",
    "datatype mismatch": "SQLITE_MISMATCH",
    "disk I/O error": "SQLITE_IOERR",
    "file is not a database": "SQLITE_NOTADB",
    "interrupted": "SQLITE_INTERRUPT",
    "locking protocol": "SQLITE_PROTOCOL",
    "not authorized": "SQLITE_AUTH",
    "string or blob too big": "SQLITE_TOOBIG",
    "unable to open database file": "SQLITE_CANTOPEN",
}
_PATTERNS = (
    # UNIQUE may also be a primary key's: the text does not tell which of the two codes it was.
    (re.compile(r"UNIQUE constraint failed: "), "SQLITE_CONSTRAINT"),
    (re.compile(r"NOT NULL constraint failed: "), "SQLITE_CONSTRAINT_NOTNULL"),
    (re.compile(r"CHECK constraint failed: "), "SQLITE_CONSTRAINT_CHECK"),
    (re.compile(r"FOREIGN KEY constraint failed$"), "SQLITE_CONSTRAINT_FOREIGNKEY"),
    (re.compile(r"cannot store \w+ value in \w+ column "), "SQLITE_CONSTRAINT_DATATYPE"),
    (re.compile(r"database table is locked: "), "SQLITE_LOCKED"),
    (re.compile(r"Failed to connect to database: .*: 14`$"), "SQLITE_CANTOPEN"),
    (re.compile(r"malformed database schema "), "SQLITE_CORRUPT"),
)


def from_code(message: str, code: str, where: str) -> e.Error:
    """Return the error for SQLite's result `code` (primary or extended); `where` is the target."""
    primary = "_".join(code.split("_")[:2])
    cls = _CLASSES.get(primary, e.OperationalError)
    text = " ".join(message.split())
    if primary in _OF_THE_FILE:
        text = f"{where}: {text}"
    return cls(text, code=code, remedy=_REMEDIES.get(code) or _REMEDIES.get(primary))


OF_SQLITE3 = (sqlite3.Error, UnicodeDecodeError)
"""What stdlib `sqlite3` raises: it does not expect SQLite to quote a damaged schema."""


def from_sqlite3(error: Exception, where: str) -> e.Error:
    """Return the error for what stdlib `sqlite3` raised, one of `OF_SQLITE3`."""
    if isinstance(error, UnicodeDecodeError):
        message = error.object.decode(errors="backslashreplace")
        return from_code(message, code_of(message) or "SQLITE_ERROR", where)
    code = getattr(error, "sqlite_errorname", None)
    if isinstance(code, str):
        return from_code(str(error), code, where)
    # Raised by the module itself: the class is right, and there is no code.
    for theirs, ours in _MODULE_CLASSES:
        if isinstance(error, theirs):
            return ours(" ".join(str(error).split()))
    return e.InterfaceError(str(error))


_MODULE_CLASSES: tuple[tuple[type[Exception], type[e.Error]], ...] = (
    (sqlite3.ProgrammingError, e.ProgrammingError),
    (sqlite3.OperationalError, e.OperationalError),
    (sqlite3.DataError, e.DataError),
    (sqlite3.DatabaseError, e.DatabaseError),
)


def code_of(message: str) -> str | None:
    """Return the result code that a text of SQLite stands for, or None for free text."""
    code = _TEXTS.get(message)
    if code is not None:
        return code
    for pattern, name in _PATTERNS:
        if pattern.match(message):
            return name
    return None


def from_libsql(error: BaseException, where: str) -> e.Error:
    """Return the error for what a libsql library raised; raise `error` if it was not its own."""
    if not isinstance(error, ValueError | TypeError | OverflowError) and not is_panic(error):
        raise error
    message = str(error)
    if is_panic(error):
        return e.InternalError(f"the driver gave up: {' '.join(message.split())}")
    return from_code(message, code_of(message) or "SQLITE_ERROR", where)


def from_sync(said: str, primary: str) -> e.Error:
    """Return the error for a sync of which a library said that it failed."""
    text = " ".join(said.split())
    if _REFUSED.search(text):
        return e.AuthError(f"{primary} refused the token of the replica", remedy=AUTH_REMEDY)
    return e.ConnectionLost(
        f"the replica could not sync with {primary}: {text}",
        sent=False,
        remedy="check that the server runs; reads of a replica go on without it",
    )


_REFUSED = re.compile(r"Unauthenticated|PermissionDenied|\b40[13]\b")


def is_panic(error: BaseException) -> bool:
    """Whether this is a panic of a Rust driver: a `BaseException` of a class nobody exports."""
    return type(error).__name__ == "PanicException"
