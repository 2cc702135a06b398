"""How time and memory grow with the rows: `python benchmarks/sweep.py [ROWS …]`.

Each job is a process of its own, on executions of 1.4 kB (1,000, 100,000 and 1,000,000 of them,
which needs 8 GB of disk for a while), and on 60 rows of 4.9 MB, which is as much as a server
takes. Its peak is what the process held at most, the interpreter and all imports included.
"""

from __future__ import annotations

import sqlite3
import subprocess
import sys
import tempfile
from contextlib import closing
from pathlib import Path

from figures import Figure, number, show

SMALL, LARGE = 1_400, 4_900_000
LARGE_ROWS = 60
_JOB = """
import sys, time
from harel_schema.drift import check
from harel_schema.transfer import copy
from harel_schema.verify import verify
name, *ends = sys.argv[1:]
run = {"copy": copy, "verify": verify, "check": lambda each: check(each, data=True)}[name]
start = time.perf_counter()
run(*ends)
print(time.perf_counter() - start)
# The rusage of a child begins with its parent's peak; this is the process's own.
lines = open("/proc/self/status").read().splitlines()
print(next(line.split()[1] for line in lines if line.startswith("VmHWM")))
"""


def make_source(path: Path, size: int, count: int) -> Path:
    """Write a file at head with `count` executions of `size` bytes, little by little."""
    from harel_schema.models import Execution  # noqa: PLC0415 - only where rows are made
    from harel_schema.revisions import schema_sql  # noqa: PLC0415

    empty = Execution(id="ID", definition_id="d", context={"text": "TEXT"}).model_dump_json()
    text = empty.replace("TEXT", "x" * (size - len(empty)))
    with closing(sqlite3.connect(path)) as connection, connection:
        for statement in schema_sql():
            connection.execute(statement)
        keys = (f"e{each:09}" for each in range(count))
        rows = ((key, text.replace("ID", key, 1)) for key in keys)
        connection.executemany("INSERT INTO harel_executions VALUES (?, 'd', ?, 1)", rows)
    return path


def measure(name: str, *ends: Path | str) -> tuple[float, float]:
    """Run a job in a new process; return its seconds and its peak in MB."""
    command = [sys.executable, "-c", _JOB, name, *map(str, ends)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    seconds, kilobytes = done.stdout.split()
    return float(seconds), int(kilobytes) / 1024


def sweep(size: int, count: int) -> None:
    """Measure every job on `count` rows of `size` bytes."""
    from harel_schema.testing import Server  # noqa: PLC0415 - the jobs start without

    with tempfile.TemporaryDirectory(prefix="harel-schema-") as name, Server() as server:
        folder = Path(name)
        source = make_source(folder / "source.db", size, count)
        for what, job, *ends in (
            ("copy, file to server", "copy", source, server.url),
            ("verify, file and server", "verify", source, server.url),
            ("copy, server to file", "copy", server.url, folder / "back.db"),
            ("copy, file to file", "copy", source, folder / "file.db"),
            ("verify, file and file", "verify", source, folder / "file.db"),
            ("check --data, file", "check", source),
        ):
            seconds, peak = measure(job, *ends)
            rate = f"{number(count / seconds)} rows/s, {peak:.0f} MB"
            title = f"{what}, {count:,} of {size / 1_000:,.1f} kB"
            show(Figure(title, f"{seconds:.1f} s", rate, peak, goal=150, most=True))


def main() -> None:
    """Print a line a job; the ratio is its peak in MB."""
    for count in list(map(int, sys.argv[1:])) or [1_000, 100_000, 1_000_000]:
        sweep(SMALL, count)
    sweep(LARGE, LARGE_ROWS)


if __name__ == "__main__":
    main()
