"""A large table: how long writers will wait is said beforehand, and memory stays flat."""

from __future__ import annotations

import logging
import sqlite3
import subprocess
import sys
from contextlib import closing

import pytest

from harel_schema import cli, migrate
from harel_schema.migrate import results
from harel_schema.report.text import plan_text
from tests.migrations.conftest import CHAIN


def fill(rows: int, size: int) -> str:
    """Return a statement that makes executions with `size` bytes of data, and a little more."""
    data = f"json_object('status', 'DONE', 'parent_id', NULL, 'pad', printf('%.*c', {size}, 'x'))"
    return (
        f"WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {rows}) "
        f"INSERT INTO harel_executions SELECT printf('e%08d', i), 'd', {data}, 1 FROM n"
    )


def test_what_takes_long_is_said_beforehand(database):
    """Each revision is told before it runs, with a time where a table has many rows."""
    migrate.upgrade(database.target, "0002")
    database.rows(fill(60_000, 10))
    plan = migrate.plan(database.target)
    assert 0 < plan.seconds < 60
    steps: list[migrate.Step] = []
    migrate.upgrade(database.target, on_step=steps.append)
    assert [(each.revision, each.number, each.total) for each in steps] == [
        (revision, at, len(CHAIN) - 2) for at, revision in enumerate(CHAIN[2:], 1)
    ]
    waits = {each.revision: (each.seconds > 0, each.rows) for each in steps}
    assert waits["0003"] == (False, 0)
    assert waits["0004"] == (True, 60_000)


def test_few_rows_take_no_time(file):
    """A small database is not sampled."""
    migrate.upgrade(file.target, "0002")
    file.rows(fill(100, 10))
    assert migrate.plan(file.target).seconds == 0.0
    steps: list[migrate.Step] = []
    migrate.upgrade(file.target, on_step=steps.append)
    assert {(each.seconds, each.rows) for each in steps} == {(0.0, 0)}


def test_the_command_says_how_long_writers_wait(file, monkeypatch, capsys, caplog):
    """On stderr, and in the log for whoever runs `alembic`, before the revision is run."""
    migrate.upgrade(file.target, "0003")
    file.rows(fill(60_000, 10))
    monkeypatch.setattr(results, "_LONG", 0.0)
    assert "would run 0004, writers would wait about" in plan_text(migrate.plan(file.target))
    with pytest.raises(SystemExit) as ended, caplog.at_level(logging.INFO, "harel_schema"):
        cli.main(["upgrade", file.target])
    assert ended.value.code == 0
    assert "0004: writers wait about 0 s (60,000 rows)" in capsys.readouterr().err
    waits, done = (
        next(at for at, r in enumerate(caplog.records) if text in r.getMessage())
        for text in ("writers will wait about", "upgraded to 0004")
    )
    assert waits < done


# On Linux ru_maxrss begins with the peak of the process that forked this one: pytest's.
UPGRADE = """
import re, resource, sys
from pathlib import Path
from harel_schema import migrate
migrate.upgrade(sys.argv[1])
status = Path("/proc/self/status")
if status.exists():
    print(re.search(r"VmHWM:\\s+([0-9]+) kB", status.read_text())[1])
else:
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024)
"""


@pytest.mark.parametrize(
    "rows", [100_000, pytest.param(1_000_000, marks=pytest.mark.soak)], ids=str
)
def test_memory_stays_flat(rows, tmp_path):
    """An upgrade of executions of 1 kB needs less than 150 MB, however many they are."""
    path = tmp_path / "large.db"
    migrate.upgrade(path, "0001")
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(fill(rows, 900))
    done = subprocess.run(
        [sys.executable, "-c", UPGRADE, str(path)], capture_output=True, text=True, check=True
    )
    assert int(done.stdout) < 150 * 1024
