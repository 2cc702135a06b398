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
from contextlib import suppress
from pathlib import Path
from random import Random
from time import sleep as pause

import pytest

from harel_schema import dbapi
from harel_schema.errors import (
    AuthError,
    ConnectionLost,
    InterfaceError,
    RequestTimeout,
    TargetError,
)
from harel_schema.testing import JwtKey, sqld_server
from tests.support.cloud import PrimaryLog


@pytest.fixture
def primary(sqld, closing):
    """Return a connection to the primary, which has a table t with some rows."""
    connection = dbapi.connect(sqld.url)
    closing.callback(connection.close)
    with connection:
        connection.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, a)")
        connection.executemany("INSERT INTO t (a) VALUES (?)", [("x" * 500,)] * 20)
    return connection


@pytest.fixture
def url(sync_url, sqld):
    """Return the primary's URL for a replica, by each of the two sync protocols."""
    return sync_url(sqld)


def count(connection):
    """Return the number of rows of t."""
    return connection.execute("SELECT count(*) FROM t").fetchone()[0]


def test_a_plain_database_is_not_overwritten(url, tmp_path):
    """A file that never was a replica is refused before anything is synced, and untouched."""
    path = tmp_path / "mine.db"
    with closed(sqlite3.connect(path)) as mine, mine:
        mine.execute("CREATE TABLE precious (a)")
    before = path.read_bytes()
    with pytest.raises(TargetError, match="is no replica"):
        dbapi.connect(path, sync_url=url)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_two_do_not_sync_one_file(primary, url, tmp_path):
    """A second connection to the same replica is refused; it is free again when the first ends."""
    with closed(dbapi.connect(tmp_path / "r.db", sync_url=url)) as first:
        with pytest.raises(InterfaceError, match="a file of its own"):
            dbapi.connect(tmp_path / "r.db", sync_url=url)
        assert count(first) == 20
    with closed(dbapi.connect(tmp_path / "r.db", sync_url=url)) as second:
        assert count(second) == 20


