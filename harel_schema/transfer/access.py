"""The two kinds of database that rows are moved between: a local file, and a server."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from harel_schema import dbapi
from harel_schema.transfer.database import (
    Cells,
    Database,
    Insert,
    Work,
    is_passing,
    number,
    pause,
    size_of,
)
from harel_schema.transfer.local import LocalDatabase
from harel_schema.transfer.remote import RemoteDatabase

if TYPE_CHECKING:
    from collections.abc import Iterator

    from harel_schema.target import Target

__all__ = [
    "Cells",
    "Database",
    "Insert",
    "Work",
    "is_passing",
    "number",
    "open_database",
    "pause",
    "size_of",
]


@contextmanager
def open_database(target: Target, *, read_only: bool, timeout: float) -> Iterator[Database]:
    """Open `target`; for reading it is opened so that nothing is created or changed.

    `timeout` is how many seconds to wait for a lock, or for a silent server. Raises what
    `harel_schema.dbapi.connect` raises.
    """
    database: Database
    if target.kind == "remote":
        database = RemoteDatabase(target, timeout)
    else:
        connection = dbapi.connect(
            target,
            isolation_level=None,
            timeout=timeout,
            read_only=read_only,
            check_same_thread=False,
        )
        database = LocalDatabase(target, connection)
    try:
        yield database
    finally:
        database.close()
