"""Commits that wait together share a transaction, and nothing else."""

from __future__ import annotations

import asyncio
import math
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

import pytest

from harel_schema import AsyncLibsqlStore, LibsqlStore
from harel_schema.commit import group
from harel_schema.commit.unit import Unit, nothing
from harel_schema.errors import DataError, Error, IntegrityError, StoreConflict
from harel_schema.models import Event, Execution, TimerOp
from tests.store.conftest import arguments, opener
from tests.store.support import new, rows
from tests.support.proxy import Hang

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

# A table whose foreign key is looked at by COMMIT alone, and triggers that fail in each way.
TRAPS = (
    "CREATE TABLE trap (x INTEGER REFERENCES trap (y) DEFERRABLE INITIALLY DEFERRED, y UNIQUE)",
    (
        "CREATE TRIGGER late AFTER INSERT ON harel_outbox WHEN new.target_id = 'late' "
        "BEGIN INSERT INTO trap (x) VALUES (1); END"
    ),
    (
        "CREATE TRIGGER abort AFTER INSERT ON harel_outbox WHEN new.target_id = 'abort' "
        "BEGIN SELECT RAISE(ABORT, 'not in this store'); END"
    ),
    (
        "CREATE TRIGGER lost AFTER INSERT ON harel_outbox WHEN new.target_id = 'rollback' "
        "BEGIN SELECT RAISE(ROLLBACK, 'all is lost'); END"
    ),
)


def emit(target: str) -> list[tuple[str, Event]]:
    """Return the emits of a commit with one event for `target`."""
    return [(target, Event(kind="k"))]


def set_traps(store: LibsqlStore) -> None:
    """Make the triggers; a local connection checks foreign keys only when told to."""
    backend = store._backend
    if hasattr(backend, "_connection"):
        backend._connection.execute("PRAGMA foreign_keys=ON").fetchall()
    store._write(Unit(tuple((sql, ((),)) for sql in TRAPS), nothing))


@pytest.fixture
def store(request: pytest.FixtureRequest, any_mode: str) -> Iterator[LibsqlStore]:
    """Yield a sync store of each mode."""
    with ExitStack() as stack:
        yield opener(request, any_mode, "sync", stack)()


@contextmanager
def held(store: LibsqlStore) -> Iterator[list[int]]:
    """Keep the first commit from running until the block ends; yield the sizes of the groups."""
    sizes: list[int] = []
    gate = threading.Event()
    prepare = store._group._prepare

    def counted(units: Sequence[Unit[Any]]) -> group.Attempt:
        sizes.append(len(units))
        attempt = prepare(units)
        run = attempt.run

        def gated() -> Any:
            assert gate.wait(10)
            return run()

        attempt.run = gated  # type: ignore[method-assign]
        return attempt

    store._group._prepare = counted
    try:
        yield sizes
    finally:
        gate.set()


def together(store: LibsqlStore, *calls: Callable[[], Any]) -> tuple[list[Any], list[int]]:
    """Make calls in a thread each, in this order, behind one that is held; return what became.

    The first of the calls runs alone, the others wait for it together.
    """

    def outcome(call: Callable[[], Any]) -> Any:
        try:
            return call()
        except Exception as exc:  # noqa: BLE001 - it is the outcome
            return exc

    with ThreadPoolExecutor(len(calls)) as pool:
        with held(store) as sizes:
            futures = []
            for at, call in enumerate(calls):
                futures.append(pool.submit(outcome, call))
                while not (sizes if at == 0 else len(store._group._waiting) == at):
                    pass
        return [future.result() for future in futures], sizes


def test_what_waits_together_shares_a_transaction(store) -> None:
    """One commit runs at once and alone; those that came meanwhile are one group."""
    exes = [new(f"e{at}") for at in range(6)]
    calls = [lambda exe=exe: store.commit(exe, emit(exe.id)) for exe in exes]
    outcomes, sizes = together(store, *calls)
    assert sizes == [1, 5]
    assert outcomes == [[1], [2], [3], [4], [5], [6]]
    assert [exe.version for exe in exes] == [1] * 6
    assert [entry.target_id for entry in store.pending_outbox()] == [exe.id for exe in exes]


