"""How much memory a copy and a verify take: the peak of a process of its own for each.

    python benchmarks/memory.py [MEGABYTES]

Once with rows of 1.4 kB, MEGABYTES of them (default 200), once with 60 rows of 4.9 MB, which is
as much as a server takes. Prints the peak resident size in MB.
"""

from __future__ import annotations

import resource
import sqlite3
import subprocess
import sys
import tempfile
from contextlib import closing
from pathlib import Path

SMALL, LARGE = 1_400, 4_900_000
LARGE_ROWS = 60


def make_source(path: Path, size: int, count: int) -> Path:
    """Write a file at head with `count` executions of `size` bytes, little by little."""
    from harel_schema.revisions import schema_sql  # noqa: PLC0415 - the child starts without

    with closing(sqlite3.connect(path)) as connection, connection:
        for statement in schema_sql("harel"):
            connection.execute(statement)
        rows = ((f"e{number:09}", "order@1", "x" * size, number) for number in range(count))
        connection.executemany("INSERT INTO harel_executions VALUES (?, ?, ?, ?)", rows)
    return path


def measure(verb: str, a: Path | str, b: Path | str) -> float:
    """Run `verb` in a new process and return its peak resident size in MB."""
    command = [sys.executable, __file__, verb, str(a), str(b)]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def child(verb: str, a: str, b: str) -> None:
    """Do it in this process, and print its peak."""
    from harel_schema.transfer import copy  # noqa: PLC0415 - its imports are part of the peak
    from harel_schema.verify import verify  # noqa: PLC0415

    {"copy": copy, "verify": verify}[verb](a, b)
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1_000)


def main() -> None:
    """Measure, and print a line a job."""
    from harel_schema.testing import Server  # noqa: PLC0415

    megabytes = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    for size, count in ((SMALL, megabytes * 1_000_000 // SMALL), (LARGE, LARGE_ROWS)):
        with tempfile.TemporaryDirectory(prefix="harel-schema-") as name, Server() as server:
            folder = Path(name)
            source = make_source(folder / "source.db", size, count)
            print(f"{count:,} rows of {size / 1_000:,.1f} kB")
            for verb, a, b in (
                ("copy", source, server.url),
                ("verify", source, server.url),
                ("copy", server.url, folder / "back.db"),
                ("copy", source, folder / "file.db"),
                ("verify", source, folder / "file.db"),
            ):
                ends = ["server" if str(end).startswith("http") else "file" for end in (a, b)]
                print(f"  {verb:7}{ends[0]:>6} -> {ends[1]:6}{measure(verb, a, b):8,.0f} MB")


if __name__ == "__main__":
    if len(sys.argv) > 2:
        child(*sys.argv[1:])
    else:
        main()
