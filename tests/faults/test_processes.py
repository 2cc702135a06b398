"""Eight processes on one database at once."""

from __future__ import annotations

import subprocess
import sys

import pytest

from harel_schema import migrate
from tests.faults.ledger import audit, read

# Processes that are forked from one which has loaded all that they need, and opened nothing.
COMPETING = """
import json, os, sys
from functools import partial
from pathlib import Path
from harel_schema import LibsqlStore, cli
from harel_schema.cli import data, drift, schema
from tests.faults.killing import ended, forked
from tests.faults.ledger import Ledger, work

database, rounds = sys.argv[1:]

def worker(name, driver):
    options = {} if "://" in database else {"driver": driver}
    with LibsqlStore(database, timeout=60.0, **options) as store:
        work(store, name, Ledger(Path("ledger")), threads=2, rounds=int(rounds))

def verb(*line):
    try:
        cli.main(list(line))
    except SystemExit as end:
        os._exit(end.code)

children = [
    *(forked(partial(worker, f"w{at}", each)) for at, each in enumerate(["libsql", "sqlite3"] * 2)),
    forked(partial(verb, "upgrade", database)),
    forked(partial(verb, "upgrade", database)),
    forked(partial(verb, "check", database, "--timeout", "60")),
    forked(partial(verb, "copy", database, "copy.db")),
]
codes = list(map(ended, children))
sys.exit(f"{codes}" if any(codes) else None)
"""


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    ("where", "rounds"),
    [
        ("file", 5),
        pytest.param("file", 300, marks=pytest.mark.soak),
        pytest.param("server", 300, marks=pytest.mark.soak),
    ],
)
def test_workers_and_verbs_compete(where, rounds, request, tmp_path) -> None:
    """Workers with either library commit while others migrate, check, copy: all get through."""
    database = tmp_path / "x.db" if where == "file" else request.getfixturevalue("sqld_url")
    migrate.upgrade(database, "0002")
    command = [sys.executable, "-c", COMPETING, str(database), str(rounds)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=500, check=False)
    assert done.returncode == 0, done
    acknowledged = read(tmp_path / "ledger")
    assert len(acknowledged) > 4 * rounds
    assert audit(database, acknowledged) == []
    # A copy is of one moment: of each commit it has all, or nothing.
    assert audit(tmp_path / "copy.db", []) == []
    assert migrate.current(database, shape=True).shape == ()
