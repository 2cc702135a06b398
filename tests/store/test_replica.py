"""An embedded replica: what it sees, and when."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest

from harel_schema import LibsqlStore
from harel_schema.errors import ConnectionLost, NotSupportedError, StoreConflict
from harel_schema.models import Event
from tests.store.support import Blocking, Opener, new

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@pytest.fixture
def replica(sync_url, sqld, flavour: str, tmp_path) -> Iterator[Callable[..., Any]]:
    """Yield a function that opens a store on a replica file of the server."""
    url = sync_url(sqld)
    with ExitStack() as stack:
        yield lambda name, **given: Opener(flavour, tmp_path / name, stack, sync_url=url)(**given)


@pytest.fixture
def primary(sqld_url: str) -> Iterator[LibsqlStore]:
    """Yield a store on the server itself."""
    with LibsqlStore(sqld_url) as store:
        yield store


def test_a_replica_reads_its_own_writes(replica, primary) -> None:
    """What was committed through a replica is there at its next read, and on the primary."""
    store, exe = replica("a.db"), new()
    assert store.commit(exe, [("t", Event(kind="k"))]) == [1]
    assert store.load("e") == primary.load("e") == exe
    assert len(store.pending_outbox()) == 1


def test_a_replica_is_stale_until_it_syncs(replica, primary) -> None:
    """Reads are local: what others commit shows after `sync`."""
    store = replica("a.db")
    primary.save(new())
    assert store.load("e") is None
    store.sync()
    assert store.load("e").version == 1


def test_a_stale_replica_conflicts_once(replica) -> None:
    """After a conflict the next load is fresh, so a retry loop ends with the second try."""
    first, second = replica("a.db"), replica("b.db")
    exe = new()
    first.save(exe)
    second.sync()
    stale = second.load("e")
    first.save(exe)
    with pytest.raises(StoreConflict) as caught:
        second.save(stale)
    assert (caught.value.expected, caught.value.found) == (1, 2)
    fresh = second.load("e")
    second.save(fresh)
    assert fresh.version == 3
    first.sync()
    assert first.load("e").version == 3


def test_a_commit_is_one_request_to_the_primary(replica) -> None:
    """The library that syncs sends nothing for a commit; reads send nothing to it."""
    store = replica("a.db")
    backend = (store.store if isinstance(store, Blocking) else store)._backend
    exe = new()
    before = backend.client.requests_sent
    store.commit(exe, [("t", Event(kind="k"))], "ev", trace={"a": 1})
    store.load("e")
    store.pending_outbox()
    assert backend.client.requests_sent == before + 1


def test_a_replica_goes_on_reading_while_its_primary_is_gone(replica, sqld) -> None:
    """Without a write of its own to wait for, it reads what it has."""
    store = replica("a.db")
    store.save(new())
    assert store.load("e").version == 1
    sqld.stop()
    assert store.load("e").version == 1


def test_what_a_stale_replica_can_and_cannot_do(replica) -> None:
    """Two replicas, of which one never syncs by itself: it reads the past and writes the present.

    Its reads are of one past moment. What it writes is decided by the primary: a version check
    against what is there now, seqs and trace numbers that go on from there, a purge of now.
    """
    ahead, behind = replica("a.db"), replica("b.db")
    exe = new()
    for at in range(3):
        ahead.commit(exe, [("t", Event(kind="k"))], f"ev{at}", trace={"at": at})
    assert behind.load_for_event("e", "ev0") == (None, False)
    assert behind.list_executions().items == behind.pending_outbox() == behind.read_trace("e") == []
    with pytest.raises(StoreConflict) as caught:
        behind.save(new())
    assert caught.value.found == 3
    # The conflict made it catch up, with all that belongs to the row.
    assert behind.load_for_event("e", "ev2") == (exe, True)
    ahead.save(exe)
    assert behind.load("e").version == 3
    assert behind.purge("e", 3) is False
    assert behind.commit(new("f"), [("t", Event(kind="k"))]) == [4]
    behind.append_trace("e", {"at": 3})
    assert [step["index"] for step in behind.read_trace("e")] == [0, 1, 2, 3]
    assert behind.load("e").version == 4


def test_retry_loops_of_two_replicas_end(replica) -> None:
    """Two writers in turns, each on a replica: every loop ends with its second try."""
    stores, tries = (replica("a.db"), replica("b.db")), []
    stores[0].save(new())
    stores[1].sync()
    for at in range(20):
        store = stores[at % 2]
        for tried in range(1, 10):
            exe = store.load("e")
            try:
                store.save(exe)
            except StoreConflict:
                continue
            tries.append(tried)
            break
    assert exe.version == 21
    assert max(tries) == 2


def test_a_replica_opens_without_its_primary(replica, sqld, caplog) -> None:
    """A file that was synced before opens and reads, and the log says so; a commit fails."""
    store = replica("a.db")
    store.save(new())
    assert store.load("e").version == 1
    store.close()
    sqld.stop()
    again = replica("a.db", timeout=0.5)
    assert "is as old as its last sync" in caplog.text
    exe = again.load("e")
    with pytest.raises(ConnectionLost):
        again.save(exe)
    assert exe.version == 1
    sqld.start()
    again.save(exe)
    assert again.load("e").version == 2


def test_a_primary_that_restarts_is_found_again(replica, sqld) -> None:
    """Killed and started again, the primary takes the next commit, and the replica reads it."""
    store, exe = replica("a.db"), new()
    store.save(exe)
    for _ in range(3):
        sqld.kill()
        sqld.start()
        store.commit(exe, [("t", Event(kind="k"))])
        assert store.load("e") == exe
    assert len(store.pending_outbox()) == 3


def test_only_a_replica_syncs() -> None:
    """`sync` on another store is an error that names the setting."""
    with LibsqlStore() as store, pytest.raises(NotSupportedError, match="pass sync_url"):
        store.sync()
