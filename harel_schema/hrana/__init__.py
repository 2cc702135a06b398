"""Hrana 3, the HTTP protocol of libSQL's server and of Turso: `protocol` without I/O, two clients.

The clients, and with them httpx, are imported when they are first named.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from harel_schema.hrana import protocol
from harel_schema.hrana.protocol import *  # noqa: F403 - its __all__ is the public part

if TYPE_CHECKING:
    from harel_schema.hrana.aio import AsyncClient, AsyncStream
    from harel_schema.hrana.client import Client, Stream
    from harel_schema.hrana.flow import Retry

_HOME = {
    "AsyncClient": "aio",
    "AsyncStream": "aio",
    "Client": "client",
    "Retry": "flow",
    "Stream": "client",
}

__all__ = ["AsyncClient", "AsyncStream", "Client", "Retry", "Stream"]
__all__ += protocol.__all__


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
