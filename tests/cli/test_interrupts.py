"""Ctrl-C ends a verb at once, also in the middle of a statement that would take minutes."""

from __future__ import annotations

import json
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from harel_schema import migrate

if TYPE_CHECKING:
    from pathlib import Path

COMMAND = [sys.executable, "-c", "from harel_schema.cli import main; main()"]
# Seconds. What a run may take that is told to end; the statements below take far longer.
SOON = 30
ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n"


@pytest.fixture
def slow(tmp_path: Path) -> Path:
    """Return a database whose integrity takes hours to check: each row of one table, a second."""
    path = tmp_path / "slow.db"
    migrate.upgrade(path)
    with closing(sqlite3.connect(path)) as connection:
        slowly = "length(replace(hex(zeroblob(50000000)), '00', 'x')) > n"
        connection.execute(f"CREATE TABLE others (n INTEGER CHECK ({slowly}))")
        connection.execute("PRAGMA ignore_check_constraints = ON")
        connection.executemany("INSERT INTO others VALUES (?)", [(n,) for n in range(10_000)])
        connection.commit()
    return path


def test_ctrl_c_ends_a_long_statement(slow: Path, tmp_path: Path) -> None:
    """The check of the file's integrity is given up; one line says so, and nothing was written."""
    saved = tmp_path / "report.html"
    command = [*COMMAND, "doctor", str(slow), "--format", "json", "--save", str(saved)]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr is not None
        assert json.loads(process.stderr.readline())["phase"] == "check"
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=SOON)
    assert (process.returncode, out) == (130, "")
    assert err.strip().splitlines()[-1] == "error: interrupted"
    assert [path.name for path in tmp_path.iterdir()] == ["slow.db"]


@pytest.mark.parametrize("reading", [False, True], ids=["alone", "beside an open read"])
def test_ctrl_c_ends_an_endless_statement_in_a_transaction(reading: bool, tmp_path: Path) -> None:  # noqa: FBT001
    """What was written before is rolled back, and the connection can be used again."""
    program = f"""
from harel_schema import dbapi
from harel_schema.cli.interrupts import interruptible

connection = dbapi.connect({str(tmp_path / "x.db")!r}, driver="sqlite3")
connection.execute("CREATE TABLE t (n)")
connection.commit()
connection.executemany("INSERT INTO t VALUES (?)", [(n,) for n in range(100_000)])
if {reading}:
    read = connection.execute("SELECT n FROM t")
    read.fetchone()
try:
    with interruptible():
        print("begun", flush=True)
        connection.execute({ENDLESS!r}).fetchall()
except KeyboardInterrupt:
    connection.rollback()
    print(connection.execute("SELECT count(*) FROM t").fetchall(), flush=True)
"""
    with subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "begun\n"
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=SOON)
    assert (process.returncode, out) == (0, "[(0,)]\n")
