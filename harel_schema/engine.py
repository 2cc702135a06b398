"""SQLAlchemy on `harel_schema.dbapi`: the dialect ``sqlite+harel``, and engines over a target.

==============================  ====================================================
``sqlite+harel:///state.db``    a local file
``sqlite+harel://``             a private database in memory
``sqlite+harel://host:8080/``   a libSQL server; with ``?secure=true`` over TLS
==============================  ====================================================

A URL may carry the options ``driver``, ``timeout``, ``request_timeout`` (seconds) and ``read_only``
of `harel_schema.dbapi.connect`, and for a server ``authToken``, which the engine takes out of its
URL when it is made.

A transaction begins before its first statement, with ``BEGIN IMMEDIATE``: what it has read still
holds when it writes, and all of it rolls back, DDL included. `begin_mode` names another mode. A
server may end a transaction that others wait for (`TransactionLost`): SQLAlchemy then runs nothing
more in it, and wants it rolled back.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias
from urllib.parse import urlsplit

import sqlalchemy
from sqlalchemy import event, pool
from sqlalchemy.dialects import registry
from sqlalchemy.engine import URL
from sqlalchemy.util import asbool

from harel_schema import dbapi
from harel_schema.dbapi.libsql import load
from harel_schema.errors import ConnectionLost, InterfaceError, TargetError, TransactionLost
from harel_schema.target import Target

# sqlalchemy-libsql imports this driver, which then would log to stdout.
load("libsql_experimental")

from sqlalchemy_libsql.libsql import SQLiteDialect_libsql  # noqa: E402

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Mapping
    from types import ModuleType

    from sqlalchemy import Connection, Engine

    from harel_schema.target import Token

__all__ = ["BeginMode", "Dialect", "create_engine", "from_connection", "url_of"]

BeginMode: TypeAlias = Literal["DEFERRED", "IMMEDIATE", "EXCLUSIVE"]

_NAME: Final = "sqlite+harel"
_TOKEN_OPTION: Final = "authToken"  # noqa: S105 - the option's name
_OPTIONS: Final[Mapping[str, Callable[[Any], Any]]] = {
    "driver": str,
    "timeout": float,
    "request_timeout": float,
    "read_only": asbool,
}
_RETURNING_SINCE: Final = (3, 35)


class Dialect(SQLiteDialect_libsql):  # type: ignore[misc] # sqlalchemy-libsql has no types
    """``sqlite+harel``: SQLite, libSQL and libSQL servers through `harel_schema.dbapi`.

    `begin_mode` is how a transaction begins. ``DEFERRED`` suits an engine that only reads: its
    transactions take no write lock, and one that writes after all may fail with `BusyError`.
    `borrowed` leaves the connections open: closing them is their owner's business.
    """

    driver = "harel"
    supports_statement_cache = True

    # Not by keyword only: `sqlalchemy.create_engine` looks for the names of such arguments.
    def __init__(
        self,
        dbapi: ModuleType | None = None,
        begin_mode: BeginMode = "IMMEDIATE",
        borrowed: bool = False,  # noqa: FBT001, FBT002
        **options: Any,
    ) -> None:
        # The base would take the features of SQLite from the module; ours has many libraries
        # below it, and `initialize` asks the one that answers.
        super().__init__(**options)
        self.dbapi = dbapi
        self.begin_mode = begin_mode
        self.borrowed = borrowed

    @classmethod
    def import_dbapi(cls) -> ModuleType:
        """Return `harel_schema.dbapi`, whatever the driver below it."""
        return dbapi

    @classmethod
    def get_pool_class(cls, url: URL) -> type[pool.Pool]:
        """Return a queue of connections, or one a thread for a database in memory."""
        if url.host or url.database not in (None, "", ":memory:"):
            return pool.QueuePool
        return pool.SingletonThreadPool

    @classmethod
    def engine_created(cls, engine: Engine) -> None:
        """Take the token out of the engine's URL, which is shown in its `repr`."""
        engine.url = engine.url.difference_update_query([_TOKEN_OPTION])

    def create_connect_args(self, url: URL) -> tuple[tuple[Target], dict[str, Any]]:
        """Return the target that `url` names and the options in it, for `dbapi.connect`.

        Raises `TargetError` for a URL that names no database or has an unknown option.
        """
        options = _connect_options(url)
        rest = url.difference_update_query([*options])
        target = _target_of(rest)
        # A pool hands a connection from thread to thread, never to two at once.
        options["check_same_thread"] = target.kind == "memory"
        options["isolation_level"] = self.begin_mode
        return ((target,), options)

    def on_connect(self) -> Callable[[dbapi.Connection], None]:
        """Return what prepares a new connection: REGEXP, where the driver takes functions."""
        return _add_regexp

    def initialize(self, connection: Connection) -> None:
        """Read the features from the database that answers, not from the stdlib's SQLite."""
        super().initialize(connection)
        returning = self.server_version_info >= _RETURNING_SINCE
        self.insert_returning = self.update_returning = self.delete_returning = returning

    def _get_server_version_info(self, connection: Connection) -> tuple[int, ...]:
        version = connection.exec_driver_sql("SELECT sqlite_version()").scalar_one()
        return tuple(int(part) for part in version.split("."))

    def do_begin(self, dbapi_connection: dbapi.Connection) -> None:
        """Begin a transaction in `begin_mode`, unless the connection is in AUTOCOMMIT."""
        if self.detect_autocommit_setting(dbapi_connection):
            return
        # A connection that refuses to write would refuse to take the write lock.
        dbapi_connection.begin("DEFERRED" if dbapi_connection.read_only else self.begin_mode)

    def do_close(self, dbapi_connection: dbapi.Connection) -> None:
        """Close the connection, unless it is borrowed."""
        if not self.borrowed:
            dbapi_connection.close()

    def detect_autocommit_setting(self, dbapi_conn: dbapi.Connection) -> bool:
        """Tell whether the connection is in AUTOCOMMIT."""
        return dbapi_conn.isolation_level is None

    def get_isolation_level_values(self, dbapi_connection: dbapi.Connection) -> list[str]:
        """Return SERIALIZABLE and AUTOCOMMIT, and READ UNCOMMITTED where it can be set."""
        levels = ["SERIALIZABLE", "AUTOCOMMIT"]
        if dbapi_connection.target.kind != "remote":
            levels.append("READ UNCOMMITTED")
        return levels

    def set_isolation_level(self, dbapi_connection: dbapi.Connection, level: str) -> None:
        """Set one of `get_isolation_level_values`."""
        if level == "AUTOCOMMIT":
            dbapi_connection.isolation_level = None
            return
        dbapi_connection.isolation_level = self.begin_mode
        if "READ UNCOMMITTED" in self.get_isolation_level_values(dbapi_connection):
            dbapi_connection.execute(f"PRAGMA read_uncommitted = {level == 'READ UNCOMMITTED':d}")

    def get_isolation_level(self, dbapi_connection: dbapi.Connection) -> str:
        """Return the isolation level that the connection has now."""
        if self.detect_autocommit_setting(dbapi_connection):
            return "AUTOCOMMIT"
        row = dbapi_connection.execute("PRAGMA read_uncommitted").fetchone()
        return "READ UNCOMMITTED" if row and row[0] else "SERIALIZABLE"

    def is_disconnect(self, e: Exception, connection: object, cursor: object) -> bool:  # noqa: ARG002
        """Tell whether the connection, or the transaction on it, is gone: broken, or a parent's."""
        own = getattr(connection, "dbapi_connection", connection)  # what a pool wraps
        refused = isinstance(own, dbapi.Connection) and not own.usable
        return refused or isinstance(e, ConnectionLost | TransactionLost)


