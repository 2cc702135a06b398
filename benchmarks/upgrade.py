"""How an upgrade does on a large table: `python benchmarks/upgrade.py [EXECUTIONS]`.

Executions of 1 kB (default: 1,000,000, which needs 3 GB of disk for a while) at 0001 are brought
to head by a process of its own: what it said beforehand, what it took, and its memory.
"""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
import tempfile
from contextlib import closing
from pathlib import Path

from figures import Figure, show

_FILL = """
WITH RECURSIVE n (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < :rows - 1)
INSERT INTO harel_executions
SELECT printf('e%08d', i * 7919 % :rows), 'd' || (i % 20),
  replace(replace(:data, 'ID', printf('e%08d', i * 7919 % :rows)),
          'PENDING', CASE WHEN i % 100 = 0 THEN 'RUNNING' ELSE 'DONE' END), 1 FROM n
"""
_UPGRADE = """
import resource, sys, time
from harel_schema import migrate
said = []
start = time.perf_counter()
migrate.upgrade(sys.argv[1], on_step=said.append)
took = time.perf_counter() - start
memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
print(max(each.seconds for each in said), took, memory)
"""


def fill(path: Path, rows: int) -> None:
    """Write executions of 1 kB at revision 0001."""
    from harel_schema.models import Execution  # noqa: PLC0415 - only this process needs it
    from harel_schema.revisions import schema_sql  # noqa: PLC0415

    data = Execution(id="ID", definition_id="d", context={"text": "x" * 640}).model_dump_json()
    assert len(json.loads(data)["context"]["text"]) == 640
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("PRAGMA synchronous = OFF")
        for statement in schema_sql(revision="0001"):
            connection.execute(statement)
        connection.execute(_FILL, {"rows": rows, "data": data})


def main() -> None:
    """Print one line a figure."""
    rows = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "state.db"
        fill(path, rows)
        size = path.stat().st_size / 1e6
        command = [sys.executable, "-c", _UPGRADE, str(path)]
        found = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        said, took, memory = map(float, found.split())
        what = f"0001 to head, {rows:,} executions"
        show(Figure(what, f"{took:.1f} s", f"said beforehand {said:.1f} s; {size:,.0f} MB"))
        show(Figure("its peak memory", f"{memory:.0f} MB", "", memory, goal=150, most=True))


if __name__ == "__main__":
    main()
