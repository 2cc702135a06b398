"""Whatever interrupts a call, the store keeps no transaction, no lock and no lie."""

from __future__ import annotations

import asyncio
import gc
import linecache
import os
import signal
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import harel_schema
from harel_schema import AsyncLibsqlStore, LibsqlStore
from harel_schema.errors import ConnectionLost, Error, InterfaceError, StoreError
from harel_schema.models import Event
from tests.store.conftest import arguments
from tests.store.support import full_commit, new, rows
from tests.store.test_group import held
from tests.support.proxy import FaultyProxy, Hang

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import FrameType

OURS = str(Path(harel_schema.__file__).parent)


class Interrupt(BaseException):
    """What a signal handler may raise anywhere."""


@pytest.fixture(params=["libsql", "sqlite3"])
def store(request: pytest.FixtureRequest) -> Iterator[LibsqlStore]:
    """Yield a store on a local file, of each driver."""
    with LibsqlStore("state.db", driver=request.param) as store:
        yield store


class Striking:
    """A driver's connection, or its cursor, whose statements are counted, and one interrupted."""

    def __init__(self, raw: Any, strike: Callable[[Callable[[], Any]], Any]) -> None:
        self._raw = raw
        self._strike = strike

    def __getattr__(self, name: str) -> Any:
        return getattr(self._raw, name)

    def execute(self, *args: Any) -> Any:
        """Run a statement."""
        return self._strike(lambda: self._raw.execute(*args))

    def cursor(self) -> Striking:
        """Return a cursor that is counted too."""
        return Striking(self._raw.cursor(), self._strike)


@contextmanager
def interrupted(store: LibsqlStore, call: int, *, after: bool) -> Iterator[None]:
    """Let the `call`-th statement of the driver raise, before or after it did its work."""
    session, count = store._backend._connection._session, 0
    raw = session._raw

    def strike(run: Callable[[], Any]) -> Any:
        nonlocal count
        count += 1
        if count == call and not after:
            raise Interrupt
        result = run()
        if count == call:
            raise Interrupt
        return result

    session._raw = Striking(raw, strike)
    try:
        yield
    finally:
        session._raw = raw


@pytest.mark.parametrize("after", [False, True])
def test_an_interrupt_anywhere_leaves_the_store_whole(store, after) -> None:
    """At each statement of a commit: the version moves only if the row did, and others can write.

    An interrupt after COMMIT finds the commit durable, so the version has moved.
    """
    exe = new("e")
    store.save(exe)
    for call in range(1, 100):
        version, finished = exe.version, False
        with suppress(Interrupt), interrupted(store, call, after=after):
            store.commit(exe, **full_commit(exe, emits=[("t", Event(kind="k"))]))
            finished = True
        assert not store._backend._connection.in_transaction
        assert store.load("e").version == exe.version
        assert len(store.pending_outbox()) == exe.version - 1
        with LibsqlStore("state.db", driver=store._backend._connection.driver, timeout=0) as other:
            other.append_trace("other", {"a": 1})
        if finished:
            assert exe.version == version + 1
            break
    assert 8 < call < 99
    assert exe.version == (3 if after else 2)


@contextmanager
def interrupted_at(line: int) -> Iterator[list[str]]:
    """Let the `line`-th line of ours that this thread runs raise; yield where that was."""
    lines, where = count(1), list[str]()

    def trace(frame: FrameType, event: str, _arg: object) -> Any:
        code = frame.f_code
        text = linecache.getline(code.co_filename, frame.f_lineno).lstrip()
        # Leaving a `with` block is no place: Python looks for signals only once the lock is free.
        # Nor is the end of what the garbage collector finds meanwhile, of whatever test.
        passed_over = text.startswith("with ") or code.co_name == "__del__"
        if event == "line" and not passed_over and next(lines) == line:
            where.append(f"{code.co_filename}:{frame.f_lineno} {text}")
            raise Interrupt
        return trace

    def enter(frame: FrameType, _event: str, _arg: object) -> Any:
        return trace if frame.f_code.co_filename.startswith(OURS) else None

    before = sys.gettrace()
    sys.settrace(enter)
    try:
        yield where
    finally:
        sys.settrace(before)


