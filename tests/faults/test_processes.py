"""Eight processes on one database at once."""

from __future__ import annotations

import subprocess
import sys

import pytest

from harel_schema import migrate
from tests.faults.ledger import audit, read
from tests.faults.limited import COMMAND

WORKER = """
import sys
from pathlib import Path
from harel_schema import LibsqlStore
from tests.faults.ledger import Ledger, work

database, driver, name, rounds = sys.argv[1:]
options = {} if "://" in database else {"driver": driver}
with LibsqlStore(database, timeout=60.0, **options) as store:
    work(store, name, Ledger(Path("ledger")), threads=2, rounds=int(rounds))
"""


def start(code: str, *args: object) -> subprocess.Popen[str]:
    """Start Python code in a process of its own."""
    command = [sys.executable, "-W", "error::RuntimeWarning", "-c", code, *map(str, args)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


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
    processes = [
        start(WORKER, database, driver, f"w{at}", rounds)
        for at, driver in enumerate(["libsql", "sqlite3", "libsql", "sqlite3"])
    ]
    processes += [
        start(COMMAND, "upgrade", database),
        start(COMMAND, "upgrade", database),
        start(COMMAND, "check", database, "--timeout", "60"),
        start(COMMAND, "copy", database, "copy.db"),
    ]
    ended = [(each.communicate(timeout=500), each.returncode) for each in processes]
    assert [code for _, code in ended] == [0] * len(processes), ended
    acknowledged = read(tmp_path / "ledger")
    assert len(acknowledged) > 4 * rounds
    assert audit(database, acknowledged) == []
    # A copy is of one moment: of each commit it has all, or nothing.
    assert audit(tmp_path / "copy.db", []) == []
    assert migrate.current(database, shape=True).shape == ()
