"""A network that resets, cuts off, delays and repeats what goes over it."""

from __future__ import annotations

import random
from contextlib import ExitStack, suppress
from threading import Thread
from typing import TYPE_CHECKING

import pytest

from harel_schema import LibsqlStore, migrate
from harel_schema.errors import HarelSchemaError
from harel_schema.transfer import copy
from harel_schema.verify import verify
from tests.faults.ledger import Ledger, audit, read, work
from tests.support.proxy import Answer, Cut, Drop, FaultyProxy, Late, Pass, Twice
from tests.transfer.support import make_source

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.support.proxy import Fault

KINDS: dict[str, Callable[[random.Random], Fault]] = {
    "reset": lambda chance: chance.choice([Drop("reset"), Cut(0, "reset"), Cut(90, "reset")]),
    "truncated": lambda chance: Cut(chance.randrange(400)),
    "delayed": lambda chance: Late(chance.random() / 5),
    "repeated": lambda _: Twice(),
    "refused": lambda chance: Answer(chance.choice([429, 500, 502, 503])),
}


def faults(kind: str, number: int) -> Iterator[Fault]:
    """Yield what becomes of `number` requests, every third of which something happens to."""
    chance = random.Random(number)
    for _ in range(number):
        yield KINDS[kind](chance) if chance.random() < 1 / 3 else Pass()


@pytest.fixture
def network(sqld) -> Iterator[FaultyProxy]:
    """Yield what is between us and a server."""
    with FaultyProxy(sqld.url) as proxy:
        yield proxy


def commit_over(network, kind: str, server: str, ledger, rounds: int) -> None:
    """Let two stores with two threads each commit over a bad network, and audit what is there."""
    migrate.upgrade(server)
    network.script(*faults(kind, 20 * rounds))
    with ExitStack() as stack:
        stores = [
            stack.enter_context(LibsqlStore(network.url, request_timeout=1.0)) for _ in range(2)
        ]
        threads = [
            Thread(target=work, args=(store, f"s{at}", Ledger(ledger)), kwargs={"rounds": rounds})
            for at, store in enumerate(stores)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    acknowledged = read(ledger)
    assert len(acknowledged) > rounds / 2
    assert audit(server, acknowledged) == []


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("rounds", [5, pytest.param(150, marks=pytest.mark.soak)])
@pytest.mark.timeout(600)
def test_workers_commit_over_it(network, kind, rounds, sqld, tmp_path) -> None:
    """Each acknowledged commit is there, once and whole."""
    commit_over(network, kind, sqld.url, tmp_path / "ledger", rounds)


def until_done(verb: Callable[[], object]) -> None:
    """Run a verb again until it is done: it may fail, with an error of ours."""
    for _ in range(120):
        with suppress(HarelSchemaError):
            verb()
            return
    raise AssertionError("120 runs did not end it")


@pytest.mark.soak
@pytest.mark.timeout(600)
@pytest.mark.parametrize("kind", KINDS)
def test_verbs_run_over_it(network, kind, sqld, tmp_path) -> None:
    """An upgrade, a copy there and one back end where they should, if need be in several runs."""
    source, back = make_source(tmp_path / "source.db"), tmp_path / "back.db"
    network.script(*faults(kind, 100))
    until_done(lambda: migrate.upgrade(network.url, prefix="other"))
    assert migrate.current(sqld.url, "other", shape=True).shape == ()
    until_done(lambda: copy(source, network.url))
    until_done(lambda: copy(network.url, back))
    until_done(lambda: verify(network.url, back))
    assert verify(source, sqld.url).equal
    assert verify(source, back).equal