@pytest.mark.parametrize("company", [0, 2])
def test_an_interrupt_at_any_line(store, company) -> None:
    """The version tells what is stored, and the others who commit meanwhile are not held up."""
    for line in range(1, 5000, 1 + 2 * company):
        exe, others = new(f"e{line}"), [new(f"o{line}-{at}") for at in range(company)]
        with ThreadPoolExecutor(max(company, 1)) as pool:
            saves = [pool.submit(store.save, other) for other in others]
            with suppress(Interrupt), interrupted_at(line) as where:
                store.commit(exe, [(exe.id, Event(kind="k"))], "ev")
            assert [save.result(20) for save in saves] == [None] * company, where
        for each in (exe, *others):
            stored = store.load(each.id)
            assert each.version == (stored.version if stored else 0), where
        assert all(other.version == 1 for other in others), where
        assert [e for e in store.pending_outbox() if e.target_id == exe.id][exe.version :] == []
        assert not store._backend._connection.in_transaction, where
        if not where:
            break
    assert exe.version == 1
    assert 60 < line < 4999


def test_an_interrupted_leader_takes_nobody_with_it(store) -> None:
    """The interrupt reaches its own caller; the others of the group are committed by the next."""
    exes = [new(f"e{at}") for at in range(4)]
    # BEGIN and the insert of the first, COMMIT, then BEGIN of the second group.
    with interrupted(store, 4, after=True), ThreadPoolExecutor(4) as pool:
        with held(store):
            first = pool.submit(store.save, exes[0])
            while store._group._running is None:
                pass
            waiting = []
            for at, exe in enumerate(exes[1:]):
                waiting.append(pool.submit(store.save, exe))
                while len(store._group._waiting) != at + 1:
                    pass
        assert first.result() is None
        with pytest.raises(Interrupt):
            waiting[0].result()
        assert [future.result() for future in waiting[1:]] == [None, None]
    assert [exe.version for exe in exes] == [1, 0, 1, 1]
    assert store.ids_with_prefix("e") == ["e0", "e2", "e3"]


def test_an_interrupted_leader_after_commit_tells_the_others(store) -> None:
    """When COMMIT was done, the others of the group get their results."""
    exes = [new(f"e{at}") for at in range(3)]
    # 3 statements for the first; BEGIN, one insert for both, COMMIT.
    with interrupted(store, 3 + 3, after=True), ThreadPoolExecutor(3) as pool:
        with held(store):
            pool.submit(store.save, exes[0])
            while store._group._running is None:
                pass
            waiting = []
            for at, exe in enumerate(exes[1:]):
                waiting.append(pool.submit(store.save, exe))
                while len(store._group._waiting) != at + 1:
                    pass
        with pytest.raises(Interrupt):
            waiting[0].result()
        assert waiting[1].result() is None
    assert [exe.version for exe in exes] == [1, 1, 1]
    assert store.ids_with_prefix("e") == ["e0", "e1", "e2"]


def test_a_signal_withdraws_a_caller_that_waits(store) -> None:
    """KeyboardInterrupt while waiting for the leader: the commit is withdrawn, nothing hangs."""
    struck = threading.Event()

    def interrupt(_number: int, _frame: object) -> None:
        if not struck.is_set():
            struck.set()
            raise KeyboardInterrupt

    exe, main = new("mine"), threading.main_thread().ident
    before = signal.signal(signal.SIGUSR1, interrupt)
    try:
        with ThreadPoolExecutor(2) as pool:
            with held(store):
                first = pool.submit(store.save, new("first"))
                while store._group._running is None:
                    pass

                def strike() -> None:
                    while not store._group._waiting:
                        pass
                    # One that arrives just before the wait begins does not end the wait.
                    while not struck.wait(0.01):
                        signal.pthread_kill(main, signal.SIGUSR1)

                pool.submit(strike)
                with pytest.raises(KeyboardInterrupt):
                    store.save(exe)
            assert first.result() is None
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert exe.version == 0
    assert store.load("mine") is None
    store.save(exe)
    assert exe.version == 1


