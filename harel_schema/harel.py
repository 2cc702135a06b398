"""The stores for harel's engine: a drop-in for its own, from harel 0.7 on.

The same stores as `harel_schema.LibsqlStore` and `harel_schema.AsyncLibsqlStore`, with harel's own
`Execution`, `Event`, `OutboxEntry`, `SpawnEntry` and `ExecutionPage`. Where the annotations name
a class of `harel_schema.models`, harel's class of that name is meant: they have the same fields.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

try:
    from harel.engine.execution import Execution, ExecutionPage, ExecutionSummary
    from harel.engine.store import OutboxEntry, SpawnEntry
    from harel.engine.store import StoreConflict as _HarelConflict
    from harel.spec.states import Event
except ModuleNotFoundError as exc:
    raise ImportError(
        "harel_schema.harel needs harel 0.7 or later; run `pip install 'harel-schema[harel]'`"
    ) from exc

from harel_schema import aio, errors, store
from harel_schema.calls import Codec

if TYPE_CHECKING:
    from harel_schema.backends.aio import Backend as AsyncBackend
    from harel_schema.backends.sync import Backend

__all__ = ["AsyncLibsqlStore", "LibsqlStore", "StoreConflict"]


class StoreConflict(_HarelConflict, errors.StoreConflict):  # type: ignore[misc]
    """A stale write: both harel's `StoreConflict` and that of `harel_schema`."""

    def __init__(self, execution_id: str, expected: int, found: int | None) -> None:
        errors.StoreConflict.__init__(self, execution_id, expected, found)


_HAREL = Codec(
    execution=Execution,
    event=Event,
    summary=ExecutionSummary,
    page=ExecutionPage,
    outbox_entry=OutboxEntry,
    spawn_entry=SpawnEntry,
    conflict=StoreConflict,
)


class _Connection:
    """What harel's own suite asks of a store's private ``_conn``, and no more."""

    def __init__(self, backend: Backend | AsyncBackend) -> None:
        self._backend = backend

    @property
    def in_transaction(self) -> bool:
        """Whether a transaction is open at this moment."""
        return self._backend.in_transaction


class LibsqlStore(store.LibsqlStore):
    """`harel_schema.LibsqlStore` with harel's models and harel's `StoreConflict`."""

    _codec = _HAREL

    @property
    def _conn(self) -> _Connection:
        return _Connection(self._backend)


class AsyncLibsqlStore(aio.AsyncLibsqlStore):
    """`harel_schema.AsyncLibsqlStore` with harel's models and harel's `StoreConflict`."""

    _codec = _HAREL

    @property
    def _conn(self) -> _Connection:
        return _Connection(self._backend)
