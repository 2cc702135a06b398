"""How long a check takes: `python benchmarks/drift.py`.

The figures are milliseconds of processor time: the first check of a process (Alembic is imported for
the schema that is expected), a later one, and one of a database with 10,000 tables of others.
"""

from __future__ import annotations

import sqlite3
import tempfile
import time
from contextlib import closing
from pathlib import Path
from statistics import median

_TABLE = (
    "CREATE TABLE t{n} (id INTEGER PRIMARY KEY, a TEXT NOT NULL DEFAULT 'x',"
    " b REAL CHECK (b > 0), c INTEGER REFERENCES t{n} (id), UNIQUE (a, b))"
)


def _milliseconds(start: float) -> float:
    return (time.process_time() - start) * 1000


def main() -> None:
    """Print one line a figure."""
    start = time.process_time()
    from harel_schema import drift, migrate  # noqa: PLC0415 - the import is measured

    imported = _milliseconds(start)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "state.db"
        migrate.upgrade(path)
        start = time.process_time()
        drift.check(path)
        first = _milliseconds(start)
        later = []
        for _ in range(50):
            start = time.process_time()
            drift.check(path)
            later.append(_milliseconds(start))
        with closing(sqlite3.connect(path)) as connection:
            tables = ";".join(_TABLE.format(n=n) for n in range(10_000))
            connection.executescript(f"BEGIN; {tables}; COMMIT;")
        start = time.process_time()
        assert len(drift.check(path).others) == 10_000
        many = _milliseconds(start)
    print(f"import                   {imported:8.1f} ms")
    print(f"first check              {first:8.1f} ms")
    print(f"later check (median)     {median(later):8.1f} ms")
    print(f"check, 10,000 tables     {many:8.1f} ms")


if __name__ == "__main__":
    main()
