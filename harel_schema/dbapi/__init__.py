"""PEP 249 over every driver of SQLite and libSQL, and over a libSQL server.

One set of rules whatever the driver: real exception classes (`harel_schema.errors`), exact
values, transactions that begin where they are said to, locks that are waited for without the
GIL. stdlib `sqlite3` is the model where PEP 249 leaves a choice.
"""

from __future__ import annotations

import datetime as dt
import time
from typing import Final

from harel_schema.dbapi.connection import Connection
from harel_schema.dbapi.cursor import Cursor
from harel_schema.dbapi.opening import connect
from harel_schema.errors import (
    DatabaseError,
    DataError,
    Error,
    IntegrityError,
    InterfaceError,
    InternalError,
    NotSupportedError,
    OperationalError,
    ProgrammingError,
    Warning,  # noqa: A004 - the name is PEP 249's
)

__all__ = [
    "BINARY",
    "DATETIME",
    "NUMBER",
    "ROWID",
    "STRING",
    "Binary",
    "Connection",
    "Cursor",
    "DataError",
    "DatabaseError",
    "Date",
    "DateFromTicks",
    "Error",
    "IntegrityError",
    "InterfaceError",
    "InternalError",
    "NotSupportedError",
    "OperationalError",
    "ProgrammingError",
    "Time",
    "TimeFromTicks",
    "Timestamp",
    "TimestampFromTicks",
    "Warning",
    "apilevel",
    "connect",
    "paramstyle",
    "threadsafety",
]

apilevel: Final = "2.0"
paramstyle: Final = "qmark"
threadsafety: Final = 1
"""Threads may share the module, not a connection: one at a time may use it."""

Binary = bytes


class _Type:
    """A PEP 249 type object: equal to the Python types that hold its values.

    SQLite types values, not columns, so a description's type code is None and equals none.
    """

    def __init__(self, *types: type) -> None:
        self._types = frozenset(types)

    def __eq__(self, other: object) -> bool:
        return other is self or other in self._types

    def __hash__(self) -> int:
        return hash(self._types)


STRING: Final = _Type(str)
BINARY: Final = _Type(bytes)
NUMBER: Final = _Type(int, float)
DATETIME: Final = _Type()
ROWID: Final = _Type(int)


def Date(year: int, month: int, day: int) -> str:  # noqa: N802 - the name is PEP 249's
    """Return a date as the ISO 8601 text that SQLite's date functions read."""
    return dt.date(year, month, day).isoformat()


def Time(hour: int, minute: int, second: int) -> str:  # noqa: N802
    """Return a time of day as ISO 8601 text."""
    return dt.time(hour, minute, second).isoformat()


def Timestamp(  # noqa: N802, PLR0913, PLR0917 - PEP 249's signature
    year: int, month: int, day: int, hour: int, minute: int, second: int
) -> str:
    """Return a point in time as ISO 8601 text, a space between date and time."""
    return f"{Date(year, month, day)} {Time(hour, minute, second)}"


def DateFromTicks(ticks: float) -> str:  # noqa: N802
    """Return the local date of a Unix time in seconds."""
    return Date(*time.localtime(ticks)[:3])


def TimeFromTicks(ticks: float) -> str:  # noqa: N802
    """Return the local time of day of a Unix time in seconds."""
    return Time(*time.localtime(ticks)[3:6])


def TimestampFromTicks(ticks: float) -> str:  # noqa: N802
    """Return the local date and time of a Unix time in seconds."""
    return Timestamp(*time.localtime(ticks)[:6])
