"""A sqld that follows another one: it passes commits on, and answers reads from its own file."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import harel.testing as contracts
import pytest

from harel_schema import LibsqlStore
from harel_schema.errors import ConnectionLost, StoreConflict
from harel_schema.harel import AsyncLibsqlStore as HarelTwin
from harel_schema.harel import LibsqlStore as HarelStore
from harel_schema.models import Event
from harel_schema.testing import sqld_server
from tests.store.support import Blocking, Opener, full_commit, new
from tests.support.proxy import Cut, Drop, FaultyProxy

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from harel_schema.testing import Server


@pytest.fixture
def follower(leader: Server, tmp_path: Path) -> Iterator[Server]:
    """Yield a server that follows it."""
    with sqld_server(tmp_path / "follower", primary_grpc_url=leader.grpc_url) as server:
        yield server


@pytest.fixture
def store(primary: LibsqlStore, follower: Server, flavour: str) -> Iterator[Any]:
    """Yield a store on the follower, sync and async; the schema is made on the primary."""
    with ExitStack() as stack:
        yield Opener(flavour, follower.url, stack, request_timeout=1.0)()


def test_own_writes_are_read(store, primary) -> None:
    """Each commit is in the next read, with all its parts, and on the primary."""
    exe = new()
    for at in range(15):
        seqs = store.commit(exe, [("t", Event(kind="k"))], f"ev{at}", trace={"at": at})
        assert store.load_for_event("e", f"ev{at}") == (exe, True)
        assert [entry.seq for entry in store.pending_outbox()] == seqs
        store.ack_outbox(seqs[0])
        assert store.pending_outbox() == []
    assert primary.load("e") == exe


def test_a_commit_and_a_read_are_one_request(store) -> None:
    """Learning how far the follower must have come costs no request of its own."""
    client = (store.store if isinstance(store, Blocking) else store)._backend.client
    exe, before = new(), client.requests_sent
    store.commit(exe, **full_commit(exe))
    assert client.requests_sent == before + 1
    assert store.load("e") == exe
    assert client.requests_sent == before + 2


def test_a_retry_loop_ends_with_the_second_try(store, primary) -> None:
    """After a conflict the next load has the row that won, however stale the follower was."""
    exe = new()
    store.save(exe)
    for _ in range(10):
        stale = store.load("e")
        primary.save(exe)
        with pytest.raises(StoreConflict) as caught:
            store.save(stale)
        assert caught.value.found == exe.version
        fresh = store.load("e")
        store.save(fresh)
        exe = primary.load("e")
        assert exe.version == fresh.version


def test_an_empty_database_is_made_through_the_follower(follower, leader) -> None:
    """A store on the follower may be the first; the tables are there when it is open."""
    with LibsqlStore(follower.url) as store, LibsqlStore(leader.url, create_schema=False) as other:
        store.save(new())
        assert other.load("e") == store.load("e") == new().model_copy(update={"version": 1})


async def test_harels_contracts_hold(follower) -> None:
    """Listing, purge and outbox, sync and async."""
    with HarelStore(follower.url) as store:
        contracts.assert_listing_contract(store, ordered=True, ns="s:")
        contracts.assert_purge_contract(store)
        contracts.assert_outbox_contract(store)
    async with await HarelTwin.create(follower.url, prefix="p") as twin:
        await contracts.assert_async_listing_contract(twin, ordered=True, ns="a:")
        await contracts.assert_async_purge_contract(twin)
        await contracts.assert_async_outbox_contract(twin)


def test_a_lost_answer_is_settled_by_the_primary(primary, follower, flavour) -> None:
    """What became of a commit is asked where it was decided, not read from a file that lags."""
    with FaultyProxy(follower.url) as proxy, ExitStack() as stack:
        store = Opener(flavour, proxy.url, stack)()
        for at in range(10):
            exe = new(f"e{at}")
            primary.save(exe)
            proxy.script(Drop() if at % 2 else Cut(0))
            assert store.commit(exe, [("t", Event(kind="k"))]) == [at + 1]
            primary.save(exe)
            proxy.script(Drop() if at % 2 else Cut(0))
            assert store.purge(exe.id, 3) is True
            assert primary.load(exe.id) is None


def test_while_the_primary_is_gone(store, leader, primary) -> None:
    """Reads go on; a commit fails in time, and is there once when it is made again."""
    exe = new()
    store.save(exe)
    assert store.load("e").version == 1
    leader.kill()
    with pytest.raises(ConnectionLost):
        store.commit(exe, [("t", Event(kind="k"))])
    assert exe.version == store.load("e").version == 1
    leader.start()
    store.commit(exe, [("t", Event(kind="k"))])
    assert exe.version == store.load("e").version == primary.load("e").version == 2
    assert len(store.pending_outbox()) == 1


def test_after_a_crash_of_the_primary_own_writes_are_read(store, leader, primary) -> None:
    """A killed primary counts anew, and the follower notices later; reads stay right."""
    exe = new()
    for _ in range(5):
        store.save(exe)
    assert store.load("e").version == 5
    leader.kill()
    leader.start()
    deadline = time.monotonic() + 1.5
    while time.monotonic() < deadline:
        store.save(exe)
        assert store.load("e").version == exe.version
    assert primary.load("e") == exe


def test_a_commit_may_outlast_an_absence_of_the_primary(primary, follower, leader) -> None:
    """The follower waits for its primary: a commit goes through when it comes back in time."""
    with LibsqlStore(follower.url) as store, ThreadPoolExecutor(1) as pool:
        exe = new()
        store.save(exe)
        leader.kill()
        before = store._backend.client.requests_sent
        commit = pool.submit(store.commit, exe, [("t", Event(kind="k"))])
        while store._backend.client.requests_sent == before:
            pass
        leader.start()
        assert commit.result(60) == [1]
        assert primary.load("e") == store.load("e") == exe
