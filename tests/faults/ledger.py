"""Workers that commit and note what was acknowledged, and an audit of what is there then.

The ledger is a file beside the database. A line is written, and flushed to the disk, after the
store's `commit` has returned: so whatever is killed, each line stands for a commit that a caller
was told of. Each commit of an execution has one of everything, named by its version.
"""

from __future__ import annotations

import json
import os
import threading
from collections import Counter, defaultdict
from contextlib import closing
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from harel_schema import dbapi
from harel_schema.errors import (
    BusyError,
    ConnectionLost,
    ServerError,
    StoreConflict,
    TransactionLost,
)
from harel_schema.models import Event, Execution, TimerOp

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

SHARED = "shared"
# After any of these a worker does what an engine does: it loads again.
PASSING = (BusyError, ConnectionLost, ServerError, StoreConflict, TransactionLost)
READS = [
    "PRAGMA integrity_check",
    "SELECT id, version, json_extract(data, '$.version') FROM harel_executions",
    "SELECT execution_id, event_id FROM harel_processed_events",
    "SELECT seq, target_id, json_extract(event, '$.id') FROM harel_outbox",
    "SELECT execution_id, path, fire_at FROM harel_timers",
    "SELECT parent_id, child_id FROM harel_spawns",
    "SELECT execution_id, json_extract(entry, '$.n') FROM harel_trace",
]


@dataclass
class Ledger:
    """A file of acknowledged commits; `acknowledged` is called after each line."""

    path: Path
    acknowledged: Callable[[], object] = lambda: None
    _file: int = field(init=False)

    def __post_init__(self) -> None:
        self._file = os.open(self.path, os.O_CREAT | os.O_WRONLY | os.O_APPEND)

    def note(self, execution: str, version: int, seqs: list[int]) -> None:
        """Write a line that stays, whatever happens next."""
        os.write(self._file, json.dumps([execution, version, seqs]).encode() + b"\n")
        os.fsync(self._file)
        self.acknowledged()


def advance(store: Any, key: str, ledger: Ledger, by: str) -> None:
    """Load an execution and make its next commit; a conflict leaves that to another worker.

    `by` is who commits: in an engine too, what two workers emit for one event has other ids.
    """
    try:
        exe = store.load(key) or Execution(id=key, definition_id="d")
        number = exe.version + 1
        event = f"{key}-{number}"
        seqs = store.commit(
            exe,
            [(key, Event(id=f"{event}-a", kind=by)), (None, Event(id=f"{event}-b", kind=by))],
            event,
            [TimerOp("schedule", f"p{number}", number + 0.5)],
            [(f"{key}/{number}", "root", {"n": number})],
            trace={"n": number},
        )
    except PASSING:
        return
    ledger.note(key, number, seqs)


def work(store: Any, name: str, ledger: Ledger, *, threads: int = 3, rounds: int = 10**9) -> None:
    """Advance an execution of its own in each thread, and one that all workers share."""
    failures: list[BaseException] = []

    def run(key: str) -> None:
        try:
            for number in range(rounds):
                advance(store, key if number % 4 else SHARED, ledger, key)
        except BaseException as error:
            failures.append(error)
            raise

    running = [threading.Thread(target=run, args=(f"{name}t{at}",)) for at in range(threads)]
    for each in running:
        each.start()
    for each in running:
        each.join()
    if failures:
        raise failures[0]


def read(path: Path) -> list[tuple[str, int, list[int]]]:
    """Return the acknowledged commits; a line that was cut off by a kill was no acknowledgement."""
    whole = path.read_bytes().rpartition(b"\n")[0] if path.exists() else b""
    return [tuple(json.loads(line)) for line in whole.splitlines()]


def audit(database: Any, acknowledged: Iterable[tuple[str, int, list[int]]]) -> list[str]:
    """Return what is wrong with a database: what is lost, what is half there, what is too much.

    The ledger is read before the database, so that workers may go on meanwhile.
    """
    options = {"driver": "sqlite3"} if not str(database).startswith("http") else {}
    with closing(dbapi.connect(database, timeout=30.0, **options)) as connection:
        found = [list(rows or ()) for rows in connection.execute_reads(READS)]
    integrity, executions, processed, outbox, timers, spawns, trace = found
    wrong = [f"integrity_check: {row}" for row in integrity if row != ("ok",)]
    wrong += [f"{key}: row {v}, JSON {stored}" for key, v, stored in executions if v != stored]
    versions = {key: version for key, version, _ in executions}
    commits = [(key, n) for key, version in versions.items() for n in range(1, version + 1)]
    by_seq = {seq: event for seq, _, event in outbox}

    def compare(what: str, rows: Iterable[Any], expected: Iterable[Any]) -> None:
        there, wanted = Counter(rows), Counter(expected)
        wrong.extend(f"{what} lost: {each}" for each in wanted - there)
        wrong.extend(f"{what} too much: {each}" for each in there - wanted)

    compare("processed event", processed, ((key, f"{key}-{n}") for key, n in commits))
    emits = [(key, f"{key}-{n}-a") for key, n in commits]
    emits += [(None, f"{key}-{n}-b") for key, n in commits]
    compare("emit", ((target, event) for _, target, event in outbox), emits)
    compare("timer", timers, ((key, f"p{n}", n + 0.5) for key, n in commits))
    compare("spawn", spawns, ((key, f"{key}/{n}") for key, n in commits))
    steps: dict[str, list[int]] = defaultdict(list)
    for key, n in trace:
        steps[key].append(n)
    # The trace is a ring: of an execution's steps the last ones are kept.
    kept = ((k, tuple(range(v - len(steps[k]) + 1, v + 1))) for k, v in versions.items())
    compare("trace", ((key, tuple(sorted(ns))) for key, ns in steps.items()), kept)
    for key, n, seqs in acknowledged:
        if versions.get(key, 0) < n:
            wrong.append(f"acknowledged and lost: {key} {n}")
        elif [by_seq.get(seq) for seq in seqs] != [f"{key}-{n}-a", f"{key}-{n}-b"]:
            wrong.append(f"acknowledged with other seqs: {key} {n} {seqs}")
    twice = Counter((key, n) for key, n, _ in acknowledged)
    wrong += [f"acknowledged {count} times: {each}" for each, count in twice.items() if count > 1]
    return wrong
