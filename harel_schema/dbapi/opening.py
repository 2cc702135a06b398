"""`connect`: from a database's name to a connection by the right driver."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from harel_schema.dbapi import files
from harel_schema.dbapi.connection import Connection
from harel_schema.dbapi.libsql import ExperimentalSession, LibsqlSession
from harel_schema.dbapi.local import LocalSession, Sqlite3Session
from harel_schema.dbapi.waiting import PATIENCE
from harel_schema.errors import InterfaceError
from harel_schema.target import Target, Token

if TYPE_CHECKING:
    import os

    from harel_schema.dbapi.session import Session

__all__ = ["Driver", "connect"]

Driver: TypeAlias = Literal["sqlite3", "libsql", "libsql_experimental"]

_LOCAL: dict[str, type[LocalSession]] = {
    "sqlite3": Sqlite3Session,
    "libsql": LibsqlSession,
    "libsql_experimental": ExperimentalSession,
}


def connect(  # noqa: PLR0913 - promised, and all by keyword
    database: str | os.PathLike[str] | Target,
    *,
    driver: str | None = None,
    auth_token: Token | None = None,
    sync_url: str | None = None,
    sync_interval: float | None = None,
    isolation_level: str | None = "IMMEDIATE",
    timeout: float = 5.0,
    request_timeout: float = PATIENCE,
    read_only: bool = False,
    check_same_thread: bool = True,
) -> Connection:
    """Open a database and return a `Connection`.

    With `sync_url`, the URL of a server, the file is an embedded replica of it: reads are local,
    and all else goes to the server. `sync_interval` is how often it syncs by itself, in seconds.

    `driver` is ``"sqlite3"``, ``"libsql"`` or ``"libsql_experimental"``. None takes the one that
    has the file open in this process, else ``"sqlite3"``, and ``"libsql"`` for the file of an
    embedded replica and for a schema that only libSQL understands. `timeout` is how many seconds
    to wait for a lock; a server also waits on its own. `request_timeout` is how many seconds a
    server may be silent, or a sync make no progress. `read_only` creates no file and refuses
    every write. `isolation_level` is the mode in which a transaction begins before a statement that
    changes something, or None.

    Raises `TargetError` for a database that cannot be named or opened, `InterfaceError` when
    another library has the file open in this process. That a file is no database is found by
    the first statement: `NotADatabaseError`.
    """
    if sync_url is None:
        target = Target.parse(database, auth_token=auth_token)
        session = (
            _server(target, driver, timeout, request_timeout, read_only=read_only)
            if target.kind == "remote"
            else _session(target, driver, timeout=timeout, read_only=read_only)
        )
    else:
        target = Target.parse(database)
        primary = Target.parse(sync_url, auth_token=auth_token)
        _check_replica(target, primary, driver, read_only=read_only)
        session = _replica(
            target, primary, timeout=timeout, interval=sync_interval, silence=request_timeout
        )
    return Connection(
        session,
        target,
        isolation_level=isolation_level,
        read_only=read_only,
        check_same_thread=check_same_thread,
    )


def _server(
    target: Target, driver: str | None, timeout: float, request_timeout: float, *, read_only: bool
) -> Session:
    # httpx takes longer to import than a local store takes to open.
    from harel_schema.dbapi.remote import RemoteSession  # noqa: PLC0415

    if driver is not None:
        raise InterfaceError("a server is spoken to over Hrana, by no driver")
    return RemoteSession(
        target, timeout=timeout, request_timeout=request_timeout, read_only=read_only
    )


def _session(target: Target, driver: str | None, **options: Any) -> Session:
    replica = target.path is not None and files.is_replica(target.path)
    name = driver or files.owner(target) or ("libsql" if replica else "sqlite3")
    if name not in _LOCAL:
        raise InterfaceError(f"there is no driver {name!r}", remedy=f"use {', '.join(_LOCAL)}")
    session = _LOCAL[name](target, **options)
    if driver is None and isinstance(session, Sqlite3Session) and session.needs_libsql():
        session.close()
        return LibsqlSession(target, **options)
    return session


def _check_replica(target: Target, primary: Target, driver: str | None, *, read_only: bool) -> None:
    if target.kind != "file":
        raise InterfaceError(f"{target} cannot be a replica", remedy="name a local file")
    if primary.kind != "remote":
        raise InterfaceError(f"{primary} is no server to replicate", remedy="pass its URL")
    if driver is not None:
        raise InterfaceError("the server decides which library a replica needs, not driver=")
    if read_only:
        raise InterfaceError("a replica cannot be read-only: syncing writes its file")


def _replica(target: Target, primary: Target, **options: Any) -> Session:
    from harel_schema.dbapi.replica import ReplicaSession  # noqa: PLC0415 - imports httpx

    return ReplicaSession(target, primary, **options)