def test_a_conflict_is_its_own(store) -> None:
    """A conflicting neighbour gets its conflict; the others their seqs."""
    stored = new("old")
    store.save(stored)
    exes = [new("a"), new("b"), new("old"), new("c")]
    calls = [lambda exe=exe: store.commit(exe, emit(exe.id)) for exe in exes]
    outcomes, sizes = together(store, *calls)
    assert sizes == [1, 3]
    assert isinstance(outcomes[2], StoreConflict)
    assert (outcomes[2].expected, outcomes[2].found) == (0, 1)
    assert [exe.version for exe in exes] == [1, 1, 0, 1]
    assert [entry.target_id for entry in store.pending_outbox()] == ["a", "b", "c"]


def test_a_conflict_leaves_no_trace(store) -> None:
    """Not even what a trigger wrote before the row was found to be there already."""
    log = (
        "CREATE TABLE log (id)",
        (
            "CREATE TRIGGER attempt BEFORE INSERT ON harel_executions "
            "BEGIN INSERT INTO log VALUES (new.id); END"
        ),
    )
    store.save(new("old"))
    store._write(Unit(tuple((sql, ((),)) for sql in log), nothing))
    exes = [new("a"), new("b"), new("old"), new("c")]
    outcomes, sizes = together(store, *(lambda exe=exe: store.save(exe) for exe in exes))
    assert sizes == [1, 3]
    assert isinstance(outcomes[2], StoreConflict)
    assert rows(store, "SELECT id FROM log") == [("a",), ("b",), ("c",)]


@pytest.mark.parametrize("driver", ["libsql", "sqlite3"])
def test_threads_find_each_other(driver) -> None:
    """Threads that commit at once share transactions, also where the driver holds the GIL."""
    sizes: list[int] = []
    barrier = threading.Barrier(16)
    with LibsqlStore("state.db", driver=driver) as store, ThreadPoolExecutor(16) as pool:

        def commits(exe: Execution) -> None:
            barrier.wait(10)
            for _ in range(20):
                store.save(exe)

        prepare = store._group._prepare

        def counted(units: Any) -> Any:
            sizes.append(len(units))
            return prepare(units)

        store._group._prepare = counted
        list(pool.map(commits, [new(f"e{at}") for at in range(16)]))
    assert sum(sizes) == 16 * 20
    assert len(sizes) < 16 * 20 / 2


def test_a_lone_thread_waits_for_nobody(store, monkeypatch) -> None:
    """One thread that commits never lets another one run first."""
    monkeypatch.setattr(group, "time", None)
    exe = new("e")
    for _ in range(3):
        store.save(exe)
    assert exe.version == 3


def test_two_commits_of_one_execution_are_decided_in_their_order(store) -> None:
    """The first of two in a group wins, the second conflicts with it."""
    first, second = new("e", outcome="first"), new("e", outcome="second")
    outcomes, sizes = together(
        store, lambda: store.save(new("x")), lambda: store.save(first), lambda: store.save(second)
    )
    assert sizes == [1, 2]
    assert outcomes[:2] == [None, None]
    assert (outcomes[2].expected, outcomes[2].found) == (0, 1)
    assert store.load("e").outcome == "first"


