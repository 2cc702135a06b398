"""Two sqld that follow one primary, behind a load balancer that gives each a request in turn."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from typing import TYPE_CHECKING, Any

import pytest

from harel_schema import LibsqlStore, dbapi, migrate
from harel_schema.errors import StoreConflict, TransactionLost
from harel_schema.models import Event
from harel_schema.testing import sqld_server
from tests.store.support import Opener, full_commit, new
from tests.support.balancer import Balancer
from tests.support.proxy import Cut, Drop, Pass

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from harel_schema.testing import Server


@contextmanager
def balanced(leader: Server, directory: Path, *, sticky: bool = False) -> Iterator[Balancer]:
    """Yield a balancer over two followers; `sticky` ones tell their own addresses."""
    follows = {"primary_grpc_url": leader.grpc_url, "sticky": sticky}
    with (
        sqld_server(directory / "a", **follows) as a,
        sqld_server(directory / "b", **follows) as b,
        Balancer(a.url, b.url) as balancer,
    ):
        yield balancer


@pytest.fixture
def balancer(leader: Server, tmp_path: Path) -> Iterator[Balancer]:
    """Yield the balancer."""
    with balanced(leader, tmp_path) as balancer:
        yield balancer


@pytest.fixture
def store(primary: LibsqlStore, balancer: Balancer, flavour: str) -> Iterator[Any]:
    """Yield a store on the balancer, sync and async; the schema is made on the primary."""
    with ExitStack() as stack:
        yield Opener(flavour, balancer.url, stack)()


def test_own_writes_are_read_on_either_server(store, balancer, primary) -> None:
    """Each commit is in the next two reads, of which each server answers one."""
    exe, before = new(), len(balancer.requests)
    for at in range(20):
        seqs = store.commit(exe, **full_commit(exe, processed_event_id=f"ev{at}"))
        assert store.load_for_event("e", f"ev{at}") == (exe, True)
        assert [entry.seq for entry in store.pending_outbox()][-3:] == seqs
    assert len(balancer.requests) == before + 60
    assert primary.load("e") == exe


def test_a_retry_loop_ends_with_the_second_try(store, primary) -> None:
    """After a conflict the next load has the row that won, whichever server answers it."""
    exe = new()
    store.save(exe)
    for _ in range(5):
        stale = store.load("e")
        primary.save(exe)
        with pytest.raises(StoreConflict):
            store.save(stale)
        fresh = store.load("e")
        store.save(fresh)
        exe = primary.load("e")
        assert exe.version == fresh.version


def test_lost_answers_are_settled(store, balancer, primary) -> None:
    """The server that is asked what became of a commit is not the one that passed it on."""
    exe = new()
    for at in range(6):
        balancer.script(Drop() if at % 2 else Cut(0), Pass())
        assert store.commit(exe, [("t", Event(kind="k"))]) == [at + 1]
    assert len(primary.pending_outbox()) == primary.load("e").version == 6


def test_threads_share_it(balancer, primary) -> None:
    """Commits that come together are one request, and each thread reads its own."""

    def work(name: str) -> int:
        exe = new(name)
        for _ in range(5):
            store.commit(exe, [("t", Event(kind="k"))])
            assert store.load(name) == exe
        return exe.version

    with LibsqlStore(balancer.url) as store, ThreadPoolExecutor(8) as pool:
        assert list(pool.map(work, [f"e{at}" for at in range(8)])) == [5] * 8
    assert len(primary.pending_outbox()) == 40


def test_a_transaction_of_several_requests_is_refused_whole(primary, balancer) -> None:
    """Only the server that began it knows it: the error says so, and nothing is applied."""
    with closing(dbapi.connect(balancer.url)) as connection:
        connection.execute("INSERT INTO harel_trace VALUES ('e', 0, '{}')")
        with pytest.raises(TransactionLost, match="load balancer") as caught:
            connection.execute("INSERT INTO harel_trace VALUES ('e', 1, '{}')")
        assert "--http-self-url" in str(caught.value)
        connection.rollback()
    assert primary.read_trace("e") == []


def test_a_transaction_stays_with_a_server_that_tells_its_address(leader, tmp_path) -> None:
    """With sqld's --http-self-url, what the other tools do in transactions works as well."""
    with balanced(leader, tmp_path, sticky=True) as balancer:
        assert migrate.upgrade(balancer.url).after == "0004"
        with LibsqlStore(balancer.url, create_schema=False) as store:
            exe = new()
            store.save(exe)
            assert store.load("e") == exe
