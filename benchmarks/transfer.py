"""How fast rows come over: our copy and verify beside the driver's own row loop.

    python benchmarks/transfer.py [ROWS]

Rows are executions of 1.4 kB. The loop inserts a tenth of them, row by row in one transaction,
through `libsql.connect(url)`. Prints rows a second, and each figure as a multiple of the loop's.
"""

from __future__ import annotations

import json
import os
import sqlite3
import sys
import tempfile
import time
from contextlib import closing
from pathlib import Path
from random import Random

os.environ.setdefault("RUST_LOG", "off")

import libsql

from harel_schema import migrate
from harel_schema.testing import Server
from harel_schema.transfer import copy
from harel_schema.verify import verify

TABLE = "harel_executions"


def rows(count: int) -> list[tuple[str, str, str, int]]:
    """Return executions with 1.35 kB of JSON each, which compresses badly."""
    random = Random(1)
    return [
        (f"e{number:09}", f"order@{number % 5}", _data(number, random), number)
        for number in range(count)
    ]


def _data(number: int, random: Random) -> str:
    status = ("running", "completed", "failed")[number % 3]
    facts = {"id": f"e{number:09}", "status": status, "parent_id": None, "version": number}
    return json.dumps({**facts, "context": {"payload": random.randbytes(620).hex()}})


def make_source(path: Path, count: int) -> None:
    """Write a file at head with `count` executions."""
    migrate.upgrade(path)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.executemany(f"INSERT INTO {TABLE} VALUES (?, ?, ?, ?)", rows(count))


def driver_loop(url: str, count: int) -> float:
    """Insert rows one by one through the driver; return rows a second."""
    migrate.upgrade(url)
    connection = libsql.connect(url)
    started = time.perf_counter()
    for row in rows(count):
        connection.execute(f"INSERT INTO {TABLE} VALUES (?, ?, ?, ?)", row)
    connection.commit()
    return count / (time.perf_counter() - started)


def main() -> None:
    """Measure, and print a line a figure."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 50_000
    folder = Path(tempfile.mkdtemp(prefix="harel-schema-"))
    source, back = folder / "source.db", folder / "back.db"
    make_source(source, count)
    with Server(folder / "loop") as server:
        loop = driver_loop(server.url, count // 10)
    print(f"{'driver row loop -> sqld':28}{loop:10,.0f} rows/s")
    with Server(folder / "copy") as server:
        jobs = {
            "copy file -> sqld": lambda: copy(source, server.url),
            "verify file, sqld": lambda: verify(source, server.url),
            "copy again (compares)": lambda: copy(source, server.url),
            "copy sqld -> file": lambda: copy(server.url, back),
            "verify file, file": lambda: verify(source, back),
        }
        for name, job in jobs.items():
            started = time.perf_counter()
            job()
            rate = count / (time.perf_counter() - started)
            print(f"{name:28}{rate:10,.0f} rows/s{rate / loop:8.1f} x the loop")


if __name__ == "__main__":
    main()
