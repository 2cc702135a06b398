"""SQLAlchemy connections for Alembic, to a target or over an open connection."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeAlias

from sqlalchemy.exc import DBAPIError
from sqlalchemy.pool import NullPool

from harel_schema import dbapi, engine
from harel_schema.dbapi.waiting import PATIENCE
from harel_schema.errors import HarelSchemaError
from harel_schema.target import Target

if TYPE_CHECKING:
    from collections.abc import Iterator

    import sqlalchemy as sa

__all__ = ["Database", "check", "label", "open_database", "own_errors", "raw"]

Database: TypeAlias = "Target | dbapi.Connection"


@contextmanager
def open_database(
    database: Database, *, read_only: bool = False, timeout: float = PATIENCE
) -> Iterator[sa.Connection]:
    """Open `database` for one block; a connection that was open before stays open.

    `timeout` is how many seconds to wait for a lock, or for a silent server.

    ``begin()`` on what this yields is BEGIN IMMEDIATE; with `read_only` it is in AUTOCOMMIT. A
    file that does not exist is then read as an empty database, so that reading creates none.
    """
    if isinstance(database, dbapi.Connection):
        made = engine.from_connection(database)
    else:
        target = _existing(database) if read_only else database
        arguments = {
            "timeout": timeout,
            "request_timeout": timeout,
            "read_only": read_only and target.kind == "file",
        }
        made = engine.create_engine(target, connect_args=arguments, poolclass=NullPool)
    try:
        with made.connect() as connection:
            if read_only:
                connection.execution_options(isolation_level="AUTOCOMMIT")
            yield connection
    finally:
        made.dispose()


@contextmanager
def own_errors() -> Iterator[None]:
    """Raise the error of ours that SQLAlchemy has wrapped."""
    try:
        yield
    except DBAPIError as error:
        if isinstance(error.orig, HarelSchemaError):
            raise error.orig from error
        raise


def check(database: Database, *, write: bool, create: bool) -> None:
    """Refuse a file that cannot be written, or that does not exist and is not to be created."""
    if isinstance(database, Target):
        if not create:
            database.check_readable()
        if write:
            database.check_writable()


def label(database: Database) -> str:
    """Return how messages name the database: without a token."""
    return str(database if isinstance(database, Target) else database.target)


def raw(connection: sa.Connection) -> dbapi.Connection:
    """Return our connection under SQLAlchemy's, in whatever transaction it is."""
    found: dbapi.Connection = connection.connection.dbapi_connection  # type: ignore[assignment]
    return found


def _existing(target: Target) -> Target:
    if target.path is not None and not target.path.exists():
        return Target.parse(":memory:")
    target.check_readable()
    return target
