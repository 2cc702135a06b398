"""Two stores on one database, driven at random, against a dictionary."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)

from harel_schema.errors import StoreConflict
from harel_schema.models import Event, Execution, TimerOp
from tests.store.support import Opener

if TYPE_CHECKING:
    from collections.abc import Callable

IDS = st.sampled_from(["a", "a:1", "b"])
WHICH = st.sampled_from([0, 1])
PATHS = st.sampled_from(["p", "q"])
TIMES = st.floats(0, 10, width=16)
EVENTS = st.lists(st.tuples(st.none() | IDS, st.sampled_from(["k", "l"])), max_size=3)
TIMERS = st.lists(
    st.builds(TimerOp, st.sampled_from(["schedule", "cancel"]), PATHS, TIMES), max_size=3
)
SPAWNS = st.lists(st.tuples(IDS, PATHS, st.just({"n": 1})), max_size=2)
TRACES = st.none() | st.just({"step": 1})
RING = 2


class Machine(RuleBasedStateMachine):
    """Every method of the store, by two stores, with copies that may be stale."""

    def __init__(self, make: Callable[[], tuple[Any, Any, ExitStack]]) -> None:
        super().__init__()
        self.first, self.second, self.stack = make()
        self.stores = (self.first, self.second)
        for store in self.stores:
            store.trace_max = RING
        self.rows: dict[str, int] = {}
        self.copies: dict[tuple[int, str], Execution] = {}
        self.outbox: dict[int, tuple[str | None, str]] = {}
        self.spawns: dict[int, tuple[str, str]] = {}
        self.processed: set[tuple[str, str]] = set()
        self.timers: dict[tuple[str, str], float] = {}
        self.traces: dict[str, list[int]] = {}
        self.last = {"outbox": 0, "spawns": 0}

    @rule(which=WHICH, key=IDS)
    def load(self, which: int, key: str) -> None:
        """Load a fresh copy."""
        found = self.stores[which].load(key)
        assert (found.version if found else None) == self.rows.get(key)
        if found is not None:
            self.copies[which, key] = found

    @rule(which=WHICH, key=IDS)
    def create(self, which: int, key: str) -> None:
        """Make a brand-new copy, as if nobody had it."""
        self.copies[which, key] = Execution(id=key, definition_id="d")

    @rule(
        which=WHICH,
        key=IDS,
        emits=EVENTS,
        event=st.none() | PATHS,
        timers=TIMERS,
        spawns=SPAWNS,
        trace=TRACES,
    )
    def commit(self, which: int, key: str, **parts: Any) -> None:
        """Commit whatever copy there is."""
        exe = self.copies.setdefault((which, key), Execution(id=key, definition_id="d"))
        before, stored = exe.version, self.rows.get(key, 0)
        emits = [(to, Event(kind=kind)) for to, kind in parts["emits"]]
        call = (exe, emits, parts["event"], parts["timers"], parts["spawns"], parts["trace"])
        if before != stored:
            with pytest.raises(StoreConflict) as caught:
                self.stores[which].commit(*call)
            assert (caught.value.expected, caught.value.found) == (before, self.rows.get(key))
            assert exe.version == before
            return
        seqs = self.stores[which].commit(*call)
        assert seqs == [self.last["outbox"] + 1 + at for at in range(len(emits))]
        self.rows[key] = exe.version
        assert exe.version == before + 1
        self._apply(key, seqs, **parts)

    def _apply(self, key: str, seqs: list[int], **parts: Any) -> None:
        for seq, emit in zip(seqs, parts["emits"], strict=True):
            self.outbox[seq] = emit
            self.last["outbox"] = seq
        for child, _, _ in parts["spawns"]:
            self.last["spawns"] += 1
            self.spawns[self.last["spawns"]] = (key, child)
        if parts["event"] is not None:
            self.processed.add((key, parts["event"]))
        for op in parts["timers"]:
            if op.action == "schedule":
                self.timers[key, op.path] = op.fire_at
            else:
                self.timers.pop((key, op.path), None)
        if parts["trace"] is not None:
            self._trace(key)

    def _trace(self, key: str) -> None:
        kept = self.traces.setdefault(key, [])
        kept.append(kept[-1] + 1 if kept else 0)
        del kept[:-RING]

    @rule(which=WHICH, key=IDS)
    def append_trace(self, which: int, key: str) -> None:
        """Append to a trace alone."""
        self.stores[which].append_trace(key, {"step": 1})
        self._trace(key)

    @rule(which=WHICH, seq=st.integers(1, 9))
    def acknowledge(self, which: int, seq: int) -> None:
        """Acknowledge an event and a spawn."""
        self.stores[which].ack_outbox(seq)
        self.stores[which].ack_spawn(seq)
        self.outbox.pop(seq, None)
        self.spawns.pop(seq, None)

    @rule(which=WHICH, key=IDS, path=PATHS, moment=TIMES)
    def delete_timer(self, which: int, key: str, path: str, moment: float) -> None:
        """Delete a timer that may have been armed anew."""
        self.stores[which].delete_timer(key, path, moment)
        if self.timers.get((key, path)) == moment:
            del self.timers[key, path]

    @rule(which=WHICH, key=IDS, version=st.integers(1, 4))
    def purge(self, which: int, key: str, version: int) -> None:
        """Purge at a version that may be wrong."""
        stored = self.rows.get(key)
        assert self.stores[which].purge(key, version) is (stored == version)
        if stored in (None, version):
            self.rows.pop(key, None)
            self.processed = {pair for pair in self.processed if pair[0] != key}
            self.timers = {pair: at for pair, at in self.timers.items() if pair[0] != key}
            self.outbox = {seq: emit for seq, emit in self.outbox.items() if emit[0] != key}
            self.spawns = {seq: pair for seq, pair in self.spawns.items() if pair[0] != key}
            self.traces.pop(key, None)

    @initialize()
    def look(self) -> None:
        """Begin with the invariant."""

    @invariant()
    def both_see_the_model(self) -> None:
        """Each store sees exactly what the dictionary says."""
        for store in self.stores:
            assert {e.id: e.version for e in store.iter_executions(page_size=2)} == self.rows
            assert store.ids_with_prefix("a") == sorted(k for k in self.rows if k[0] == "a")
            found = store.pending_outbox()
            assert {e.seq: (e.target_id, e.event.kind) for e in found} == self.outbox
            assert {s.seq: (s.parent_id, s.child_id) for s in store.pending_spawns()} == self.spawns
            due = store.due_timers(5.0)
            assert [at for _, _, at in due] == sorted(at for at in self.timers.values() if at <= 5)
            assert all(self.timers[key, path] == at for key, path, at in due)
            for key in ("a", "a:1", "b"):
                assert [s["index"] for s in store.read_trace(key)] == self.traces.get(key, [])
                assert store.is_processed(key, "p") == ((key, "p") in self.processed)

    def teardown(self) -> None:
        """Close the stores."""
        self.stack.close()


@pytest.mark.parametrize("flavour", ["sync", "async"])
@pytest.mark.parametrize("driver", ["libsql", "sqlite3"])
def test_two_stores_are_one_dictionary(driver, flavour, tmp_path_factory) -> None:
    """Any sequence of calls by two stores is what a dictionary would have done."""

    def make() -> tuple[Any, Any, ExitStack]:
        stack = ExitStack()
        path = tmp_path_factory.mktemp("machine") / "state.db"
        opener = Opener(flavour, path, stack, driver=driver, durability="normal")
        return opener(), opener(), stack

    _run(make, examples=25)


@pytest.mark.parametrize(("flavour", "examples"), [("sync", 5), ("async", 5)])
def test_two_stores_on_a_server_are_one_dictionary(sqld_url, flavour, examples) -> None:
    """The same on a real server, each example under a prefix of its own."""
    count = 0

    def make() -> tuple[Any, Any, ExitStack]:
        nonlocal count
        count += 1
        stack = ExitStack()
        opener = Opener(flavour, sqld_url, stack, prefix=f"p{count}")
        return opener(), opener(), stack

    _run(make, examples=examples)


@pytest.mark.parametrize("flavour", ["sync", "async"])
def test_a_replica_and_its_primary_are_one_dictionary(sqld_url, flavour, tmp_path_factory) -> None:
    """A store on a replica that syncs before it looks, beside one on the primary."""
    count = 0

    def make() -> tuple[Any, Any, ExitStack]:
        nonlocal count
        count += 1
        stack, prefix = ExitStack(), f"p{count}"
        path = tmp_path_factory.mktemp("replica") / "r.db"
        replica = Opener(flavour, path, stack, sync_url=sqld_url, prefix=prefix)()
        return Opener(flavour, sqld_url, stack, prefix=prefix)(), Fresh(replica), stack

    _run(make, examples=4)


class Fresh:
    """A store on a replica that syncs before every call."""

    def __init__(self, store: Any) -> None:
        object.__setattr__(self, "_store", store)

    def __getattr__(self, name: str) -> Any:
        self._store.sync()
        return getattr(self._store, name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._store, name, value)


def _run(make: Callable[[], tuple[Any, Any, ExitStack]], *, examples: int) -> None:
    run_state_machine_as_test(
        lambda: Machine(make),
        settings=settings(
            max_examples=examples,
            stateful_step_count=20,
            suppress_health_check=list(HealthCheck),
        ),
    )
