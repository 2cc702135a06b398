"""One way to call both clients, so that one suite runs on both."""

from __future__ import annotations

import inspect
from typing import Any, Self

from harel_schema.hrana import AsyncClient, Client, Stream


class Awaitable:
    """A synchronous client or stream behind the asynchronous one's interface."""

    def __init__(self, inner: Client | Stream) -> None:
        self._inner = inner

    def __getattr__(self, name: str) -> Any:
        """Return the attribute, its calls awaitable and its iterators asynchronous."""
        value = getattr(self._inner, name)
        if not callable(value):
            return value
        if inspect.isgeneratorfunction(value):
            return lambda *args, **kwargs: _iterate(value(*args, **kwargs))
        if name == "stream":
            return lambda: Awaitable(value())
        return _awaitable(value)

    async def __aenter__(self) -> Self:
        """Enter the inner one."""
        self._inner.__enter__()
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        """Leave the inner one."""
        self._inner.__exit__(*exc_info)


def _awaitable(function: Any) -> Any:
    async def call(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    return call


async def _iterate(iterator: Any) -> Any:
    try:
        for item in iterator:
            yield item
    finally:
        iterator.close()


def make(kind: str, url: str, waits: list[float], **settings: Any) -> Any:
    """Return a client of `kind` ``"sync"`` or ``"async"`` that writes its waits to `waits`."""
    if kind == "sync":
        return Awaitable(Client(url, sleep=waits.append, **settings))

    async def sleep(seconds: float) -> None:
        waits.append(seconds)

    return AsyncClient(url, sleep=sleep, **settings)
