"""Runs a move again and again, ended without a word at one step after another.

Started as ``python -m tests.move.killing ORIGINAL SOURCE DEST WHAT PHASE STRIDE``: ORIGINAL is a
file, SOURCE and DEST are files or servers. A step is a commit to a file or a request to a server,
or with ``statements`` as WHAT anything that a move asks of a database; the move is killed right
before it and right after. For each of them from PHASE on, or each STRIDEth, a child process moves a
copy of ORIGINAL in SOURCE, to which somebody writes meanwhile, and ends there by `os._exit`. Then
both ends are looked at and written to, and a second child moves to the end. Prints one JSON object
a step.
"""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import sys
from contextlib import closing
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

from harel_schema import LibsqlStore, dbapi, drift, errors, hrana
from harel_schema.drift.promise import chain
from harel_schema.models import Execution
from harel_schema.move import move
from harel_schema.transfer import Limits, copy
from harel_schema.verify import verify

if TYPE_CHECKING:
    from collections.abc import Callable

KILLED = 7
LIMITS = Limits(rows=40)
STEPS = {
    "commits": ((dbapi.Connection, ("commit",)), (hrana.Client, ("batch",))),
    "statements": (
        (dbapi.Connection, ("execute", "executemany", "executescript", "begin", "commit")),
        (hrana.Client, ("execute", "batch", "cursor")),
    ),
}
# Enough for a round of the change log and for last changes.
WRITES = {
    "catch up": (
        "UPDATE harel_executions SET version = version + 1",
        "UPDATE harel_timers SET path = path || '/c' WHERE execution_id < 'e0010'",
        "DELETE FROM harel_outbox WHERE seq % 3 = 0",
        """WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 600)
           INSERT INTO harel_processed_events SELECT 'e0001', 'more-' || i FROM n""",
    ),
    "switch": (
        "INSERT INTO harel_outbox (target_id, event) VALUES ('e0001', '{}')",
        "DELETE FROM harel_outbox WHERE seq = (SELECT max(seq) FROM harel_outbox)",
        "UPDATE harel_timers SET fire_at = fire_at + 1",
    ),
}


def kill_at(number: int, what: str) -> None:
    """End this process right before step `number`, or right after it where that is odd."""
    steps = iter(range(number // 2))

    def counted(method):
        def run(*args, **kwargs):
            last = next(steps, None) is None
            if last and number % 2 == 0:
                os._exit(KILLED)
            try:
                return method(*args, **kwargs)
            finally:
                if last:
                    os._exit(KILLED)

        return run

    for owner, names in STEPS[what]:
        for name in names:
            setattr(owner, name, counted(getattr(owner, name)))


def moving(source: str, dest: str, phase: str, kill) -> None:
    """Move, and write to the source when changes are carried over and when writers are stopped.

    `kill` is called when `phase` begins.
    """
    left = dict(WRITES)
    waiting = [kill]

    def progress(report):
        if report.phase == phase and waiting:
            waiting.pop()()
        for sql in left.pop(report.phase, ()):
            write(source, sql)

    move(source, dest, limits=LIMITS, progress=progress)


def write(database: str, sql: str) -> None:
    """Run a statement past any store, and past what counts steps."""
    if database.startswith("http"):
        with hrana.Client(database) as client:
            (result,) = client.pipeline(
                [hrana.Execute(hrana.Statement(sql)), hrana.Close()]
            ).results[:1]
            if isinstance(result, Exception):
                raise result
        return
    with closing(sqlite3.connect(database)) as connection, connection:
        connection.execute(sql)


def is_open(source: str, key: str) -> bool:
    """Write an execution to a source; tell whether it was taken."""
    try:
        write(source, f"INSERT INTO harel_executions VALUES ('{key}', 'd', '{{}}', 1)")
    except (sqlite3.IntegrityError, errors.IntegrityError) as error:
        if not str(error).startswith("moved to "):
            raise
        return False
    return True


def is_usable(dest: str) -> bool:
    """Open the destination as a worker does, and write to it; tell whether that went well."""
    try:
        with LibsqlStore(dest, create_schema=False, driver="sqlite3") as store:
            store.save(Execution(id="theirs", definition_id="d"))
    except errors.HarelSchemaError:
        return False
    return True


def holds(dest: str, key: str) -> bool:
    """Return whether an execution is at the destination."""
    with LibsqlStore(dest, create_schema=False, driver="sqlite3") as store:
        return store.ids_with_prefix(key) == [key]


def same_rows(source: str, dest: str) -> bool:
    """Return whether both hold the same rows."""
    return all(table.equal for table in verify(source, dest).tables)


def in_child(work) -> int:
    """Run `work` in a forked process and return its exit code."""
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        try:
            work()
        except BaseException as error:  # noqa: BLE001 - the child ends here, whatever it is
            sys.stderr.write(f"{type(error).__name__}: {error}\n")
            sys.stderr.flush()
            os._exit(1)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def asked(ask) -> bool | None:
    """Return the answer of a process of its own, which leaves nothing behind; None without one."""
    return {10: True, 11: False}.get(in_child(lambda: os._exit(10 if ask() else 11)))


def wipe(database: str) -> None:
    """Take everything out of a database."""
    if not database.startswith("http"):
        for suffix in ("", "-wal", "-shm", "-journal"):
            Path(database + suffix).unlink(missing_ok=True)
        return
    with hrana.Client(database) as client:
        sql = "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"
        for (name,) in client.execute(hrana.Statement(sql)).rows:
            client.execute(hrana.Statement(f'DROP TABLE "{name}"'))


def fresh(original: str, source: str) -> None:
    """Bring the rows of `original` into `source`."""
    wipe(source)
    if source.startswith("http"):
        copy(original, source)
    else:
        shutil.copy(original, source)


def one_step(  # noqa: PLR0913, PLR0917 - the command line
    original: str, source: str, dest: str, what: str, phase: str, number: int
) -> dict[str, object]:
    """Kill a move at a step; return what is true then, and after the next run."""

    def killed() -> None:
        moving(source, dest, phase, lambda: kill_at(number, what))

    found: dict[str, object] = {"step": number}
    found["ready"] = in_child(lambda: (fresh(original, source), wipe(dest)))
    found["exit"] = in_child(killed)
    found["open"] = asked(lambda: is_open(source, "late"))
    if found["open"]:
        found["usable"] = asked(lambda: is_usable(dest))
    else:
        found["equal"] = asked(lambda: same_rows(source, dest))
    found["rerun"] = in_child(lambda: move(source, dest, limits=LIMITS))
    found["late"] = asked(lambda: holds(dest, "late"))
    found["still open"] = asked(lambda: is_open(source, "later"))
    found["verified"] = asked(lambda: same_rows(source, dest))
    found["taken"] = asked(lambda: is_usable(dest))
    return found


def each_step(one: Callable[[int], dict[str, object]], stride: int) -> None:
    """Print what is found at each STRIDEth step, until there was none to be killed at."""
    for number in count(0, stride):
        found = one(number)
        sys.stdout.write(json.dumps(found) + "\n")
        if found["exit"] == 0:
            return


def main() -> None:
    """Go through the steps until a move gets to its end."""
    original, source, dest, what, phase, stride = sys.argv[1:]
    # Made once here, and not in every child.
    for revision in ("head", chain()[-1]):
        drift.expected(revision, "harel")
    each_step(lambda number: one_step(original, source, dest, what, phase, number), int(stride))


if __name__ == "__main__":
    main()