def test_an_interrupted_request_is_reported_to_the_others(sqld) -> None:
    """Nobody waits for an answer that its leader no longer reads."""
    with FaultyProxy(sqld.url) as proxy, LibsqlStore(proxy.url) as store:
        backend, exes = store._backend, [new(f"e{at}") for at in range(3)]
        batch = backend.client.batch

        def send(steps: Any, **options: Any) -> Any:
            if len(steps.steps) > 10:
                raise Interrupt
            return batch(steps, **options)

        backend.client.batch = send
        hang = Hang(forward=False, ending="reset")
        proxy.script(hang)
        with ThreadPoolExecutor(3) as pool:
            futures = []
            for at, exe in enumerate(exes):
                futures.append(pool.submit(store.save, exe))
                assert hang.arrived.wait(10)
                while len(store._group._waiting) != at:
                    pass
            hang.release.set()
            assert futures[0].result() is None
            with pytest.raises(Interrupt):
                futures[1].result()
            with pytest.raises(ConnectionLost, match="was interrupted"):
                futures[2].result()
        backend.client.batch = batch
        store.save(exes[1])
        assert [exe.version for exe in exes] == [1, 1, 0]


@pytest.fixture(params=["libsql", "remote"])
async def async_store(request: pytest.FixtureRequest) -> Any:
    """Yield an async store of the two kinds."""
    name = request.getfixturevalue("sqld_url") if request.param == "remote" else "state.db"
    async with await AsyncLibsqlStore.create(name) as store:
        yield store


async def test_a_cancelled_commit_is_withdrawn_or_finishes(async_store) -> None:
    """Cancelled at any moment, the version tells what is stored, and the store goes on."""
    outcomes = set()
    for turns in range(40):
        exe = new(f"e{turns}")
        task = asyncio.create_task(async_store.commit(exe, [("t", Event(kind="k"))]))
        for _ in range(turns):
            await asyncio.sleep(0)
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
        await async_store.append_trace("fence", {})  # what was begun before it is done
        stored = await async_store.load(exe.id)
        assert exe.version == (0 if stored is None else 1)
        outcomes.add(exe.version)
    assert 0 in outcomes
    entries = await async_store.pending_outbox()
    assert len(entries) == len(await async_store.ids_with_prefix("e"))


async def test_a_commit_that_has_begun_finishes_in_the_background() -> None:
    """Cancelling the await does not undo what the thread is doing; the version moves."""
    async with await AsyncLibsqlStore.create("state.db") as store:
        local, begun, gate = store._backend.opened, threading.Event(), threading.Event()
        attempt = local.attempt

        def slow(units: Any) -> Any:
            begun.set()
            gate.wait(10)
            return attempt(units)

        local.attempt = slow
        exe = new("e")
        task = asyncio.create_task(store.save(exe))
        await asyncio.to_thread(begun.wait)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert exe.version == 0
        gate.set()
        assert (await store.load("e")).version == 1
        assert exe.version == 1


async def test_a_cancelled_read_does_not_disturb_the_next_one() -> None:
    """Two calls never meet on the connection, whoever stopped waiting."""
    async with await AsyncLibsqlStore.create("state.db") as store:
        await store.save(new("e"))
        for _ in range(20):
            task = asyncio.create_task(store.load("e"))
            await asyncio.sleep(0)
            task.cancel()
            assert (await store.load("e")).version == 1


