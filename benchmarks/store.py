"""The speed of local stores beside harel 0.9.0's own, every ratio within one run.

    python benchmarks/store.py [DIRECTORY]

Takes about a minute. A full commit is the version check, 3 emits, the dedupe marker, 2 timers,
2 spawns and a trace step; every store syncs each commit to the disk. What is compared takes turns
in short rounds. Of opening and importing the ratio is milliseconds of our own.
"""

from __future__ import annotations

import asyncio
import os
import sqlite3
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

from figures import Figure, compared, show
from harel.engine.aio_store import AsyncSqliteStore
from harel.engine.execution import Execution
from harel.engine.store import LibsqlStore as HarelLibsqlStore
from harel.engine.store import SqliteStore, TimerOp
from harel.spec.states import Event

from harel_schema import dbapi
from harel_schema.harel import AsyncLibsqlStore, LibsqlStore

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

    Rates = dict[str, list[float]]

MANY = 64


def new(name: str) -> Execution:
    """Return an execution of about a kilobyte."""
    return Execution(id=name, definition_id="d", context={"x": list(range(50))})


def full(exe: Execution) -> dict[str, Any]:
    """Return what a full commit of `exe` is made of."""
    return {
        "emits": [("a", Event(kind="1")), ("b", Event(kind="2")), (None, Event(kind="3"))],
        "processed_event_id": f"event {exe.version}",
        "timers": (TimerOp("schedule", "p", 1.5), TimerOp("cancel", "q")),
        "spawns": (("a:1", "r", {"é": 1}), ("a:2", "r", {})),
        "trace": {"event": "1"},
    }


def load() -> str:
    """Return the machine's load averages."""
    return " ".join(f"{each:.1f}" for each in os.getloadavg())


def rate(count: int, work: Callable[[], object]) -> float:
    """Return how many a second: `work` does `count`."""
    start = time.perf_counter()
    work()
    return count / (time.perf_counter() - start)


def in_rounds(rounds: int, contestants: dict[str, Callable[[], float]]) -> Rates:
    """Let the contestants take turns; return the rates of each, one a round."""
    rates: Rates = {name: [] for name in contestants}
    for at in range(rounds + 1):
        for name, run in contestants.items():
            found = run()
            if at:  # the first round warms up
                rates[name].append(found)
    return rates


def one_by_one(store: Any, exe: Execution, count: int) -> float:
    """Return the rate of full commits, one at a time."""

    def work() -> None:
        for _ in range(count):
            store.commit(exe, **full(exe))

    return rate(count, work)


def raw(path: Path) -> Callable[[], float]:
    """Return the limit: one UPDATE of the same row and its COMMIT, by stdlib's sqlite3 alone."""
    connection = sqlite3.connect(path, isolation_level=None)
    for sql in ("journal_mode=WAL", "synchronous=FULL"):
        connection.execute(f"PRAGMA {sql}")
    connection.execute("CREATE TABLE t (id TEXT PRIMARY KEY, data TEXT)")
    connection.execute("INSERT INTO t VALUES ('a', '')")
    data = new("a").model_dump_json()

    def work() -> None:
        for at in range(30):
            connection.execute("UPDATE t SET data = ? WHERE id = 'a'", (f"{at}{data}",))

    return lambda: rate(30, work)


def lone(paths: Iterator[Path]) -> None:
    """Compare commits one at a time."""
    migrated = next(paths)
    LibsqlStore(migrated, driver="sqlite3").close()
    with ExitStack() as stack:
        stores = {
            "harel SqliteStore": SqliteStore(next(paths)),
            "harel's on our tables": SqliteStore(migrated, create_schema=False),
            "libsql": stack.enter_context(LibsqlStore(next(paths))),
            "sqlite3": stack.enter_context(LibsqlStore(next(paths), driver="sqlite3")),
            "harel LibsqlStore": HarelLibsqlStore(next(paths)),
        }
        for name, store in stores.items():
            if name.startswith("harel"):
                stack.callback(store.close)
        contestants = {
            name: partial(one_by_one, store, new("a"), 30) for name, store in stores.items()
        }
        contestants["one UPDATE"] = raw(next(paths))
        rates = in_rounds(40, contestants)
    for ours, other, goal in (
        ("libsql", "harel SqliteStore", 1.0),
        ("sqlite3", "harel SqliteStore", 1.0),
        ("libsql", "harel LibsqlStore", 2.5),
        # What of it the indexes are, and what the disk lets through at all.
        ("sqlite3", "harel's on our tables", None),
        ("libsql", "one UPDATE", None),
    ):
        show(compared(f"one at a time, {ours}", rates[ours], other, rates[other], goal=goal))


