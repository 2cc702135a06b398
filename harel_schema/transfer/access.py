"""The two kinds of database that rows are moved between: a local file, and a server."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from harel_schema import dbapi, hrana
from harel_schema.transfer.database import (
    Cells,
    Database,
    Insert,
    Work,
    is_passing,
    number,
    patiently,
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
    "patiently",
    "pause",
    "size_of",
]

_TIMEOUT = 60.0
_PATIENCE = 600.0


@contextmanager
def open_database(
    target: Target, *, read_only: bool, timeout: float = _TIMEOUT
) -> Iterator[Database]:
    """Open `target`; for reading it is opened so that nothing is created or changed.

    `timeout` is how many seconds to wait for a lock, or for a silent server. Raises what
    `harel_schema.dbapi.connect` raises.
    """
    database: Database
    if target.url is not None:
        clients = (
            hrana.Client(target.url, auth_token=target.auth_token, timeout=seconds)
            for seconds in (timeout, _PATIENCE)
        )
        database = RemoteDatabase(target, *clients)
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
