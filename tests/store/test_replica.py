"""An embedded replica: what it sees, and when."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest

from harel_schema import LibsqlStore
from harel_schema.errors import NotSupportedError, StoreConflict
from harel_schema.models import Event, Execution
from tests.store.support import Blocking, Opener

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


def new(name: str = "e") -> Execution:
    """Return an execution that no store has."""
    return Execution(id=name, definition_id="d")


@pytest.fixture
def replica(sqld_url: str, flavour: str, tmp_path) -> Iterator[Callable[[str], Any]]:
    """Yield a function that opens a store on a replica file of the server."""
    with ExitStack() as stack:
        yield lambda name: Opener(flavour, tmp_path / name, stack, sync_url=sqld_url)()


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


def test_only_a_replica_syncs() -> None:
    """`sync` on another store is an error that names the setting."""
    with LibsqlStore() as store, pytest.raises(NotSupportedError, match="pass sync_url"):
        store.sync()
