"""What the server says went wrong, as the error class that stdlib `sqlite3` would raise.

The codes are those of libSQL's server (`libsql-server/src/hrana/stmt.rs`, `batch.rs`). It knows
SQLite's primary result codes only: a broken UNIQUE is ``SQLITE_CONSTRAINT``, and SQLite's plain
``SQLITE_ERROR`` arrives as ``SQLITE_UNKNOWN``.
"""

from __future__ import annotations

import re
from typing import Final

from harel_schema import errors as e

_CLASSES: Final[dict[str, type[e.Error]]] = {
    "SQLITE_BUSY": e.BusyError,
    "SQLITE_LOCKED": e.BusyError,
    "TRANSACTION_BUSY": e.BusyError,
    "SQLITE_CONSTRAINT": e.IntegrityError,
    "SQLITE_MISMATCH": e.IntegrityError,
    "SQLITE_TOOBIG": e.DataError,
    "SQLITE_INTERNAL": e.InternalError,
    "SQLITE_NOTFOUND": e.InternalError,
    "SQLITE_MISUSE": e.InterfaceError,
    "SQLITE_RANGE": e.InterfaceError,
    "SQLITE_CORRUPT": e.DatabaseError,
    "SQLITE_AUTH": e.DatabaseError,
    "SQLITE_NOTADB": e.NotADatabaseError,
    "SQL_NO_STATEMENT": e.ProgrammingError,
    "SQL_MANY_STATEMENTS": e.ProgrammingError,
    "ARGS_INVALID": e.ProgrammingError,
    "ARGS_BOTH_POSITIONAL_AND_NAMED": e.ProgrammingError,
    "TRANSACTION_TIMEOUT": e.TransactionLost,
    "STREAM_EXPIRED": e.TransactionLost,
}

_REMEDIES: Final = {
    "RESPONSE_TOO_LARGE": "read fewer rows at a time, or stream them with a cursor",
    "TRANSACTION_TIMEOUT": "run it again, in a transaction of less than 5 seconds",
    "STREAM_EXPIRED": "run it again, with less than 10 seconds between two statements",
    "SQLITE_FULL": "free some disk space on the server",
    "SQLITE_IOERR": "see that the disk of the server is well and has room; its log may say more",
    "SQLITE_TOOBIG": "make the value smaller: sqld takes values and rows of up to 5 MB",
    "BLOCKED": "ask whoever runs the server why it blocks this database",
}

_TOO_BIG: Final = "string or blob too big"
_PREFIX: Final = re.compile(
    r"^(?:SQLite error|SQL input error|Internal Error|error executing a request on the primary): "
)
_OFFSET: Final = re.compile(r" \(at offset -?\d+\)$")
_MESSAGE_CHARS: Final = 1000


def from_server(message: str, code: str | None) -> e.Error:
    """Return the error for a Hrana `Error` structure (not raised)."""
    text = _OFFSET.sub("", _PREFIX.sub("", one_line(message, _MESSAGE_CHARS)))
    if code == "SQL_PARSE_ERROR" and "unsupported statement" in text:
        return e.NotSupportedError(f"the server refuses this: {text}", code=code)
    if code == "ARGS_INVALID" and _TOO_BIG in text:
        text, code = _TOO_BIG, "SQLITE_TOOBIG"
    cls = _by_text(text) if code == "PROXY_ERROR" else _CLASSES.get(code or "")
    return (cls or e.OperationalError)(text, code=code, remedy=_REMEDIES.get(code or ""))


def _by_text(text: str) -> type[e.Error] | None:
    """Return the class for an error that a replica server passes on without its code."""
    if "constraint failed" in text:
        return e.IntegrityError
    return e.BusyError if "database is locked" in text else None


def one_line(text: str, limit: int) -> str:
    """Return `text` without control characters and line breaks, at most `limit` long."""
    line = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    return line if len(line) <= limit else line[: limit - 1] + "…"
