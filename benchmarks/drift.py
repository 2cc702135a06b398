"""How long a check takes: `python benchmarks/drift.py`.

The figures are milliseconds of processor time: importing what is needed, the first check of a
process, a later one, one that reads 100,000 executions of 1 kB, and one of a database with 10,000
tables of others.
"""

from __future__ import annotations

import json
import sqlite3
import tempfile
import time
from contextlib import closing
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from figures import Figure, show

if TYPE_CHECKING:
    from collections.abc import Iterator

_TABLE = (
    "CREATE TABLE t{n} (id INTEGER PRIMARY KEY, a TEXT NOT NULL DEFAULT 'x',"
    " b REAL CHECK (b > 0), c INTEGER REFERENCES t{n} (id), UNIQUE (a, b))"
)


def _milliseconds(start: float) -> float:
    return (time.process_time() - start) * 1000


def _rows() -> Iterator[tuple[str, str]]:
    for number in range(100_000):
        key = f"e{number}"
        document = {
            "id": key,
            "definition_id": "d",
            "version": 1,
            "status": "RUNNING",
            "context": {"x": "y" * 900},
        }
        yield key, json.dumps(document)


def main() -> None:
    """Print one line a figure."""
    start = time.process_time()
    from harel_schema import drift, frozen  # noqa: PLC0415 - the import is measured

    imported = _milliseconds(start)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "state.db"
        with closing(sqlite3.connect(path)) as connection:
            connection.executescript(";".join(frozen.schema_sql()))
        start = time.process_time()
        drift.check(path)
        first = _milliseconds(start)
        later = []
        for _ in range(50):
            start = time.process_time()
            drift.check(path)
            later.append(_milliseconds(start))
        with closing(sqlite3.connect(path)) as connection, connection:
            connection.executemany("INSERT INTO harel_executions VALUES (?, 'd', ?, 1)", _rows())
        start = time.process_time()
        assert not drift.check(path, data=True)
        data = _milliseconds(start)
        with closing(sqlite3.connect(path)) as connection:
            tables = ";".join(_TABLE.format(n=n) for n in range(10_000))
            connection.executescript(f"BEGIN; {tables}; COMMIT;")
        start = time.process_time()
        assert len(drift.check(path).others) == 10_000
        many = _milliseconds(start)
    for what, milliseconds in (
        ("import", imported),
        ("first check", first),
        ("later check", median(later)),
        ("check --data, 100,000 executions", data),
        ("check, 10,000 tables", many),
    ):
        show(Figure(what, f"{milliseconds:,.1f} ms"))


if __name__ == "__main__":
    main()
