"""SQLAlchemy connections for Alembic, to a target or over an open connection."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import sqlalchemy as sa
from sqlalchemy.exc import DBAPIError
from sqlalchemy.pool import NullPool, StaticPool

from harel_schema.errors import HarelSchemaError
from harel_schema.target import Target

__all__ = ["Database", "check", "label", "open_database", "own_errors", "raw"]

Database = Target | sqlite3.Connection

# Seconds. A migration waits longer for its lock than a commit does: it runs once, at a deploy.
_LOCK_TIMEOUT = 30.0


@contextmanager
def open_database(database: Database, *, read_only: bool = False) -> Iterator[sa.Connection]:
    kwargs: dict[str, Any] = {}
    if isinstance(database, sqlite3.Connection):
        url = "sqlite+pysqlite://"
        kwargs.update(creator=lambda: database, poolclass=StaticPool)
    else:
        target = _existing(database) if read_only else database
        url = f"sqlite+pysqlite:///{target.path or ':memory:'}"
        kwargs.update(
            connect_args={"timeout": _LOCK_TIMEOUT, "isolation_level": None}, poolclass=NullPool
        )
    made = sa.create_engine(url, **kwargs)
    sa.event.listen(made, "begin", lambda c: c.exec_driver_sql("BEGIN IMMEDIATE"))
    with made.connect() as connection:
        if read_only:
            connection.execution_options(isolation_level="AUTOCOMMIT")
        yield connection


@contextmanager
def own_errors() -> Iterator[None]:
    """Raise the error of ours that SQLAlchemy has wrapped."""
    try:
        yield
    except DBAPIError as error:
        if isinstance(error.orig, HarelSchemaError):
            raise error.orig from error
        raise


def raw(connection: sa.Connection) -> Any:
    """Return our connection under SQLAlchemy's, in whatever transaction it is."""
    return connection.connection.dbapi_connection


def _existing(target: Target) -> Target:
    if target.path is not None and not target.path.exists():
        return Target.parse(":memory:")
    target.check_readable()
    return target


def check(database: Database, *, may_create: bool) -> None:
    """Refuse a file that cannot be opened for writing, or that must exist and does not."""
    if isinstance(database, Target):
        if not may_create:
            database.check_readable()
        database.check_writable()


def label(database: Database) -> str:
    """Return how messages name the database."""
    return str(database)