async def test_closing_waits_for_what_was_handed_in(async_store) -> None:
    """Commits that were handed in before close() are committed, and close() ends."""
    exes = [new(f"e{at}") for at in range(5)]
    tasks = [asyncio.create_task(async_store.save(exe)) for exe in exes]
    await asyncio.sleep(0)
    await async_store.close()
    await asyncio.gather(*tasks)
    assert [exe.version for exe in exes] == [1] * 5
    with pytest.raises(StoreError, match="closed"):
        await async_store.load("e0")


@pytest.mark.parametrize("kind", ["local", "remote", "replica"])
def test_closing_waits_for_the_commits_of_other_threads(request, kind) -> None:
    """Commits that other threads handed in before close() are committed; later ones are refused."""
    with LibsqlStore(**arguments(request, "libsql" if kind == "local" else kind)) as store:
        exes = [new(f"e{at}") for at in range(4)]
        with ThreadPoolExecutor(5) as pool:
            with held(store):
                saves = []
                for at, exe in enumerate(exes):
                    saves.append(pool.submit(store.save, exe))
                    while not (store._group._running and len(store._group._waiting) == at):
                        pass
                closing = pool.submit(store.close)
                while not store._closed:
                    pass
                with pytest.raises(StoreError, match="closed"):
                    store.save(new("late"))
                assert not closing.done()
            assert [save.result() for save in saves] == [None] * 4
            closing.result()
        assert [exe.version for exe in exes] == [1] * 4


def test_closing_does_not_wait_for_ever(sqld) -> None:
    """A server that hangs holds close() up no longer than a request may take."""
    with (
        FaultyProxy(sqld.url) as proxy,
        ThreadPoolExecutor(1) as pool,
        LibsqlStore(proxy.url, timeout=0.1, request_timeout=0.5) as store,
    ):
        hang = Hang()
        proxy.script(hang, *[Hang()] * 3)
        save = pool.submit(store.save, new("e"))
        assert hang.arrived.wait(10)
        store.close()
        with pytest.raises(Error):
            save.result(10)


async def test_a_dropped_store_ends_its_thread() -> None:
    """A store that nobody closed lets go of its thread and its file."""
    store = await AsyncLibsqlStore.create("state.db")
    thread = store._backend._worker._thread
    del store
    gc.collect()
    thread.join(10)
    assert not thread.is_alive()
    # another library may open the file now
    with LibsqlStore("state.db", driver="sqlite3") as other:
        assert other.load("e") is None


def in_fork(call: Callable[[], bool]) -> bool:
    """Return what `call` returns in a forked child; False when it raises."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            code = 0 if call() else 2
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
@pytest.mark.parametrize("driver", ["libsql", "sqlite3"])
def test_a_child_does_not_open_what_its_parent_had_open(driver) -> None:
    """SQLite would take the parent's locks for its own, and lose commits; another file is fine."""

    def child() -> bool:
        with pytest.raises(InterfaceError, match="was forked"):
            LibsqlStore("state.db", driver=driver)
        with LibsqlStore("other.db", driver=driver) as other:
            other.save(new("mine"))
        return True

    with LibsqlStore("state.db", driver=driver) as store:
        store.save(new("e"))
        assert in_fork(child)
        store.save(new("f"))
    assert in_fork(lambda: LibsqlStore("state.db", driver=driver).load("f") is not None)
    with LibsqlStore("other.db", driver=driver) as other:
        assert other.load("mine").version == 1


@pytest.mark.parametrize("kind", ["local", "remote"])
def test_after_a_fork_the_child_is_refused(request, kind) -> None:
    """A child gets a clear error at once, whatever the parent's threads were doing."""
    name = request.getfixturevalue("sqld_url") if kind == "remote" else "state.db"
    with LibsqlStore(name) as store:
        store.save(new("e"))
        with store._group._mutex:
            child = os.fork()
            if child == 0:
                code = 1
                try:
                    store.save(new("f"))
                except StoreError as exc:
                    store.close()
                    code = 0 if "before a fork" in str(exc) else 2
                finally:
                    os._exit(code)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert rows(store, "SELECT id FROM harel_executions") == [("e",)]
