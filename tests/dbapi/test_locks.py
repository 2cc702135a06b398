"""Waiting for a lock: in Python, as long as we say, and fairly."""

from __future__ import annotations

import subprocess
import sys
import threading
import time

import pytest

from harel_schema.dbapi import waiting
from harel_schema.errors import BusyError

WRITER = """
import sys
from harel_schema import dbapi
path, driver, name = sys.argv[1:]
connection = dbapi.connect(path, driver=driver, timeout=60)
for at in range(40):
    with connection:
        connection.execute("INSERT INTO t VALUES (?, ?)", (name, at))
connection.close()
"""


@pytest.fixture
def pair(open_local):
    """Return two connections to one file, the second of which waits for nothing."""
    one, two = open_local(check_same_thread=False), open_local(timeout=0, check_same_thread=False)
    one.execute("PRAGMA journal_mode = WAL")
    one.execute("CREATE TABLE t (a, b)")
    one.commit()
    return one, two


def test_gives_up_after_the_timeout(pair, open_local):
    """A lock that is not released is waited for as long as `timeout` says, and no longer."""
    one, _ = pair
    one.begin()
    waiter = open_local(timeout=0.2)
    started = time.monotonic()
    with pytest.raises(BusyError, match=r"state\.db.*locked.*waited 0\.2 s.*try again"):
        waiter.execute("INSERT INTO t VALUES (1, 1)")
    assert 0.2 <= time.monotonic() - started < 2
    assert not waiter.in_transaction


def test_a_thread_gets_the_lock_of_another_thread(pair, open_local):
    """The holder's thread runs while another waits, so the wait ends when the lock is free."""
    one, _ = pair
    waiter = open_local(timeout=30, check_same_thread=False)
    one.begin()
    waiting_now = threading.Event()
    with pytest.MonkeyPatch.context() as patch:
        sleep = waiting.time.sleep
        patch.setattr(waiting.time, "sleep", lambda s: (waiting_now.set(), sleep(s)))
        thread = threading.Thread(target=waiter.begin)
        thread.start()
        assert waiting_now.wait(10)
        one.commit()
        thread.join(10)
    assert waiter.in_transaction


def test_a_stale_snapshot_is_no_matter_of_waiting(pair, open_local):
    """A deferred transaction that has read and cannot write any more fails at once."""
    one, _ = pair
    reader = open_local(timeout=60, isolation_level="DEFERRED")
    reader.begin()
    reader.execute("SELECT * FROM t").fetchall()
    one.execute("INSERT INTO t VALUES (1, 1)")
    one.commit()
    started = time.monotonic()
    with pytest.raises(BusyError):
        reader.execute("INSERT INTO t VALUES (2, 2)")
    assert time.monotonic() - started < 10
    reader.rollback()
    reader.execute("INSERT INTO t VALUES (2, 2)")
    reader.commit()


def test_a_busy_commit_can_be_repeated(open_local):
    """A COMMIT that finds a reader leaves the transaction open, and works once it is gone."""
    writer, reader = open_local(timeout=0), open_local()
    writer.execute("CREATE TABLE t (a)")
    writer.commit()
    reader.begin("DEFERRED")
    reader.execute("SELECT * FROM t").fetchall()
    writer.execute("INSERT INTO t VALUES (1)")
    with pytest.raises(BusyError):
        writer.commit()
    assert writer.in_transaction
    reader.rollback()
    writer.commit()
    assert reader.execute("SELECT * FROM t").fetchall() == [(1,)]


def test_an_interrupted_wait_leaves_nothing(pair, open_local, monkeypatch):
    """KeyboardInterrupt while waiting leaves no transaction and no lock."""
    one, _ = pair
    waiter = open_local(timeout=60)

    def interrupt(seconds):
        raise KeyboardInterrupt

    one.begin()
    monkeypatch.setattr(waiting.time, "sleep", interrupt)
    with pytest.raises(KeyboardInterrupt):
        waiter.execute("INSERT INTO t VALUES (1, 1)")
    monkeypatch.undo()
    one.commit()
    assert not waiter.in_transaction
    one.begin()


def test_every_process_gets_its_turn(pair, tmp_path, driver):
    """Processes that write one file at the same time all finish, and lose and double no row."""
    connection, _ = pair
    command = [sys.executable, "-c", WRITER, str(tmp_path / "state.db"), driver]
    writers = [subprocess.Popen([*command, str(at)]) for at in range(4)]
    assert [writer.wait(100) for writer in writers] == [0] * 4
    rows = connection.execute("SELECT a, count(DISTINCT b), count(*) FROM t GROUP BY a").fetchall()
    assert rows == [(str(at), 40, 40) for at in range(4)]
