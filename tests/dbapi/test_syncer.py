"""The process that syncs a replica's file, and what becomes of the file when things go wrong."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing as closed
from pathlib import Path
from random import Random
from time import sleep as pause

import pytest

from harel_schema import dbapi
from harel_schema.errors import AuthError, InterfaceError, RequestTimeout, TargetError
from harel_schema.testing import JwtKey, sqld_server


@pytest.fixture
def primary(sqld, closing):
    """Return a connection to the primary, which has a table t with some rows."""
    connection = dbapi.connect(sqld.url)
    closing.callback(connection.close)
    with connection:
        connection.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, a)")
        connection.executemany("INSERT INTO t (a) VALUES (?)", [("x" * 500,)] * 20)
    return connection


def count(connection):
    """Return the number of rows of t."""
    return connection.execute("SELECT count(*) FROM t").fetchone()[0]


def test_a_plain_database_is_not_overwritten(sqld, tmp_path):
    """A file that never was a replica is refused before anything is synced, and untouched."""
    path = tmp_path / "mine.db"
    with closed(sqlite3.connect(path)) as mine, mine:
        mine.execute("CREATE TABLE precious (a)")
    before = path.read_bytes()
    with pytest.raises(TargetError, match="is no replica"):
        dbapi.connect(path, sync_url=sqld.url)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_two_do_not_sync_one_file(primary, sqld, tmp_path):
    """A second connection to the same replica is refused; it is free again when the first ends."""
    with closed(dbapi.connect(tmp_path / "r.db", sync_url=sqld.url)) as first:
        with pytest.raises(InterfaceError, match="a file of its own"):
            dbapi.connect(tmp_path / "r.db", sync_url=sqld.url)
        assert count(first) == 20
    with closed(dbapi.connect(tmp_path / "r.db", sync_url=sqld.url)) as second:
        assert count(second) == 20


def test_a_silent_primary_stops_nobody(primary, sqld, tmp_path):
    """While it hangs other threads run and reads go on; the sync ends in time, and works later."""
    options = {"sync_timeout": 0.6, "check_same_thread": False}
    with (
        closed(dbapi.connect(tmp_path / "r.db", sync_url=sqld.url, **options)) as replica,
        ThreadPoolExecutor(1) as pool,
    ):
        sqld.pause()
        sync, turns = pool.submit(replica.sync), 0
        while not sync.done():
            turns += 1
            pause(0.001)
        assert turns > 20
        with pytest.raises(RequestTimeout):
            sync.result()
        assert count(replica) == 20
        sqld.resume()
        with primary:
            primary.execute("DELETE FROM t WHERE id > 5")
        replica.sync()
        assert count(replica) == 5


def test_a_process_that_was_killed_is_started_again(primary, sqld, tmp_path):
    """The next sync notices nothing but a new process."""
    with closed(dbapi.connect(tmp_path / "r.db", sync_url=sqld.url)) as replica:
        before = replica._session._syncer.pid
        os.kill(before, signal.SIGKILL)
        with primary:
            primary.execute("DELETE FROM t")
        replica.sync()
        assert count(replica) == 0
        assert replica._session._syncer.pid != before


def kill_while_syncing(primary, path, url, times):
    """Kill the process that syncs at some moment of its work, and open and compare the file."""
    moments = Random(7)
    with closed(dbapi.connect(path, sync_url=url, check_same_thread=False)) as replica:
        for _ in range(times):
            with primary:
                rows = [("y" * 900,)] * moments.choice([1, 20, 400])
                primary.executemany("INSERT INTO t (a) VALUES (?)", rows)
                primary.execute("DELETE FROM t WHERE id % 5 = 0")
            pid = replica._session._syncer.pid
            killer = threading.Timer(moments.uniform(0, 0.03), os.kill, (pid, signal.SIGKILL))
            killer.start()
            replica.sync()
            killer.join()
            replica.sync()  # so that there is a process to kill next time
            assert count(replica) == count(primary)
            assert replica.execute("PRAGMA integrity_check").fetchall() == [("ok",)]


def test_a_sync_may_be_killed(primary, sqld, tmp_path):
    """Wherever the kill hits, the next sync brings the file to where the primary is."""
    kill_while_syncing(primary, tmp_path / "r.db", sqld.url, 12)


@pytest.mark.soak
def test_a_sync_may_be_killed_200_times(primary, sqld, tmp_path):
    """The same, for long."""
    kill_while_syncing(primary, tmp_path / "r.db", sqld.url, 200)


def test_a_damaged_replica_is_fetched_anew(primary, sqld, tmp_path):
    """A file that can no longer be synced is replaced, with a warning that says so."""
    path = tmp_path / "r.db"
    dbapi.connect(path, sync_url=sqld.url).close()
    Path(f"{path}-wal").unlink(missing_ok=True)
    path.write_bytes(b"no database" * 1000)
    with primary:
        primary.execute("INSERT INTO t (a) VALUES (1)")
    with pytest.warns(UserWarning, match="was fetched anew"):
        replica = dbapi.connect(path, sync_url=sqld.url)
    with closed(replica):
        assert count(replica) == count(primary)
        assert replica.execute("PRAGMA integrity_check").fetchall() == [("ok",)]


def test_a_replica_of_another_primary_becomes_one_of_this(primary, sqld, tmp_path):
    """Its rows are replaced by those of the primary that is named now."""
    path = tmp_path / "r.db"
    with sqld_server(tmp_path / "other") as other, closed(dbapi.connect(other.url)) as theirs:
        with theirs:
            theirs.execute("CREATE TABLE u (a)")
            theirs.executemany("INSERT INTO u VALUES (?)", [("z" * 900,)] * 300)
        dbapi.connect(path, sync_url=other.url).close()
    with closed(dbapi.connect(path, sync_url=sqld.url)) as replica:
        assert replica.execute("SELECT name FROM sqlite_schema").fetchall() == [("t",)]
        assert count(replica) == 20
        assert replica.execute("PRAGMA integrity_check").fetchall() == [("ok",)]


def test_a_primary_that_crashed_is_followed(primary, sqld, tmp_path):
    """A killed primary begins a new log; the replica follows that one."""
    with closed(dbapi.connect(tmp_path / "r.db", sync_url=sqld.url)) as replica:
        sqld.kill()
        sqld.start()
        with closed(dbapi.connect(sqld.url)) as again, again:
            again.execute("DELETE FROM t WHERE id > 3")
        replica.sync()
        assert count(replica) == 3
        assert replica.execute("PRAGMA integrity_check").fetchall() == [("ok",)]


HOLDER = """
import sys, threading
from harel_schema import dbapi
replica = dbapi.connect(sys.argv[1], sync_url=sys.argv[2], check_same_thread=False)
print(replica._session._syncer.pid, flush=True)
sys.stdin.readline()
threading.Thread(target=replica.sync).start()
print("syncing", flush=True)
"""


def test_the_process_ends_with_ours(sqld, tmp_path):
    """Also in a sync that hangs: after a kill of ours another process has the replica at once."""
    path = str(tmp_path / "r.db")
    command = [sys.executable, "-c", HOLDER, path, sqld.url]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as holder:
        pid = int(holder.stdout.readline())
        sqld.pause()
        holder.stdin.write("\n")
        holder.stdin.flush()
        assert holder.stdout.readline() == "syncing\n"
        holder.kill()
        holder.wait()
    sqld.resume()
    while Path(f"/proc/{pid}").exists() and " Z " not in Path(f"/proc/{pid}/stat").read_text():
        pause(0.001)
    dbapi.connect(path, sync_url=sqld.url).close()


def test_tokens_of_a_replica(tmp_path, capfd):
    """A good token syncs, a bad one is one clear error, a callable is asked again, none shows."""
    key = JwtKey()
    with sqld_server(tmp_path / "guarded", auth_key=key.public) as server:
        expired = key.token(expires_in=-3600)
        for bad in (JwtKey().token(), expired, "nonsense"):
            with pytest.raises(AuthError) as caught:
                dbapi.connect(tmp_path / "bad.db", sync_url=server.url, auth_token=bad)
            assert bad not in str(caught.value)
        assert not (tmp_path / "bad.db").exists()
        given = [expired, expired, key.token()]
        tokens = list(given)
        source = lambda: tokens.pop(0) if len(tokens) > 1 else tokens[0]  # noqa: E731
        with closed(dbapi.connect(tmp_path / "r.db", sync_url=server.url, auth_token=source)) as r:
            r.sync()
            for name in ("cmdline", "environ"):
                shown = Path(f"/proc/{r._session._syncer.pid}/{name}").read_bytes()
                assert given[-1].encode() not in shown
            assert given[-1] not in repr(r)
    assert not any(token in "".join(capfd.readouterr()) for token in given)
