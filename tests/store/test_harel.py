"""The stores that speak harel's models, checked by harel's own contracts."""

from __future__ import annotations

import inspect
import sys
from contextlib import ExitStack
from typing import TYPE_CHECKING

import harel.engine.execution as theirs
import harel.testing as contracts
import pytest
from harel.engine.store import OutboxEntry, SpawnEntry
from harel.engine.store import StoreConflict as HarelConflict
from harel.engine.store.base import AsyncExecutionStore, ExecutionStore
from harel.spec.states import Event

from harel_schema import StoreConflict
from harel_schema.harel import AsyncLibsqlStore, LibsqlStore
from tests.store.conftest import arguments, opener

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def store(request, any_mode: str) -> Iterator[LibsqlStore]:
    """Yield a sync store for harel of each mode."""
    with ExitStack() as stack:
        yield opener(request, any_mode, "sync", stack)(sync=LibsqlStore)


def test_listing(store) -> None:
    """The listing contract holds."""
    contracts.assert_listing_contract(store, ordered=True, ns="n:")


def test_purge(store) -> None:
    """The purge contract holds."""
    contracts.assert_purge_contract(store)


def test_outbox(store) -> None:
    """The outbox contract holds."""
    contracts.assert_outbox_contract(store)


async def test_async_contracts(request, any_mode: str) -> None:
    """All three contracts hold for the async store."""
    settings = arguments(request, any_mode)
    async with await AsyncLibsqlStore.create(**settings) as store:
        await contracts.assert_async_listing_contract(store, ordered=True, ns="n:")
        await contracts.assert_async_purge_contract(store)
        await contracts.assert_async_outbox_contract(store)


def test_the_store_speaks_harels_classes() -> None:
    """Everything that comes out is an instance of harel's class."""
    with LibsqlStore() as store:
        exe = theirs.Execution(id="e", definition_id="d")
        store.commit(exe, [("t", Event(kind="k"))], spawns=(("c", "", {}),))
        assert type(store.load("e")) is theirs.Execution
        assert type(store.load_for_event("e", "x")[0]) is theirs.Execution
        assert type(store.list_executions()) is theirs.ExecutionPage
        assert type(store.list_executions().items[0]) is theirs.ExecutionSummary
        entry = store.pending_outbox()[0]
        assert (type(entry), type(entry.event)) == (OutboxEntry, Event)
        assert type(store.pending_spawns()[0]) is SpawnEntry


def test_a_conflict_is_both_harels_and_ours() -> None:
    """Whoever catches either class catches it, with the same attributes."""
    with LibsqlStore() as store:
        store.save(theirs.Execution(id="e", definition_id="d"))
        for cls in (HarelConflict, StoreConflict):
            with pytest.raises(cls) as caught:
                store.save(theirs.Execution(id="e", definition_id="d"))
            error = caught.value
            assert (error.execution_id, error.expected, error.found) == ("e", 0, 1)
            assert "stale write to e" in str(error)


async def test_the_stores_satisfy_harels_protocols() -> None:
    """A sync and an async store to harel, each with every method and parameter."""
    with LibsqlStore() as store:
        assert isinstance(store, ExecutionStore)
        assert not inspect.iscoroutinefunction(store.load)
    async with await AsyncLibsqlStore.create() as store:
        assert isinstance(store, AsyncExecutionStore)
    for ours, protocol in ((LibsqlStore, ExecutionStore), (AsyncLibsqlStore, AsyncExecutionStore)):
        for name, wanted in inspect.getmembers(protocol, inspect.isfunction):
            if name.startswith("_"):
                continue
            method = getattr(ours, name)
            assert inspect.iscoroutinefunction(method) == inspect.iscoroutinefunction(wanted), name
            parameters = list(inspect.signature(method).parameters.items())
            for position, (parameter, spec) in enumerate(
                inspect.signature(wanted).parameters.items()
            ):
                assert parameters[position][0] == parameter, name
                assert parameters[position][1].kind == spec.kind, name


def test_the_connection_tells_whether_a_transaction_is_open(store) -> None:
    """`_conn`, into which harel's own suite looks, tells the truth; a server keeps none open."""
    store.save(theirs.Execution(id="e", definition_id="d"))
    assert not store._conn.in_transaction
    if connection := getattr(store._backend, "_connection", None):
        connection.execute("BEGIN IMMEDIATE")
        assert store._conn.in_transaction
        connection.rollback()
        assert not store._conn.in_transaction


async def test_the_connection_of_the_async_twin() -> None:
    """The same, asked from another thread than the one that uses it."""
    async with await AsyncLibsqlStore.create() as store:
        assert not store._conn.in_transaction
        connection = store._backend.opened._connection
        await store._backend._worker.call(lambda: connection.execute("BEGIN"))
        assert store._conn.in_transaction
        await store._backend._worker.call(connection.rollback)
        assert not store._conn.in_transaction


def test_without_harel_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """The binding without the engine says what to install."""
    monkeypatch.setitem(sys.modules, "harel.engine.execution", None)
    monkeypatch.delitem(sys.modules, "harel_schema.harel")
    with pytest.raises(ImportError, match=r"harel-schema\[harel\]"):
        import harel_schema.harel  # noqa: F401, PLC0415
