"""Clients of a real sqld, straight and through the proxy that breaks things."""

from __future__ import annotations

from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any

import pytest

from harel_schema.hrana import Client
from tests.hrana.drivers import make
from tests.support.proxy import FaultyProxy

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator

    from harel_schema.devserver import Server


@pytest.fixture
def client(sqld: Server) -> Iterator[Client]:
    """Yield a synchronous client of a fresh server."""
    with Client(sqld.url) as client:
        yield client


@pytest.fixture
def proxy(sqld: Server) -> Iterator[FaultyProxy]:
    """Yield a proxy in front of a fresh server."""
    with FaultyProxy(sqld.url) as proxy:
        yield proxy


@pytest.fixture
def waits() -> list[float]:
    """Return the seconds that clients of `connect` waited; nothing really sleeps."""
    return []


@pytest.fixture(params=["sync", "async"])
async def connect(
    request: pytest.FixtureRequest, waits: list[float]
) -> AsyncIterator[Callable[..., Any]]:
    """Yield a maker of clients of both kinds, called alike; they are closed at the end."""
    async with AsyncExitStack() as stack:

        async def connect(url: str, **settings: Any) -> Any:
            return await stack.enter_async_context(make(request.param, url, waits, **settings))

        yield connect


@pytest.fixture
async def direct(connect: Callable[..., Any], sqld: Server) -> Any:
    """Return a client of either kind, straight to a fresh server."""
    return await connect(sqld.url)


@pytest.fixture
async def through(connect: Callable[..., Any], proxy: FaultyProxy) -> Any:
    """Return a client of either kind that reaches a fresh server through `proxy`."""
    return await connect(proxy.url)
