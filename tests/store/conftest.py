"""A store of every mode and flavour."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest

from harel_schema import LibsqlStore
from harel_schema.testing import sqld_server
from tests.store.support import Opener
from tests.support.proxy import FaultyProxy

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from harel_schema.testing import Server

SHARED = ("libsql", "sqlite3", "remote")
MODES = (*SHARED, "memory", "replica", "cloud")
FLAVOURS = ("sync", "async")


def arguments(request: pytest.FixtureRequest, mode: str) -> dict[str, Any]:
    """Return what opens a store on a fresh database of `mode`."""
    if mode == "remote":
        return {"database": request.getfixturevalue("sqld_url")}
    if mode == "memory":
        return {"database": ":memory:"}
    path = request.getfixturevalue("tmp_path") / "state.db"
    if mode == "replica":
        return {"database": path, "sync_url": request.getfixturevalue("sqld_url")}
    if mode == "cloud":
        return {"database": path, "sync_url": request.getfixturevalue("cloud").url}
    return {"database": path, "driver": mode}


def opener(request: pytest.FixtureRequest, mode: str, flavour: str, stack: ExitStack) -> Opener:
    """Return an opener of stores on a fresh database of `mode`."""
    return Opener(flavour, stack=stack, **arguments(request, mode))


@pytest.fixture(params=FLAVOURS)
def flavour(request: pytest.FixtureRequest) -> str:
    """Return ``"sync"`` or ``"async"``."""
    return str(request.param)


@pytest.fixture(params=[*MODES[:-1], pytest.param("cloud", marks=pytest.mark.soak)])
def any_mode(request: pytest.FixtureRequest) -> str:
    """Return the name of a mode."""
    return str(request.param)


@pytest.fixture(params=SHARED)
def shared_mode(request: pytest.FixtureRequest) -> str:
    """Return the name of a mode in which several stores see one database."""
    return str(request.param)


@pytest.fixture
def store(request: pytest.FixtureRequest, any_mode: str, flavour: str) -> Iterator[Any]:
    """Yield a store of each mode and flavour."""
    with ExitStack() as stack:
        yield opener(request, any_mode, flavour, stack)()


@pytest.fixture
def open_store(request: pytest.FixtureRequest, shared_mode: str, flavour: str) -> Iterator[Opener]:
    """Yield an opener of stores that share a database, for each such mode and flavour."""
    with ExitStack() as stack:
        yield opener(request, shared_mode, flavour, stack)


@pytest.fixture
def proxy(sqld: Server) -> Iterator[FaultyProxy]:
    """Yield a proxy in front of a fresh server."""
    with FaultyProxy(sqld.url) as proxy:
        yield proxy


@pytest.fixture
def leader(tmp_path: Path) -> Iterator[Server]:
    """Yield a server that others can follow."""
    with sqld_server(tmp_path / "leader", grpc=True) as server:
        yield server


@pytest.fixture
def primary(leader: Server) -> Iterator[LibsqlStore]:
    """Yield a store on it."""
    with LibsqlStore(leader.url) as store:
        yield store
