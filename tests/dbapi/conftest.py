"""One connection of every kind, each to a database of its own."""

from __future__ import annotations

import sqlite3
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest

from harel_schema import dbapi

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

LOCAL = ("sqlite3", "libsql", "libsql_experimental")
KINDS = (*LOCAL, "remote")

Open = Any


@pytest.fixture
def closing() -> Iterator[ExitStack]:
    """Yield a stack that closes what a test opened."""
    with ExitStack() as stack:
        yield stack


@pytest.fixture(params=LOCAL)
def driver(request: pytest.FixtureRequest) -> str:
    """Return the name of each local driver in turn."""
    return str(request.param)


@pytest.fixture
def open_local(tmp_path: Path, driver: str, closing: ExitStack) -> Callable[..., Any]:
    """Return a function that opens connections to one file with `driver`."""

    def connect(name: str = "state.db", **options: Any) -> dbapi.Connection:
        connection = dbapi.connect(tmp_path / name, driver=driver, **options)
        closing.callback(connection.close)
        return connection

    return connect


@pytest.fixture(params=KINDS)
def open_any(
    request: pytest.FixtureRequest, tmp_path: Path, closing: ExitStack
) -> Callable[..., Any]:
    """Return a function that opens connections to one database: every driver, and a server."""
    if request.param == "remote":
        where: dict[str, Any] = {"database": request.getfixturevalue("sqld_url")}
    else:
        where = {"database": tmp_path / "state.db", "driver": request.param}

    def connect(**options: Any) -> dbapi.Connection:
        connection = dbapi.connect(**where, **options)
        closing.callback(connection.close)
        return connection

    return connect


@pytest.fixture
def any_connection(open_any: Callable[..., Any]) -> Any:
    """Return a connection of every kind that begins nothing by itself."""
    return open_any(isolation_level=None)


@pytest.fixture
def oracle(closing: ExitStack) -> sqlite3.Connection:
    """Return a plain stdlib connection that begins nothing by itself."""
    connection = sqlite3.connect(":memory:", isolation_level=None)
    closing.callback(connection.close)
    return connection
