"""How long writers wait for a move, by the size of the store, and what its change log costs them.

    python benchmarks/move.py [MEGABYTES …]

Moves a file of each size (100 and 1000 MB) to a server on this machine, while another process
makes 200 commits a second to it on harel's own SqliteStore; shows the pause that the move
reports (the ratio is seconds) and the longest commit that the writer saw. Then commits to a file
without and with the change log, alternating, on our store and on harel's, one by one.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import sqlite3
import statistics
import sys
import tempfile
import time
from contextlib import closing, suppress
from pathlib import Path
from random import Random
from typing import Any

os.environ.setdefault("RUST_LOG", "off")

from figures import Figure, show
from harel.engine.execution import Execution
from harel.engine.store import SqliteStore, TimerOp
from harel.spec.states import Event

from harel_schema import migrate
from harel_schema.dbapi.waiting import PATIENCE
from harel_schema.harel import LibsqlStore
from harel_schema.move import move
from harel_schema.move.source import Source
from harel_schema.move.statements import ChangeLog
from harel_schema.target import Target
from harel_schema.testing import Server
from harel_schema.transfer.layout import layout
from harel_schema.transfer.plan import own_names

RATE = 200
ROW = 1_400


def make_source(path: Path, megabytes: int) -> None:
    """Write a file at head with executions of 1.4 kB in it."""
    migrate.upgrade(path)
    random = Random(1)
    blobs = [random.randbytes(620).hex() for _ in range(1_000)]
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("PRAGMA journal_mode=WAL")
        connection.executemany(
            "INSERT INTO harel_executions VALUES (?, 'd', ?, 1)",
            (
                (f"e{n:09}", json.dumps({"id": f"e{n:09}", "context": blobs[n % 1_000] + str(n)}))
                for n in range(megabytes * 1_000_000 // ROW)
            ),
        )


def commit(store: Any, exe: Any, number: int) -> None:
    """Commit a step as an engine does."""
    event = Event(id=f"{exe.id}-{number}", kind="k")
    store.commit(
        exe, [(exe.id, event)], event.id, [TimerOp("schedule", "a", number)], (), {"n": number}
    )


def writer(path: str, begun: Any, results: Any) -> None:
    """Make `RATE` commits a second until the file is moved; report the longest and the count."""
    with closing(SqliteStore(path)) as store:
        executions = [Execution(id=f"w{n}", definition_id="d") for n in range(50)]
        times: list[float] = []
        started = time.perf_counter()
        with suppress(sqlite3.IntegrityError):
            while True:
                due = started + len(times) / RATE
                if (early := due - time.perf_counter()) > 0:
                    time.sleep(early)
                before = time.perf_counter()
                commit(store, executions[len(times) % 50], len(times))
                times.append(time.perf_counter() - before)
                if len(times) == RATE:
                    begun.set()
        results.put((max(times), len(times), time.perf_counter() - started))


def pause(folder: Path, megabytes: int) -> None:
    """Move a file under a writer, and print how long it waited."""
    source = folder / f"{megabytes}.db"
    make_source(source, megabytes)
    context = multiprocessing.get_context("spawn")
    begun, results = context.Event(), context.Queue()
    process = context.Process(target=writer, args=(str(source), begun, results))
    with Server(folder / f"sqld{megabytes}") as server:
        process.start()
        begun.wait()
        report = move(source, server.url)
        longest, commits, seconds = results.get()
        process.join()
    end = report.switch
    waited = end.pause * 1000
    beside = f"{commits / seconds:.0f} commits/s, the longest {longest * 1000:.0f} ms"
    what = f"pause of a move, {megabytes:,} MB"
    show(Figure(what, f"{waited:.0f} ms", beside, end.pause, goal=2, most=True))
    carried = f"{end.changes + end.last_changes:,} changes carried over"
    show(Figure("  the whole of it", f"{report.seconds:.1f} s", carried))


def cost(folder: Path, name: str, make: Any) -> None:
    """Print what the change log costs a commit."""
    path = folder / f"{name}.db"
    migrate.upgrade(path)
    target = Target.parse(path)
    all_times: dict[bool, list[float]] = {False: [], True: []}
    for turn in range(10):
        logged = turn % 2 == 1
        with closing(Source(target, "harel", PATIENCE)) as source:
            source.let_writers_go_on()
            if logged:
                schema = source.schema()
                tables = [schema.table(each) for each in own_names("harel")]
                log = ChangeLog("harel", tuple(layout(each) for each in tables if each))
                source.install(log, "elsewhere", b"run", schema)
        times = []
        with closing(make(path)) as store:
            executions = [Execution(id=f"{turn}-{n}", definition_id="d") for n in range(20)]
            for number in range(1_000):
                before = time.perf_counter()
                commit(store, executions[number % 20], number)
                times.append(time.perf_counter() - before)
        all_times[logged] += times
        with closing(Source(target, "harel", PATIENCE)) as source:
            source.clear()
    plain, logged_ = (statistics.median(all_times[key]) * 1e6 for key in (False, True))
    what = f"a commit with the change log, {name}"
    show(Figure(what, f"{logged_:.0f} us", f"without {plain:.0f} us", logged_ / plain))


def main() -> None:
    """Measure."""
    sizes = list(map(int, sys.argv[1:])) or [100, 1_000]
    with tempfile.TemporaryDirectory() as folder:
        for megabytes in sizes:
            pause(Path(folder), megabytes)
        cost(Path(folder), "harel's SqliteStore", SqliteStore)
        cost(Path(folder), "our LibsqlStore", LibsqlStore)


if __name__ == "__main__":
    main()