registry.register("sqlite.harel", __name__, "Dialect")


def _target_of(url: URL) -> Target:
    if url.host or url.username:
        return Target.parse(url.render_as_string(hide_password=False))
    if url.query:
        raise TargetError(
            f"{_NAME}:///{url.database or ''} takes no option {min(url.query)}",
            remedy=f"known: {', '.join(_OPTIONS)}",
        )
    # Not as text: a file's name may hold what has a meaning in a URL.
    if url.database in (None, "", ":memory:"):
        return Target("memory")
    return Target.parse(Path(url.database))


def _connect_options(url: URL) -> dict[str, Any]:
    options: dict[str, Any] = {}
    for name, convert in _OPTIONS.items():
        if name not in url.query:
            continue
        value = url.query[name]
        try:
            options[name] = convert(value)
        except (TypeError, ValueError) as error:
            raise TargetError(f"{name}={value} is no {convert.__name__}") from error
    return options


def _add_regexp(connection: dbapi.Connection) -> None:
    if connection.driver == "sqlite3":
        connection.create_function("regexp", 2, _regexp, deterministic=True)


def _regexp(pattern: str, text: str | None) -> bool | None:
    return None if text is None else re.search(pattern, text) is not None


def create_engine(
    target: Target | str | os.PathLike[str],
    *,
    auth_token: Token | None = None,
    connect_args: Mapping[str, Any] | None = None,
    **options: Any,
) -> Engine:
    """Return an engine over `target`, in any of the forms of `harel_schema.target`.

    `connect_args` are arguments of `harel_schema.dbapi.connect`; `options` are `begin_mode` and
    those of `sqlalchemy.create_engine`. The token, given apart or in `target`, is not in the
    engine's URL. Raises `TargetError`; opens nothing.
    """
    target = Target.parse(target, auth_token=auth_token)
    arguments = dict(connect_args or {})
    if target.auth_token is not None:
        arguments.setdefault("auth_token", target.auth_token)
    return sqlalchemy.create_engine(url_of(target), connect_args=arguments, **options)


def from_connection(connection: dbapi.Connection, *, begin_mode: BeginMode = "IMMEDIATE") -> Engine:
    """Return an engine that works on `connection` alone and never closes it.

    `Engine.dispose` gives the connection back with the isolation level that it had; until then
    nothing else may use it. Raises `InterfaceError` when the connection is in a transaction.
    """
    if connection.in_transaction:
        raise InterfaceError(
            f"{connection.target}: the connection is in a transaction",
            remedy="commit it or roll it back first",
        )
    isolation_level = connection.isolation_level

    def borrow() -> dbapi.Connection:
        connection.isolation_level = begin_mode
        return connection

    engine = sqlalchemy.create_engine(
        url_of(connection.target),
        creator=borrow,
        poolclass=pool.StaticPool,
        begin_mode=begin_mode,
        borrowed=True,
    )

    @event.listens_for(engine, "engine_disposed")
    def give_back(_engine: Engine) -> None:
        connection.isolation_level = isolation_level

    return engine


def url_of(target: Target) -> URL:
    """Return the ``sqlite+harel`` URL of `target`, without its token."""
    if target.url is None:
        return URL.create(_NAME, database=None if target.path is None else str(target.path))
    parts = urlsplit(target.url)
    return URL.create(
        _NAME,
        host=parts.hostname,
        port=parts.port,
        database=parts.path.lstrip("/"),
        query={"secure": "true"} if parts.scheme == "https" else {},
    )
