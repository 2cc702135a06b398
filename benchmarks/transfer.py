"""How fast rows come over, beside what there is: `python benchmarks/transfer.py [ROWS [ROUNDS]]`.

Rows are executions of 1.4 kB of JSON, in a database at head. Prints the median of the rounds in
rows a second, and as multiples of the others:

- driver loop: `libsql.connect(url)`, one INSERT after another, each committed
- one transaction: the same loop, with one commit at its end
- dump: sqld's own load of its own dump, when a namespace is made (`dump_url`)
- replica: a new embedded replica, opened and synced (`libsql_experimental`)
- dump of a file: SQLite's own dump, statement by statement into a new file
- INSERT … SELECT: the same rows by one statement of SQLite
"""

from __future__ import annotations

import http.client
import json
import os
import sqlite3
import sys
import tempfile
import time
from collections import defaultdict
from contextlib import closing
from pathlib import Path
from random import Random
from statistics import median
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

os.environ.setdefault("RUST_LOG", "off")

import httpx
import libsql
import libsql_experimental
from delay import delayed
from figures import Figure, compared, number, show

from harel_schema import migrate
from harel_schema.testing import Server
from harel_schema.transfer import copy
from harel_schema.verify import verify

if TYPE_CHECKING:
    from collections.abc import Callable

TABLE = "harel_executions"
INSERT = f"INSERT INTO {TABLE} VALUES (?, ?, ?, ?)"
ROUND_TRIP = 0.05
# The loops are slow: they insert a part of the rows.
LOOP_ROWS, TRANSACTION_ROWS = 600, 2_000


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
        connection.executemany(INSERT, rows(count))


def driver_loop(url: str, count: int, isolation_level: str | None) -> None:
    """Insert rows one by one through the driver."""
    connection = libsql.connect(url, isolation_level=isolation_level)
    for row in rows(count):
        connection.execute(INSERT, row)
    if isolation_level is not None:
        connection.commit()


def load_dump(server: Server, dump: Path) -> None:
    """Let a server make a namespace from a dump."""
    admin = urlsplit(server.admin_url)
    connection = http.client.HTTPConnection(admin.hostname or "", admin.port, timeout=300)
    body = json.dumps({"dump_url": dump.as_uri()})
    header = {"Content-Type": "application/json"}
    with closing(connection):
        connection.request("POST", "/v1/namespaces/loaded/create", body, header)
        response = connection.getresponse()
        if response.status != http.client.OK:
            raise SystemExit(f"the dump was not loaded: {response.read()!r}")


def sync_replica(path: Path, url: str, count: int) -> None:
    """Open a new embedded replica."""
    connection = libsql_experimental.connect(str(path), sync_url=url)
    connection.sync()
    ((found,),) = connection.execute(f"SELECT count(*) FROM {TABLE}").fetchall()
    if found != count:
        raise SystemExit(f"the replica has {found:,} rows")


def reload(source: Path, destination: Path) -> None:
    """Do what ``sqlite3 source .dump | sqlite3 destination`` does."""
    with closing(sqlite3.connect(source)) as a, closing(sqlite3.connect(destination)) as b:
        for statement in a.iterdump():
            b.execute(statement)


def insert_select(source: Path, destination: Path) -> None:
    """Let SQLite itself copy the rows, which is the limit: no row passes through Python."""
    migrate.upgrade(destination)
    with closing(sqlite3.connect(destination)) as connection:
        connection.execute("ATTACH ? AS source", (str(source),))
        with connection:
            connection.execute(f"INSERT INTO main.{TABLE} SELECT * FROM source.{TABLE}")


class Rates:
    """Rows a second of each job, by round."""

    def __init__(self) -> None:
        self._found: defaultdict[str, list[float]] = defaultdict(list)

    def time(self, name: str, count: int, job: Callable[[], object]) -> None:
        """Run a job of `count` rows."""
        started = time.perf_counter()
        job()
        self._found[name].append(count / (time.perf_counter() - started))

    def show(self, name: str, other: str = "", goal: float | None = None) -> None:
        """Show the rates of a job, beside those of another."""
        ours = self._found[name]
        if other:
            show(compared(name, ours, other, self._found[other], goal=goal))
        else:
            show(Figure(name, f"{number(median(ours))}/s"))


def measure(rates: Rates, folder: Path, source: Path, count: int) -> None:
    """Run every job once."""
    folder.mkdir()
    for name, level, part in (
        ("driver loop", None, LOOP_ROWS),
        ("one transaction", "DEFERRED", TRANSACTION_ROWS),
    ):
        with Server(folder / name) as server:
            migrate.upgrade(server.url)
            rates.time(name, part, lambda: driver_loop(server.url, part, level))  # noqa: B023
    with Server(folder / "copy", grpc=True) as server:
        rates.time("copy to sqld", count, lambda: copy(source, server.url))
        rates.time("verify with sqld", count, lambda: verify(source, server.url))
        replica = folder / "replica.db"
        rates.time("replica", count, lambda: sync_replica(replica, server.url, count))
        rates.time("copy from sqld", count, lambda: copy(server.url, folder / "back.db"))
        with delayed(server.url, ROUND_TRIP) as far:
            rates.time("copy from afar", count, lambda: copy(far, folder / "far.db"))
        dump = folder.parent / "dump.sql"
        if not dump.exists():
            dump.write_bytes(httpx.get(f"{server.url}/dump", timeout=300).content)
    with Server(folder / "load", admin=True, namespaces=True) as server:
        rates.time("dump", count, lambda: load_dump(server, dump))
    with Server(folder / "far") as server, delayed(server.url, ROUND_TRIP) as far:
        rates.time("copy afar", count, lambda: copy(source, far))
    rates.time("copy to a file", count, lambda: copy(source, folder / "file.db"))
    rates.time("dump of a file", count, lambda: reload(source, folder / "reloaded.db"))
    rates.time("INSERT … SELECT", count, lambda: insert_select(source, folder / "selected.db"))
    rates.time("verify files", count, lambda: verify(source, folder / "file.db"))


def main() -> None:
    """Measure, and print a line a job."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 30_000
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 3
    rates = Rates()
    with tempfile.TemporaryDirectory(prefix="harel-schema-") as name:
        folder = Path(name)
        source = folder / "source.db"
        make_source(source, count)
        for number in range(rounds):
            measure(rates, folder / str(number), source, count)
    print(f"{count:,} rows, median of {rounds}; afar: {ROUND_TRIP * 1_000:.0f} ms a round trip")
    for job, *beside in (
        ("copy to sqld", "driver loop", 20),
        ("copy to sqld", "one transaction"),
        ("copy to sqld", "dump", 2),
        ("copy afar", "copy to sqld", 0.5),
        ("copy from sqld", "replica", 1.5),
        ("copy from afar", "copy from sqld", 0.5),
        ("verify with sqld", "copy to sqld", 1),
        ("copy to a file", "dump of a file"),
        ("copy to a file", "INSERT … SELECT"),
        ("verify files", "copy to a file", 1),
    ):
        rates.show(job, *beside)


if __name__ == "__main__":
    main()
