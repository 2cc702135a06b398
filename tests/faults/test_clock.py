"""A clock that jumps: what is stored never depends on the clock of the machine."""

from __future__ import annotations

import ast
import dataclasses
import inspect
import re
import subprocess
import sys

from harel_schema import LibsqlStore, migrate
from harel_schema.sql import statements
from tests.faults.ledger import audit, read

# Time in its ordinary sense, which somebody may set; `monotonic` is for waiting.
WALL = {"time", "time_ns", "now", "utcnow", "today", "localtime", "gmtime", "ctime", "strftime"}
IN_SQL = re.compile(r"(?i)current_(time|date)|'now'|unixepoch|julianday|strftime")
ALLOWED = {
    "dbapi/__init__.py": "PEP 249's constructors take the time from their caller",
    "doctor/diagnosing.py": "tells how old things are, and writes nothing",
    "testing/jwt.py": "a token of the tests says when it expires",
}

JUMPING = """
import random, sys, time

chance, ahead = random.Random(5), [0.0]
monotonic, wall = time.monotonic, time.time

def jumps():
    ahead[0] += 3600.0 * (chance.random() < 0.02)
    return monotonic() + ahead[0]

time.monotonic = jumps
time.time = lambda: wall() + chance.uniform(-1e9, 4e9)
time.time_ns = lambda: int(time.time() * 1e9)

from pathlib import Path
from harel_schema import LibsqlStore, migrate
from harel_schema.transfer import copy
from harel_schema.verify import verify
from tests.faults.ledger import Ledger, work

for name, database in enumerate(sys.argv[1:]):
    migrate.upgrade(database)
    with LibsqlStore(database, **({} if "://" in database else {"driver": "sqlite3"})) as store:
        work(store, "c", Ledger(Path(f"ledger{name}")), rounds=15)
    copy(database, f"copy{name}.db")
    assert verify(database, f"copy{name}.db").equal
"""


def readings(tree: ast.AST) -> list[str]:
    """Return the calls in a module that read the wall clock."""
    called = (node.func for node in ast.walk(tree) if isinstance(node, ast.Call))
    owned = (func for func in called if isinstance(func, ast.Attribute))
    names = {"time", "datetime", "dt", "date"}
    return [
        ast.unparse(func)
        for func in owned
        if func.attr in WALL and ast.unparse(func.value).partition(".")[0] in names
    ]


def test_nothing_reads_the_wall_clock(root) -> None:
    """No module of ours asks what time it is, and no statement lets SQLite ask."""
    package = root / "harel_schema"
    found = {
        path.relative_to(package).as_posix()
        for path in package.rglob("*.py")
        if readings(ast.parse(path.read_text(encoding="utf-8")))
    }
    assert found <= ALLOWED.keys()
    texts = (getattr(statements(), field.name) for field in dataclasses.fields(statements()))
    sql = [*texts, *migrate.schema_sql()]
    assert [each for each in sql if IN_SQL.search(each)] == []


def test_the_reading_would_be_seen() -> None:
    """The rule sees what it is about."""
    code = "import time, datetime as dt\ntime.time()\ndt.datetime.now()\ntime.monotonic()"
    assert readings(ast.parse(code)) == ["time.time", "dt.datetime.now"]


def test_jumps_lose_nothing(sqld_url, tmp_path) -> None:
    """Years to and fro on the wall, and hours ahead on the other clock: only waits end early."""
    databases = [str(tmp_path / "x.db"), sqld_url]
    subprocess.run([sys.executable, "-c", JUMPING, *databases], check=True)
    for name, database in enumerate(databases):
        acknowledged = read(tmp_path / f"ledger{name}")
        assert len(acknowledged) > 20
        assert audit(database, acknowledged) == []
        assert audit(tmp_path / f"copy{name}.db", acknowledged) == []


def test_due_timers_ask_their_caller() -> None:
    """What is due is decided by the time that the engine names."""
    assert "now" in inspect.signature(LibsqlStore.due_timers).parameters
