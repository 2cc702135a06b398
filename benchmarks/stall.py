"""How long `AsyncLibsqlStore` keeps the event loop from turning: `python benchmarks/stall.py`.

A task notes how late each of its 1 ms sleeps ends while others commit and read: the worst is the
stall. Remote and replica are 500 ms away; `idle` is the machine's own noise.
"""

from __future__ import annotations

import asyncio
import os
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

os.environ["RUST_LOG"] = "off"

from delay import delayed
from figures import Figure
from figures import show as show_figure

from harel_schema import AsyncLibsqlStore
from harel_schema.models import Event, Execution
from harel_schema.testing import sqld_server

Job = Callable[[], Awaitable[None]]


async def stall(job: Job) -> list[float]:
    """Return how late each turn of the loop came while `job` ran, in seconds, sorted."""
    late: list[float] = []

    async def watch() -> None:
        while True:
            started = time.perf_counter()
            await asyncio.sleep(0.001)
            late.append(time.perf_counter() - started - 0.001)

    watcher = asyncio.create_task(watch())
    await job()
    watcher.cancel()
    return sorted(late)


def job(store: AsyncLibsqlStore, name: str, seconds: float = 4.0, tasks: int = 8) -> Job:
    """Return what keeps a store busy: tasks that commit and load in turns."""

    async def work(name: str, end: float) -> None:
        exe = Execution(id=name, definition_id="d", context={"text": "x" * 2000})
        while time.perf_counter() < end:
            await store.commit(exe, [("t", Event(kind="k"))])
            await store.load(name)

    async def all_of_them() -> None:
        end = time.perf_counter() + seconds
        await asyncio.gather(*(work(f"{name} {at}", end) for at in range(tasks)))

    return all_of_them


async def measure(name: str, settings: dict[str, Any]) -> None:
    """Print the stall of a store with these settings."""
    async with await AsyncLibsqlStore.create(**settings) as store:
        show(name, await stall(job(store, name)))


def show(name: str, late: list[float], goal: float | None = 20) -> None:
    """Print the worst turn, which is to stay under `goal` ms, and the 99th percentile."""
    worst, usual = late[-1] * 1000, late[int(len(late) * 0.99)] * 1000
    beside = f"99 % under {usual:.1f} ms"
    show_figure(Figure(name, f"{worst:.1f} ms", beside, worst, goal=goal, most=True))


async def main() -> None:
    """Print a line a mode."""
    print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors")
    show("idle: the noise of the machine", await stall(lambda: asyncio.sleep(4)), None)
    with tempfile.TemporaryDirectory() as folder:
        for driver in ("libsql", "sqlite3"):
            path = Path(folder) / f"{driver}.db"
            await measure(f"file, {driver}", {"database": path, "driver": driver})
        with sqld_server() as server, delayed(server.url, 0.5) as url:
            await measure("server", {"database": url})
            await measure("replica", {"database": Path(folder) / "replica.db", "sync_url": url})


if __name__ == "__main__":
    asyncio.run(main())
