"""What the indexes of 0004 give and cost: `python benchmarks/indexes.py [ROWS]`.

First, each read at 1,000 rows a table and at ROWS (default: 1,000,000, which needs 2 GB of disk
for a while), as a ratio, which is to stay under 2. Then a commit on a local file of full
durability with and without each index, in turns, as a percentage of a commit without any.
"""

from __future__ import annotations

import os
import sqlite3
import sys
import tempfile
import time
from contextlib import closing
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from figures import Figure, show

from harel_schema import LibsqlStore
from harel_schema.models import Event, Execution, TimerOp
from harel_schema.revisions import schema_sql

if TYPE_CHECKING:
    from collections.abc import Callable

_N = "WITH RECURSIVE n (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < :rows - 1) "
_ID = "printf('e%08d', i * 7919 % :rows)"
# 1 in 1,000 executions failed, 1 in 10 is a root; 10 timers are due at 100.
_EXECUTION = (
    f"json_object('id', {_ID}, 'definition_id', 'd', 'status', "
    "CASE WHEN i % 1000 = 1 THEN 'FAILED' ELSE 'DONE' END, 'parent_id', "
    "CASE WHEN i % 10 THEN 'p' END, 'context', printf('%.*c', 200, 'x'))"
)
_TABLES = {
    "executions": f"{_ID}, 'd' || (i % 20), {_EXECUTION}, 1",
    "timers": f"{_ID}, 'a', 91 + i",
    "outbox": f"""NULL, {_ID}, '{{"kind": "k"}}'""",
    "spawns": f"NULL, {_ID}, 'c', '', '{{}}'",
    "trace": f"{_ID}, 0, '{{}}'",
    "processed_events": f"{_ID}, 'e'",
}
_INDEXES = {
    "timers": ["harel_timers_by_fire_at"],
    "purge": ["harel_outbox_by_target", "harel_spawns_by_parent"],
    "definition": ["harel_executions_by_definition"],
    "status": ["harel_executions_by_status"],
    "roots": ["harel_executions_roots"],
}
_REPEATS = 200


def filled(path: Path, rows: int) -> LibsqlStore:
    """Make a database of `rows` rows a table, and open it."""
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("PRAGMA synchronous = OFF")
        *statements, version = schema_sql()
        tables = [each for each in statements if "INDEX" not in each]
        for statement in tables:
            connection.execute(statement)
        for table, row in _TABLES.items():
            statement = f"{_N} INSERT INTO harel_{table} SELECT {row} FROM n"
            connection.execute(statement, {"rows": rows})
        for statement in (*(each for each in statements if "INDEX" in each), version):
            connection.execute(statement)
    # Or the first commits wait until the system has written what is still in memory.
    os.sync()
    return LibsqlStore(path)


def reads(store: LibsqlStore, rows: int) -> dict[str, Callable[[int], object]]:
    """Return each hot read, and the purge, called with a number."""
    key = f"e{rows // 2:08}"
    return {
        "due_timers, 10 due": lambda _: store.due_timers(100.0),
        "purge": lambda number: store.purge(f"e{number:08}", 1),
        "page": lambda _: store.list_executions(limit=10),
        "page of a definition": lambda _: store.list_executions(definition_id="d1", limit=10),
        "page of a status": lambda _: store.list_executions(status={"DONE"}, limit=10),
        "page of 3 statuses": lambda _: store.list_executions(
            status={"DONE", "FAILED", "RUNNING"}, limit=10
        ),
        "page of roots": lambda _: store.list_executions(roots_only=True, limit=10),
        "ids_with_prefix, 10": lambda _: store.ids_with_prefix(key[:-1]),
        "pending_outbox, 10": lambda _: store.pending_outbox(10),
    }


def timed(call: Callable[[int], object]) -> float:
    """Return the median microseconds of a call."""
    found = []
    for number in range(_REPEATS):
        start = time.perf_counter()
        call(number)
        found.append((time.perf_counter() - start) * 1e6)
    return median(found)


def compare(folder: Path, rows: int) -> None:
    """Print what each read costs at 1,000 rows and at `rows`."""
    few, many = filled(folder / "few.db", 1_000), filled(folder / "many.db", rows)
    large = reads(many, rows)
    for name, call in reads(few, 1_000).items():
        small, big = timed(call), timed(large[name])
        beside = f"with 1,000 rows {small:.1f} us"
        what = f"{name}, {rows:,} rows"
        show(Figure(what, f"{big:.1f} us", beside, big / small, goal=2, most=True))
    few.close()
    many.close()


def commits(folder: Path, rounds: int = 60) -> None:
    """Print what the indexes cost a commit: an update, an event, a timer, a mark."""
    every = [name for names in _INDEXES.values() for name in names]
    kept = {"none": [], **_INDEXES, "all": every}
    stores = {name: _with(folder / f"{name}.db", names, every) for name, names in kept.items()}
    found: dict[str, list[float]] = {name: [] for name in kept}
    for turn in range(rounds):
        for name, (store, executions) in stores.items():
            start = time.perf_counter()
            for at, execution in enumerate(executions[:50]):
                store.commit(
                    execution,
                    [(execution.id, Event(kind="k"))],
                    processed_event_id=f"{turn}-{at}",
                    timers=(TimerOp(action="schedule", path="a", fire_at=1.7e9 + turn),),
                )
            found[name].append((time.perf_counter() - start) / 50 * 1e6)
            executions.append(executions.pop(0))
    base = median(found["none"])
    for name, values in found.items():
        each, beside = median(values), f"with none {base:.0f} us"
        goal = 1.15 if name == "all" else None
        what = f"commit, index {name}"
        show(Figure(what, f"{each:.0f} us", beside, each / base, goal=goal, most=True))


def _with(path: Path, names: list[str], every: list[str]) -> tuple[LibsqlStore, list[Execution]]:
    """Return a store with no index of 0004 but `names`, and executions of 1 kB in it."""
    LibsqlStore(path).close()
    with closing(sqlite3.connect(path)) as connection, connection:
        for name in every:
            if name not in names:
                connection.execute(f"DROP INDEX {name}")
    store = LibsqlStore(path)
    executions = [
        Execution(id=f"e{number:04}", definition_id=f"d{number % 7}", context={"x": "y" * 600})
        for number in range(200)
    ]
    for execution in executions:
        store.save(execution)
    return store, executions


def main() -> None:
    """Print both tables."""
    rows = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    with tempfile.TemporaryDirectory() as folder:
        compare(Path(folder), rows)
        commits(Path(folder))


if __name__ == "__main__":
    main()
