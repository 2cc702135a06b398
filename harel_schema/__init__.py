"""Schema, store and data tools for harel executions on SQLite, libSQL and Turso.

The stores are imported when they are first named.

PYTEST_DONT_REWRITE: or pytest warns programs that import this package before they call it.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from harel_schema._version import __version__

if TYPE_CHECKING:
    from harel_schema.aio import AsyncLibsqlStore
    from harel_schema.errors import StoreConflict, StoreMoved
    from harel_schema.store import LibsqlStore

_HOME = {
    "AsyncLibsqlStore": "aio",
    "LibsqlStore": "store",
    "StoreConflict": "errors",
    "StoreMoved": "errors",
}

__all__ = ["AsyncLibsqlStore", "LibsqlStore", "StoreConflict", "StoreMoved", "__version__"]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME})