def test_a_silent_primary_stops_nobody(primary, sqld, url, tmp_path):
    """While it hangs other threads run and reads go on; the sync ends in time, and works later."""
    options = {"request_timeout": 0.6, "check_same_thread": False}
    with (
        closed(dbapi.connect(tmp_path / "r.db", sync_url=url, **options)) as replica,
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


def test_a_process_that_was_killed_is_started_again(primary, url, tmp_path):
    """The next sync notices nothing but a new process."""
    with closed(dbapi.connect(tmp_path / "r.db", sync_url=url)) as replica:
        before = replica._session._syncer.pid
        os.kill(before, signal.SIGKILL)
        with primary:
            primary.execute("DELETE FROM t")
        replica.sync()
        assert count(replica) == 0
        assert replica._session._syncer.pid != before


def kill_while_syncing(primary, path, url, times, begin_generation=None):
    """Kill the process that syncs at some moment of its work, and open and compare the file."""
    moments = Random(7)
    with closed(dbapi.connect(path, sync_url=url, check_same_thread=False)) as replica:
        for _ in range(times):
            with primary:
                rows = [("y" * 900,)] * moments.choice([1, 20, 400])
                primary.executemany("INSERT INTO t (a) VALUES (?)", rows)
                primary.execute("DELETE FROM t WHERE id % 5 = 0")
            if begin_generation:
                begin_generation()
            pid = replica._session._syncer.pid
            killer = threading.Timer(moments.uniform(0, 0.03), os.kill, (pid, signal.SIGKILL))
            killer.start()
            replica.sync()
            killer.join()
            replica.sync()  # so that there is a process to kill next time
            assert count(replica) == count(primary)
            assert replica.execute("PRAGMA integrity_check").fetchall() == [("ok",)]


def test_a_sync_may_be_killed(primary, url, tmp_path):
    """Wherever the kill hits, the next sync brings the file to where the primary is."""
    kill_while_syncing(primary, tmp_path / "r.db", url, 12)


@pytest.mark.filterwarnings("ignore:.*fetched anew")
def test_a_change_of_generation_may_be_killed(primary, cloud, tmp_path):
    """Also where the replica folds its log into its file."""
    kill_while_syncing(primary, tmp_path / "r.db", cloud.url, 8, cloud.log.begin_generation)


@pytest.mark.soak
def test_a_sync_may_be_killed_200_times(primary, url, tmp_path):
    """The same, for long."""
    kill_while_syncing(primary, tmp_path / "r.db", url, 200)


@pytest.mark.soak
@pytest.mark.filterwarnings("ignore:.*fetched anew")
def test_a_change_of_generation_may_be_killed_200_times(primary, cloud, tmp_path):
    """The same, for long."""
    kill_while_syncing(primary, tmp_path / "r.db", cloud.url, 200, cloud.log.begin_generation)


@pytest.mark.filterwarnings("ignore:.*fetched anew")
def test_the_first_sync_may_be_killed(primary, url, tmp_path):
    """Before there is a file, after it and before what tells how far it is: it opens next time."""
    moments = Random(7)
    with primary:
        primary.executemany("INSERT INTO t (a) VALUES (?)", [("y" * 4000,)] * 500)
    for at in range(3):
        path = tmp_path / f"r{at}.db"
        command = [sys.executable, "-c", HOLDER, str(path), url]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as holder:
            while not path.with_name(f"{path.name}-sync").exists():
                pause(0.001)
            pause(moments.uniform(0, 0.2))
            holder.kill()
        # The process that syncs ends with it, by and by.
        while True:
            with suppress(InterfaceError), closed(dbapi.connect(path, sync_url=url)) as replica:
                assert count(replica) == 520
                assert replica.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
                break


def test_a_damaged_replica_is_fetched_anew(primary, url, tmp_path):
    """A file that can no longer be synced is replaced, with a warning that says so."""
    path = tmp_path / "r.db"
    dbapi.connect(path, sync_url=url).close()
    Path(f"{path}-wal").unlink(missing_ok=True)
    path.write_bytes(b"no database" * 1000)
    with primary:
        primary.execute("INSERT INTO t (a) VALUES (1)")
    with pytest.warns(UserWarning, match="was fetched anew"):
        replica = dbapi.connect(path, sync_url=url)
    with closed(replica):
        assert count(replica) == count(primary)
        assert replica.execute("PRAGMA integrity_check").fetchall() == [("ok",)]


def lose_the_log(path):
    """Take away what a power cut may take: all of the WAL, which was not yet on the disk."""
    Path(f"{path}-wal").unlink()


def lose_the_end_of_the_log(path):
    """Take away half of the WAL."""
    os.truncate(f"{path}-wal", Path(f"{path}-wal").stat().st_size // 2)


def lose_the_state(path):
    """Be killed between the file and what tells how far it is."""
    Path(f"{path}-info").unlink()


def spoil_the_state(path):
    """Leave something else there."""
    Path(f"{path}-info").write_text("{")


@pytest.mark.parametrize(
    "damage", [lose_the_log, lose_the_end_of_the_log, lose_the_state, spoil_the_state]
)
def test_what_a_power_cut_leaves_is_fetched_anew(primary, cloud, tmp_path, damage):
    """The library of the newer protocol would put new frames after a gap, and corrupt the file."""
    path = tmp_path / "r.db"
    dbapi.connect(path, sync_url=cloud.url).close()
    with primary:
        primary.executemany("INSERT INTO t (a) VALUES (?)", [("y" * 900,)] * 50)
    dbapi.connect(path, sync_url=cloud.url).close()
    damage(path)
    with primary:
        primary.execute("DELETE FROM t WHERE id % 2 = 0")
    with pytest.warns(UserWarning, match="was fetched anew"):
        replica = dbapi.connect(path, sync_url=cloud.url)
    with closed(replica):
        assert count(replica) == count(primary) == 35
        assert replica.execute("PRAGMA integrity_check").fetchall() == [("ok",)]


@pytest.mark.parametrize("reads", [0, 1])
def test_a_replica_that_is_open_is_fetched_anew_too(primary, cloud, tmp_path, reads):
    """Killed where the file cannot be mended, its process fetches a new one, which is read then."""
    path = tmp_path / "r.db"
    with closed(dbapi.connect(path, sync_url=cloud.url)) as replica:
        assert [count(replica)] * reads == [20] * reads
        os.kill(replica._session._syncer.pid, signal.SIGKILL)
        replica._session._syncer.close()
        lose_the_state(path)
        with primary:
            primary.execute("DELETE FROM t WHERE id > 4")
        with pytest.warns(UserWarning, match="was fetched anew"):
            replica.sync()
        assert count(replica) == 4
        with primary:
            primary.execute("DELETE FROM t WHERE id > 3")
        replica.sync()
        assert count(replica) == 3


def test_a_file_that_is_gone(primary, url, tmp_path):
    """What is left beside it belongs to nothing, and a new replica is made."""
    path = tmp_path / "r.db"
    dbapi.connect(path, sync_url=url).close()
    path.unlink()
    with closed(dbapi.connect(path, sync_url=url)) as replica:
        assert count(replica) == 20


def test_generations_are_followed(primary, cloud, tmp_path):
    """Where the primary begins a new log, the replica folds its own and goes on with that one."""
    with closed(dbapi.connect(tmp_path / "r.db", sync_url=cloud.url)) as replica:
        for left in range(19, 15, -1):
            with primary:
                primary.execute("DELETE FROM t WHERE id > ?", (left,))
            cloud.log.begin_generation()
            replica.sync()
            assert count(replica) == left
        assert replica.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        assert cloud.requests[-1].path.startswith("/sync/5/1/")


def test_a_log_that_begins_anew_is_noticed(primary, sqld, cloud, tmp_path):
    """A primary whose generation is lower than the replica's is not the one it was."""
    path = tmp_path / "r.db"
    cloud.log.begin_generation()
    dbapi.connect(path, sync_url=cloud.url).close()
    cloud.log = PrimaryLog.of(sqld)
    with pytest.warns(UserWarning, match="begun anew"):
        replica = dbapi.connect(path, sync_url=cloud.url)
    with closed(replica):
        assert count(replica) == 20


def test_the_rows_of_another_primary_are_not_read(primary, sqld, url, tmp_path):
    """While the one that is named now is away, a replica of another is no substitute."""
    path = tmp_path / "r.db"
    dbapi.connect(path, sync_url=url).close()
    with pytest.raises(ConnectionLost, match="needs its primary"):
        dbapi.connect(path, sync_url="http://127.0.0.1:1")
    with closed(dbapi.connect(path, sync_url=url)) as replica:
        assert count(replica) == 20


def test_a_replica_of_another_primary_becomes_one_of_this(primary, url, sync_url, tmp_path):
    """Its rows are replaced by those of the primary that is named now."""
    path = tmp_path / "r.db"
    with sqld_server(tmp_path / "other") as other, closed(dbapi.connect(other.url)) as theirs:
        with theirs:
            theirs.execute("CREATE TABLE u (a)")
            theirs.executemany("INSERT INTO u VALUES (?)", [("z" * 900,)] * 300)
        dbapi.connect(path, sync_url=sync_url(other)).close()
    with closed(dbapi.connect(path, sync_url=url)) as replica:
        assert replica.execute("SELECT name FROM sqlite_schema").fetchall() == [("t",)]
        assert count(replica) == 20
        assert replica.execute("PRAGMA integrity_check").fetchall() == [("ok",)]


def test_a_primary_that_crashed_is_followed(primary, sqld, url, tmp_path):
    """A killed primary begins a new log; the replica follows that one."""
    with closed(dbapi.connect(tmp_path / "r.db", sync_url=url)) as replica:
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


def test_the_process_ends_with_ours(sqld, url, tmp_path):
    """Also in a sync that hangs: after a kill of ours another process has the replica at once."""
    path = str(tmp_path / "r.db")
    command = [sys.executable, "-c", HOLDER, path, url]
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
    dbapi.connect(path, sync_url=url).close()


def test_tokens_of_a_replica(sync_url, tmp_path, capfd):
    """A good token syncs, a bad one is one clear error, a callable is asked again, none shows."""
    key = JwtKey()
    with sqld_server(tmp_path / "guarded", auth_key=key.public) as server:
        url = sync_url(server)
        expired = key.token(expires_in=-3600)
        for bad in (JwtKey().token(), expired, "nonsense"):
            with pytest.raises(AuthError) as caught:
                dbapi.connect(tmp_path / "bad.db", sync_url=url, auth_token=bad)
            assert bad not in str(caught.value)
        assert not (tmp_path / "bad.db").exists()
        # The older protocol's first question needs no token.
        given = [expired] * (2 if url == server.url else 1) + [key.token()]
        tokens = list(given)
        source = lambda: tokens.pop(0) if len(tokens) > 1 else tokens[0]  # noqa: E731
        with closed(dbapi.connect(tmp_path / "r.db", sync_url=url, auth_token=source)) as r:
            r.sync()
            for name in ("cmdline", "environ"):
                shown = Path(f"/proc/{r._session._syncer.pid}/{name}").read_bytes()
                assert given[-1].encode() not in shown
            assert given[-1] not in repr(r)
    assert not any(token in "".join(capfd.readouterr()) for token in given)
