"""Waiting for other writers."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from harel_schema import LibsqlStore, dbapi
from harel_schema.errors import BusyError
from harel_schema.hrana import Client, Execute, Statement
from tests.store.support import new

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("driver", ["libsql", "sqlite3"])
def test_a_lock_that_is_not_let_go_is_busy(driver) -> None:
    """After `timeout` seconds the commit fails with BusyError, and nothing has changed."""
    with (
        LibsqlStore("state.db", driver=driver, timeout=0.05) as store,
        closing(dbapi.connect("state.db", driver=driver)) as other,
    ):
        exe = new()
        other.begin("IMMEDIATE")
        with pytest.raises(BusyError):
            store.save(exe)
        assert exe.version == 0
        other.rollback()
        store.save(exe)
        assert exe.version == 1


def test_a_writer_on_the_server_is_waited_for(sqld_url) -> None:
    """A commit that meets another transaction goes through when that one ends."""
    with Client(sqld_url) as client, LibsqlStore(sqld_url) as store, ThreadPoolExecutor(1) as pool:
        exe = new()
        with client.stream() as stream:
            stream.pipeline([Execute(Statement("BEGIN IMMEDIATE"))])
            before = store._backend.client.requests_sent
            saved = pool.submit(store.save, exe)
            while store._backend.client.requests_sent == before:
                pass
            stream.pipeline([Execute(Statement("ROLLBACK"))])
            saved.result(10)
        assert exe.version == store.load("e").version == 1


WRITER = """
import sys
from harel_schema import LibsqlStore
from harel_schema.models import Event, Execution
from tests.store.support import new
path, driver, name, commits = sys.argv[1:]
with LibsqlStore(path, driver=driver) as store:
    exe = Execution(id=name, definition_id="d")
    for at in range(int(commits)):
        store.commit(exe, [("t", Event(kind="k"))], f"ev{at}")
"""


def write_in_processes(path: Path, driver: str, *, writers: int, commits: int) -> None:
    """Let processes commit to one file, and see that none failed and nothing is missing."""
    command = [sys.executable, "-W", "error", "-c", WRITER, str(path), driver]
    children = [subprocess.Popen([*command, f"e{at}", str(commits)]) for at in range(writers)]
    assert [child.wait() for child in children] == [0] * writers
    with LibsqlStore(path, driver=driver) as store:
        assert [store.load(f"e{at}").version for at in range(writers)] == [commits] * writers
        seqs = [entry.seq for entry in store.pending_outbox()]
        assert seqs == list(range(1, writers * commits + 1))


@pytest.mark.parametrize("driver", ["libsql", "sqlite3"])
def test_processes_share_a_file(driver, tmp_path: Path) -> None:
    """Several processes commit to one file and none of them fails."""
    write_in_processes(tmp_path / "state.db", driver, writers=4, commits=60)


@pytest.mark.soak
@pytest.mark.parametrize("driver", ["libsql", "sqlite3"])
def test_eight_processes_share_a_file(driver, tmp_path: Path) -> None:
    """Eight writers with 500 commits each, every one flushed to the disk, all finish."""
    write_in_processes(tmp_path / "state.db", driver, writers=8, commits=500)