def threads(paths: Iterator[Path]) -> None:
    """Compare 64 threads on a store with one."""
    with ExitStack() as stack:
        pool = stack.enter_context(ThreadPoolExecutor(MANY))
        for driver in ("libsql", "sqlite3"):
            store = stack.enter_context(LibsqlStore(next(paths), driver=driver))
            exes = [new(f"e{at}") for at in range(MANY)]

            def commits(exe: Execution, store: LibsqlStore = store) -> None:
                for _ in range(5):
                    store.commit(exe, **full(exe))

            def together(exes: list[Execution] = exes, run: Any = commits) -> float:
                return rate(5 * MANY, lambda: list(pool.map(run, exes)))

            alone = partial(one_by_one, store, new("alone"), 60)
            many, one = in_rounds(10, {"64": together, "1": alone}).values()
            show(compared(f"64 threads, {driver}", many, "one thread", one, goal=5))


async def tasks(paths: Iterator[Path]) -> None:
    """Compare 64 tasks on the async stores."""
    stores = {
        "harel AsyncSqliteStore": await AsyncSqliteStore.create(next(paths)),
        "libsql": await AsyncLibsqlStore.create(next(paths)),
        "sqlite3": await AsyncLibsqlStore.create(next(paths), driver="sqlite3"),
    }
    rates: Rates = {name: [] for name in stores}
    exes = {name: [new(f"e{at}") for at in range(MANY)] for name in stores}
    for at in range(9):
        for name, store in stores.items():
            count = 3 if name.startswith("harel") else 10
            start = time.perf_counter()
            await asyncio.gather(*(in_task(store, exe, count) for exe in exes[name]))
            if at:
                rates[name].append(count * MANY / (time.perf_counter() - start))
    for store in stores.values():
        await store.close()
    for name in ("libsql", "sqlite3"):
        other = "harel AsyncSqliteStore"
        show(compared(f"64 tasks, {name}", rates[name], other, rates[other], goal=8))


async def in_task(store: Any, exe: Execution, count: int) -> None:
    """Commit `count` times."""
    for _ in range(count):
        pending: Awaitable[list[int]] = store.commit(exe, **full(exe))
        await pending


def opening(paths: Iterator[Path]) -> None:
    """Show what a store adds to a bare connection when it opens an existing file."""
    path = next(paths)
    LibsqlStore(path).close()
    milliseconds: Rates = {"store": [], "connection": []}
    for _ in range(60):
        start = time.perf_counter()
        LibsqlStore(path).close()
        middle = time.perf_counter()
        connection = dbapi.connect(path, driver="libsql", isolation_level=None)
        connection.execute("PRAGMA journal_mode=WAL").fetchall()
        connection.close()
        milliseconds["connection"].append((time.perf_counter() - middle) * 1000)
        milliseconds["store"].append((middle - start) * 1000)
    store, bare = (median(milliseconds[name]) for name in ("store", "connection"))
    beside = f"{bare:.2f} ms the bare connection"
    show(Figure("opening a file", f"{store:.2f} ms", beside, store - bare, goal=3, most=True))


def importing() -> None:
    """Show what the imports cost, beside an interpreter that imports nothing."""
    codes = ("pass", "import harel_schema", "from harel_schema import LibsqlStore")
    found: Rates = {code: [] for code in codes}
    for _ in range(8):
        for code in codes:
            start = time.perf_counter()
            subprocess.run([sys.executable, "-c", code], check=True)
            found[code].append((time.perf_counter() - start) * 1000)
    empty, *rest = (median(times) for times in found.values())
    for code, milliseconds in zip(codes[1:], rest, strict=True):
        own = milliseconds - empty
        show(Figure(code, f"{own:.0f} ms", "", own, goal=150, most=True))


def main() -> None:
    """Print the table."""
    print(f"load average {load()}, {os.cpu_count()} CPUs")
    start = time.perf_counter()
    where = sys.argv[1] if len(sys.argv) > 1 else None
    with tempfile.TemporaryDirectory(dir=where) as directory:
        paths = (Path(directory) / f"{at}.db" for at in range(1000))
        lone(paths)
        threads(paths)
        asyncio.run(tasks(paths))
        opening(paths)
    importing()
    print(f"{time.perf_counter() - start:.0f} s, load average {load()}")


if __name__ == "__main__":
    main()
