"""Commits to a server 50 ms away: `python benchmarks/remote.py [MILLISECONDS]`.

A full commit is the version check, 3 events, a processed event, 2 timers, 2 spawns and a step of
the trace. The driver's figure is the same statements through `libsql.connect(url)`, one by one.
"""

from __future__ import annotations

import asyncio
import os
import statistics
import sys
import time
from typing import Any

os.environ["RUST_LOG"] = "off"

import libsql
from delay import delayed
from figures import Figure, number, show

from harel_schema import AsyncLibsqlStore, LibsqlStore
from harel_schema.calls import OWN, Calls
from harel_schema.hrana import Client, Statement
from harel_schema.models import Event, Execution, TimerOp
from harel_schema.testing import sqld_server


def parts(exe: Execution) -> dict[str, Any]:
    """Return the arguments of a full commit."""
    return {
        "emits": [(exe.id, Event(kind=kind)) for kind in "abc"],
        "processed_event_id": f"event {exe.version}",
        "timers": (TimerOp("schedule", "p", 1.0), TimerOp("cancel", "q")),
        "spawns": (("c1", "a", {}), ("c2", "b", {})),
        "trace": {"event": "a"},
    }


def round_trip(url: str) -> float:
    """Return the seconds that the smallest request takes."""
    with Client(url) as client:
        client.execute(Statement("SELECT 1"))
        return statistics.median(timed(lambda: client.execute(Statement("SELECT 1")), 20))


def timed(call: Any, times: int) -> list[float]:
    """Return the seconds of each call."""
    found = []
    for _ in range(times):
        started = time.perf_counter()
        call()
        found.append(time.perf_counter() - started)
    return found


def alone(url: str) -> float:
    """Return the seconds of a lone full commit."""
    with LibsqlStore(url) as store:
        exe = Execution(id="alone", definition_id="d")
        store.save(exe)
        return statistics.median(timed(lambda: store.commit(exe, **parts(exe)), 20))


async def together(url: str, tasks: int = 64, rounds: int = 10) -> float:
    """Return the full commits a second of tasks that commit at once."""
    async with await AsyncLibsqlStore.create(url) as store:
        exes = [Execution(id=f"e{at}", definition_id="d") for at in range(tasks)]

        async def work(exe: Execution) -> None:
            for _ in range(rounds):
                await store.commit(exe, **parts(exe))

        await asyncio.gather(*map(work, exes))
        started = time.perf_counter()
        await asyncio.gather(*map(work, exes))
        return tasks * rounds / (time.perf_counter() - started)


def driver(url: str, commits: int = 5) -> float:
    """Return the full commits a second of the driver, statement by statement."""
    connection = libsql.connect(url)
    exe = Execution(id="driver", definition_id="d")
    calls = Calls("harel", OWN)
    started = time.perf_counter()
    for version in range(commits):
        exe.version = version
        for sql, args in calls.write(exe, **parts(exe), trace_max=200).statements:
            connection.execute(sql, args)
        connection.commit()
    return commits / (time.perf_counter() - started)


def main() -> None:
    """Print a line a figure."""
    milliseconds = float(sys.argv[1]) if len(sys.argv) > 1 else 50.0
    print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors")
    with sqld_server() as server, delayed(server.url, milliseconds / 1000) as url:
        trip, lone = round_trip(url), alone(url)
        away = f"a round trip {trip * 1000:.1f} ms"
        show(
            Figure(
                "a lone full commit",
                f"{lone * 1000:.1f} ms",
                away,
                lone / trip,
                goal=1.1,
                most=True,
            )
        )
        many, one = asyncio.run(together(url)), driver(url)
        beside = f"the libsql driver {number(one)}/s"
        show(Figure("64 tasks", f"{number(many)}/s", beside, many / one, goal=100))


if __name__ == "__main__":
    main()