def test_what_cannot_be_stored_fails_alone(store) -> None:
    """A neighbour with text that is no Unicode, or a timer at NaN, takes nobody with it."""
    exes = [new(name) for name in "abcde"]
    outcomes, sizes = together(
        store,
        lambda: store.save(exes[0]),
        lambda: store.commit(exes[1], emit("b")),
        lambda: store.commit(exes[2], [("\ud800", Event(kind="k"))]),
        lambda: store.commit(exes[3], [], timers=(TimerOp("schedule", "p", math.nan),)),
        lambda: store.commit(exes[4], emit("e")),
    )
    assert sizes == [1, 4]
    assert isinstance(outcomes[2], DataError)
    assert isinstance(outcomes[3], DataError | IntegrityError)
    assert [exe.version for exe in exes] == [1, 1, 0, 0, 1]
    assert [entry.target_id for entry in store.pending_outbox()] == ["b", "e"]


def test_every_writing_method_rides_along(store) -> None:
    """Acks, timers, traces, purges and definitions share the transaction too."""
    exe = new("e")
    store.commit(exe, emit("t"), trace={"n": 0}, spawns=(("c", "", {}),))
    outcomes, sizes = together(
        store,
        lambda: store.save(exe),
        lambda: store.ack_outbox(1),
        lambda: store.ack_spawn(1),
        lambda: store.delete_timer("e", "p", 1.0),
        lambda: store.append_trace("e", {"n": 1}),
        lambda: store.publish_definition("m", 1, "x", "{}").version,
        lambda: store.purge("e", 9),
        lambda: store.purge("nobody", 9),
    )
    assert sizes == [1, 7]
    assert outcomes == [None, None, None, None, None, 1, False, False]
    assert store.pending_outbox() == store.pending_spawns() == []
    assert [step["n"] for step in store.read_trace("e")] == [0, 1]


@pytest.mark.parametrize("target", ["abort", "rollback"])
def test_an_error_is_its_own(store, target) -> None:
    """A unit that fails is undone alone, even when it takes the whole transaction with it."""
    set_traps(store)
    exes = [new(name) for name in "abcd"]
    targets = ["a", "b", target, "d"]
    calls = [
        lambda exe=exe, to=to: store.commit(exe, emit(to))
        for exe, to in zip(exes, targets, strict=True)
    ]
    outcomes, sizes = together(store, *calls)
    assert sizes == [1, 3]
    assert isinstance(outcomes[2], IntegrityError)
    assert [exe.version for exe in exes] == [1, 1, 0, 1]
    assert [entry.target_id for entry in store.pending_outbox()] == ["a", "b", "d"]
    assert store.load("c") is None


def test_when_commit_fails_nobody_is_told_otherwise(store) -> None:
    """A COMMIT that fails fails the whole group, and no version moves."""
    set_traps(store)
    exes = [new(name) for name in "abc"]
    targets = ["a", "b", "late"]
    calls = [
        lambda exe=exe, to=to: store.commit(exe, emit(to))
        for exe, to in zip(exes, targets, strict=True)
    ]
    outcomes, sizes = together(store, *calls)
    assert sizes == [1, 2]
    assert [type(outcome) for outcome in outcomes[1:]] == [IntegrityError] * 2
    assert [exe.version for exe in exes] == [1, 0, 0]
    assert [entry.target_id for entry in store.pending_outbox()] == ["a"]
    store.save(exes[1])
    assert exes[1].version == 1


@pytest.mark.parametrize("target", ["abort", "rollback", "late"])
def test_a_lone_failure_leaves_no_lock(open_store, target) -> None:
    """After any failure another connection can write at once."""
    store, other = open_store(), open_store(timeout=0.0)
    inner = getattr(store, "store", None)
    if inner is None:
        set_traps(store)
    else:
        with ExitStack() as stack:
            set_traps(stack.enter_context(LibsqlStore(open_store.database, **open_store._options)))
        if target == "late" and hasattr(inner._backend, "opened"):
            inner._backend.opened._connection.execute("PRAGMA foreign_keys=ON").fetchall()
    exe = new("e")
    with pytest.raises(IntegrityError):
        store.commit(exe, emit(target))
    assert exe.version == 0
    other.save(new("e"))
    assert other.pending_outbox() == []


