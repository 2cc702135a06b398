"""A statechart of every kind that harel has: on every mode the same life as on harel's store."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from harel import DurableRunner, Event, SqliteStore, definition_from_dsl_file
from harel.engine.aio.durable import AsyncDurableRunner
from harel.engine.resolve import DictResolver

from harel_schema.harel import AsyncLibsqlStore, LibsqlStore
from harel_schema.testing import sqld_server
from tests.store.conftest import MODES, arguments, opener

if TYPE_CHECKING:
    from collections.abc import Iterator

CHARTS = Path(__file__).with_name("charts")
EVENTS = [
    Event(id="1", kind="Early", data={"note": "too soon"}),
    Event(id="2", kind="Go"),
    Event(id="3", kind="Left"),
]
SWEEPS = 8


def work(stm: Any, _event: Event) -> None:
    """Try once more."""
    stm.execution_ctx["attempts"] += 1


def check(stm: Any, _event: Event) -> str:
    """Succeed with the third attempt."""
    return "ok" if stm.execution_ctx["attempts"] >= 3 else "fail"


class Clock:
    """A time that moves when it is told to."""

    now = 1000.0

    def __call__(self) -> float:
        """Return the time."""
        return self.now


def runner(kind: type, store: Any, clock: Clock) -> Any:
    """Return a runner of harel's for the zoo."""
    zoo = definition_from_dsl_file(
        CHARTS / "zoo.stm", "zoo", actions={"work": work, "check": check}
    )
    review = definition_from_dsl_file(CHARTS / "review.stm", "review")
    resolver = DictResolver({"jobs.review": review})
    return kind(store, {zoo.id: zoo}, clock=clock, trace=True, resolver=resolver)


def live(store: Any) -> None:
    """Bring a zoo from its creation to its end."""
    clock = Clock()
    zoo = runner(DurableRunner, store, clock)
    zoo.create("zoo", {"items": [True, True, True]}, "z")
    for event in EVENTS:
        zoo.process("z", event)
    for _ in range(SWEEPS):
        clock.now += 61
        zoo.fire_due_timers()


def remains(store: Any) -> dict[str, Any]:
    """Return everything that a life left behind, without what harel draws by chance."""
    ids = [summary.id for summary in store.list_executions().items]
    found: dict[str, Any] = {
        "outbox": len(store.pending_outbox()),
        "timers": store.due_timers(1e12),
    }
    found["spawns"] = len(store.pending_spawns())
    for key in ids:
        exe = store.load(key).model_dump()
        exe["context"].pop("backoff", None)
        exe.pop("history", None)
        found[key] = exe
        found[f"trace of {key}"] = [step["index"] for step in store.read_trace(key)]
    return found


@pytest.fixture(scope="module")
def expected() -> dict[str, Any]:
    """Return what a life leaves behind in harel's own store."""
    store = SqliteStore(":memory:")
    live(store)
    found = remains(store)
    assert found["z"]["active_path"] == "Done"
    assert found["z"]["context"]["note"] == "too soon"
    assert len(found) == 3 + 2 * 7  # the zoo, two regions, one asked and three each
    return found


@pytest.fixture
def follower(tmp_path: Path) -> Iterator[str]:
    """Yield the address of a server that follows another one."""
    with (
        sqld_server(tmp_path / "leader", grpc=True) as leader,
        sqld_server(tmp_path / "follower", primary_grpc_url=leader.grpc_url) as server,
    ):
        yield server.url


@pytest.mark.parametrize("mode", [*MODES, "follower"])
def test_a_zoo_lives_the_same_life(request, mode, expected) -> None:
    """Regions, invoke, fan-out, timers, a deferred event and a retry end as they do in harel's."""
    with ExitStack() as stack:
        if mode == "follower":
            url = request.getfixturevalue("follower")
            store = stack.enter_context(LibsqlStore(url))
        else:
            store = opener(request, mode, "sync", stack)(sync=LibsqlStore)
        live(store)
        assert remains(store) == expected


@pytest.mark.parametrize("mode", MODES)
async def test_an_asynchronous_zoo_lives_the_same_life(request, mode, expected) -> None:
    """The same with harel's asynchronous runner."""
    settings, clock = arguments(request, mode), Clock()
    async with await AsyncLibsqlStore.create(**settings) as store:
        zoo = runner(AsyncDurableRunner, store, clock)
        await zoo.create("zoo", {"items": [True, True, True]}, "z")
        for event in EVENTS:
            await zoo.process("z", event)
        for _ in range(SWEEPS):
            clock.now += 61
            await zoo.fire_due_timers()
        for key, value in expected.items():
            if isinstance(value, dict):
                exe = (await store.load(key)).model_dump()
                exe["context"].pop("backoff", None)
                exe.pop("history", None)
                assert exe == value
        assert await store.pending_outbox() == await store.pending_spawns() == []
