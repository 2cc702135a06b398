"""Ctrl-C ends a verb at once, also in the middle of a statement that would take minutes."""

from __future__ import annotations

import json
import signal
import sqlite3
import subprocess
import sys
import tomllib
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from harel_schema import migrate
from tests.cli.conftest import interrupted

if TYPE_CHECKING:
    from pathlib import Path

# Seconds. What a run may take that is told to end; the statements below take far longer.
SOON = 30
# At every 100th module that a verb looks for, and at the end, a copy of the process gets a Ctrl-C.
STRUCK = """
import atexit, json, os, runpy, signal, sys, tempfile

ended = []
looked_for = 0

class Finder:
    def find_spec(self, name, path=None, target=None):
        global looked_for
        looked_for += name.startswith(("harel_schema.cli", "alembic")) or looked_for > 0
        if looked_for % 100 == 1:
            strike()

def strike():
    with tempfile.TemporaryFile() as said:
        child = os.fork()
        if not child:
            sys.meta_path.remove(finder)
            atexit.unregister(report)
            os.dup2(said.fileno(), 2)
            os.kill(os.getpid(), signal.SIGINT)
            return
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        said.seek(0)
        ended.append([code, said.read().decode()])

def report():
    strike()
    print(json.dumps(ended))

atexit.register(report)
finder = Finder()
sys.meta_path.insert(0, finder)
runpy.run_module("harel_schema", run_name="__main__", alter_sys=True)
"""
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


def test_ctrl_c_while_it_begins_or_ends() -> None:
    """One line while the modules load, or the interpreter ends, and no trace of them."""
    command = [sys.executable, "-c", STRUCK, "history"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    ended = json.loads(done.stdout.splitlines()[-1])
    assert len(ended) > 5
    assert ended == [[130, "\nerror: interrupted\n"]] * len(ended)


def test_the_command_begins_there(root: Path) -> None:
    """The script that is installed is what the tests above run."""
    scripts = tomllib.loads((root / "pyproject.toml").read_text())["project"]["scripts"]
    assert scripts == {"harel-schema": "harel_schema.__main__:main"}


def test_ctrl_c_ends_a_long_statement(slow: Path, tmp_path: Path) -> None:
    """The check of the file's integrity is given up; one line says so, and nothing was written."""
    ended = interrupted(
        *("doctor", slow, "--save", tmp_path / "report.html"),
        when=lambda event: event["phase"] == "check",
        timeout=SOON,
    )
    assert (ended.code, ended.out) == (130, "")
    assert ended.err.strip().splitlines()[-1] == "error: interrupted"
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