def test_a_group_is_bounded(store, monkeypatch) -> None:
    """No more than so many units, and so many bytes, share a transaction."""
    monkeypatch.setattr(group, "MAX_UNITS", 2)
    calls = [lambda at=at: store.save(new(f"e{at}")) for at in range(6)]
    outcomes, sizes = together(store, *calls)
    assert sizes == [1, 2, 2, 1]
    assert outcomes == [None] * 6
    monkeypatch.setattr(group, "MAX_BYTES", 1)
    outcomes, sizes = together(store, *(lambda at=at: store.purge(f"e{at}", 1) for at in range(3)))
    assert sizes == [1, 2]  # a purge weighs nothing
    calls = [lambda at=at: store.save(new(f"e{at}")) for at in range(3)]
    assert together(store, *calls) == ([None] * 3, [1, 1, 1])


def test_a_server_gets_one_request_a_group(proxy) -> None:
    """While one commit is on its way the others wait, and go in one request."""
    with LibsqlStore(proxy.url) as store, ThreadPoolExecutor(20) as pool:
        hang = Hang(forward=False, ending="reset")
        before = len(proxy.requests)
        proxy.script(hang)
        exes = [new(f"e{at}") for at in range(20)]
        futures = [pool.submit(store.commit, exes[0], emit("e0"))]
        assert hang.arrived.wait(10)
        futures += [pool.submit(store.commit, exe, emit(exe.id)) for exe in exes[1:]]
        while len(store._group._waiting) < 19:
            pass
        hang.release.set()
        seqs = [future.result()[0] for future in futures]
        assert sorted(seqs) == list(range(1, 21))
        # the one that was lost, its read-back, its repetition, and the group
        assert len(proxy.requests) == before + 4


async def test_tasks_share_transactions(request, any_mode, monkeypatch) -> None:
    """Tasks that commit at the same time are one group or two, each with its own outcome."""
    sizes: list[int] = []
    async with await AsyncLibsqlStore.create(**arguments(request, any_mode)) as store:
        await store.save(new("e7"))
        taken = group.take

        def counted(waiting: Any) -> Any:
            found = taken(waiting)
            sizes.append(len(found))
            return found

        monkeypatch.setattr("harel_schema.commit.tasks.take", counted)
        exes = [new(f"e{at}") for at in range(20)]
        outcomes = await asyncio.gather(
            *(store.commit(exe, emit(exe.id)) for exe in exes), return_exceptions=True
        )
        assert isinstance(outcomes[7], StoreConflict)
        assert [exe.version for exe in exes] == [int(at != 7) for at in range(20)]
        entries = {entry.target_id: [entry.seq] for entry in await store.pending_outbox()}
        assert entries == {exe.id: outcomes[at] for at, exe in enumerate(exes) if at != 7}
        assert sum(sizes) == 20
        assert len(sizes) < 10


async def test_when_commit_fails_no_task_is_told_otherwise() -> None:
    """A COMMIT that fails fails every task of the group."""
    with LibsqlStore("state.db") as first:
        set_traps(first)
    async with await AsyncLibsqlStore.create("state.db") as store:
        connection = store._backend.opened._connection
        await store._backend._worker.call(
            lambda: connection.execute("PRAGMA foreign_keys=ON").fetchall()
        )
        exes = [new(name) for name in "abc"]
        gate = threading.Event()
        blocker = asyncio.create_task(store._backend._worker.call(gate.wait))
        tasks = [
            asyncio.create_task(store.commit(exe, emit(to)))
            for exe, to in zip(exes, ["a", "late", "c"], strict=True)
        ]
        await asyncio.sleep(0)
        gate.set()
        await blocker
        outcomes = await asyncio.gather(*tasks, return_exceptions=True)
        assert all(isinstance(outcome, Error) for outcome in outcomes)
        assert [exe.version for exe in exes] == [0, 0, 0]
        assert await store.pending_outbox() == []
