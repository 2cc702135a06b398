"""Files: one library each, nothing created by a reader, clear words for what is no database."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from contextlib import closing

import pytest

from harel_schema import dbapi
from harel_schema.errors import DatabaseError, NotADatabaseError, TargetError
from tests.dbapi.conftest import LOCAL


def make(path, *, mode="wal", rows=1):
    """Write a database with table t."""
    connection = sqlite3.connect(path)
    connection.execute(f"PRAGMA journal_mode = {mode}")
    connection.execute("CREATE TABLE t (a)")
    connection.executemany("INSERT INTO t VALUES (?)", [(i,) for i in range(rows)])
    connection.commit()
    connection.close()


def snapshot(folder):
    """Return every file of a folder with its bytes and its time of change."""
    return {path.name: (path.read_bytes(), path.stat().st_mtime_ns) for path in folder.iterdir()}


@pytest.mark.parametrize("second", LOCAL)
def test_one_library_a_file(open_local, tmp_path, driver, second):
    """A file that one library has open is refused to another, by inode, until it is closed."""
    first = open_local()
    (tmp_path / "alias.db").symlink_to("state.db")
    os.link(tmp_path / "state.db", tmp_path / "hard.db")
    for name in ("state.db", "alias.db", "hard.db"):
        if second == driver:
            dbapi.connect(tmp_path / name, driver=second).close()
        else:
            with pytest.raises(dbapi.InterfaceError, match=f"open in this process with {driver}"):
                dbapi.connect(tmp_path / name, driver=second)
    first.close()
    dbapi.connect(tmp_path / "state.db", driver=second).close()


def test_a_forgotten_connection_gives_its_file_free(tmp_path):
    """A connection that nobody closed gives its file free when it is collected."""
    dbapi.connect(tmp_path / "state.db", driver="libsql").execute("CREATE TABLE t (a)")
    connection = dbapi.connect(tmp_path / "state.db", driver="sqlite3")
    assert connection.execute("SELECT * FROM sqlite_schema").fetchall() == []
    connection.close()


@pytest.mark.parametrize("mode", ["wal", "delete"])
def test_reading_leaves_nothing(open_local, tmp_path, mode):
    """A read-only connection changes no byte and no time, and leaves no file beside."""
    make(tmp_path / "state.db", mode=mode)
    before = snapshot(tmp_path)
    connection = open_local(read_only=True)
    assert connection.execute("SELECT * FROM t").fetchall() == [(0,)]
    connection.close()
    assert snapshot(tmp_path) == before


def test_reading_beside_a_crashed_writer(open_local, tmp_path):
    """What a killed writer left in the WAL is read, and left where it is."""
    make(tmp_path / "state.db")
    code = (
        "import os, sqlite3; c = sqlite3.connect('state.db'); "
        "c.execute('INSERT INTO t VALUES (1)'); c.commit(); os._exit(0)"
    )
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=True)
    before = snapshot(tmp_path)
    connection = open_local(read_only=True)
    assert connection.execute("SELECT * FROM t").fetchall() == [(0,), (1,)]
    connection.close()
    after = snapshot(tmp_path)
    assert {name: after[name][0] for name in ("state.db", "state.db-wal")} == {
        name: before[name][0] for name in ("state.db", "state.db-wal")
    }


@pytest.mark.parametrize("read_only", [True, False])
def test_reading_after_a_killed_writer(open_local, tmp_path, read_only):
    """What a killed transaction left half written is undone by its journal, and can be read."""
    make(tmp_path / "state.db", mode="delete", rows=10)
    code = (
        "import os, sqlite3; c = sqlite3.connect('state.db'); c.execute('PRAGMA cache_size = 1'); "
        "c.executemany('INSERT INTO t VALUES (zeroblob(5000))', [()] * 50); "
        "os.kill(os.getpid(), 9)"
    )
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=False)
    assert (tmp_path / "state.db-journal").stat().st_size > 512
    connection = open_local(read_only=read_only)
    assert connection.execute("SELECT count(*) FROM t").fetchall() == [(10,)]
    connection.close()
    assert [path.name for path in tmp_path.iterdir()] == ["state.db"]


@pytest.mark.parametrize(
    "sql",
    [
        "INSERT INTO t VALUES (2)",
        "CREATE TABLE u (a)",
        "PRAGMA user_version = 1",
        "PRAGMA query_only = OFF",
        "PRAGMA main.query_only(0)",
        "PRAGMA journal_mode = DELETE",
        "PRAGMA wal_checkpoint(TRUNCATE)",
        "PRAGMA wal_checkpoint",
        'PRAGMA main."wal_checkpoint"',
        "PRAGMA optimize",
        "VACUUM",
    ],
)
def test_a_read_only_connection_refuses_writes(open_local, tmp_path, sql):
    """Nothing gets past `read_only`, not even a PRAGMA that would lift it."""
    make(tmp_path / "state.db")
    connection = open_local(read_only=True)
    with pytest.raises(dbapi.OperationalError, match=r"read-?only") as caught:
        connection.execute(sql)
    assert caught.value.code == "SQLITE_READONLY"
    assert connection.execute("PRAGMA query_only").fetchone() == (1,)
    assert connection.execute("PRAGMA main.journal_mode").fetchone() == ("wal",)
    assert connection.execute("PRAGMA table_info(optimize)").fetchone() is None


def test_reading_creates_no_file(tmp_path, driver):
    """A read-only connection to a missing file is an error, and the file stays missing."""
    with pytest.raises(TargetError, match="no such file"):
        dbapi.connect(tmp_path / "none.db", driver=driver, read_only=True)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("read_only", [False, True])
def test_a_file_that_is_no_database(open_local, tmp_path, read_only):
    """The first statement on another kind of file says so, names it, and leaves it as it was."""
    (tmp_path / "state.db").write_bytes(b"hello world\n" * 100)
    before = snapshot(tmp_path)
    connection = open_local(read_only=read_only)
    with pytest.raises(NotADatabaseError, match=r"^state\.db: file is not a database; ") as caught:
        connection.execute("SELECT * FROM t")
    assert caught.value.code == "SQLITE_NOTADB"
    connection.close()
    assert snapshot(tmp_path) == before


def test_paths_that_cannot_be_opened(tmp_path, driver):
    """A missing folder and a directory are one clear line each, and nothing is made."""
    for name, says in (("no/state.db", "folder .*no does not exist"), (".", "is a directory")):
        with pytest.raises(TargetError, match=says) as caught:
            dbapi.connect(tmp_path / name, driver=driver)
        assert "\n" not in str(caught.value)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["a b?c#d%20.db", "ünï.db", "file.db?mode=memory", 'it\'s "q".db'])
def test_any_file_name(open_local, tmp_path, name):
    """A file name is taken as it is, whatever a URI would make of it."""
    connection = open_local(name)
    connection.execute("CREATE TABLE t (a)")
    connection.commit()
    connection.close()
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_closing_closes_the_file(open_local, tmp_path):
    """After close the file is really closed, whatever cursors and errors are still around."""
    connection = open_local()
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("CREATE TABLE t (a PRIMARY KEY)")
    connection.executemany("INSERT INTO t VALUES (?)", [(i,) for i in range(1000)])
    connection.commit()
    cursor = connection.execute("SELECT a FROM t")
    kept = [cursor.fetchone()]
    for sql in ("INSERT INTO t VALUES (1)", "SELECT abs(-9223372036854775808)", "selec"):
        with pytest.raises(dbapi.DatabaseError) as caught:
            connection.execute(sql)
        kept.append(caught.value)
    connection.close()
    assert [path.name for path in tmp_path.iterdir()] == ["state.db"]
    assert len(kept) == 4


@pytest.mark.parametrize(
    "schema",
    [
        "CREATE TABLE t (a) RANDOM ROWID",
        "CREATE TABLE t (a F32_BLOB(3)); CREATE INDEX i ON t (libsql_vector_idx(a))",
    ],
)
def test_a_schema_that_only_libsql_reads(tmp_path, schema):
    """Without a driver named, a file that stdlib's SQLite cannot work with gets libsql."""
    with dbapi.connect(tmp_path / "state.db", driver="libsql") as made:
        made.executescript(schema)
    made.close()
    connection = dbapi.connect(tmp_path / "state.db")
    assert connection.driver == "libsql"
    connection.execute("INSERT INTO t VALUES (vector('[1,2,3]'))")
    connection.close()


def test_without_a_driver_the_one_in_use_is_taken(open_local, tmp_path, driver):
    """Who names no driver shares the file with whoever has it open."""
    first = open_local()
    second = dbapi.connect(tmp_path / "state.db")
    assert second.driver == driver
    first.close()
    second.close()
    third = dbapi.connect(tmp_path / "state.db")
    assert third.driver == "sqlite3"
    third.close()


def test_memory_databases_are_apart(driver):
    """Every connection to memory has a database of its own."""
    one, two = (dbapi.connect(":memory:", driver=driver) for _ in range(2))
    one.execute("CREATE TABLE t (a)")
    assert two.execute("SELECT * FROM sqlite_schema").fetchall() == []
    one.close()
    two.close()


def test_unknown_driver():
    """An unknown driver is refused with the names of the known ones."""
    with pytest.raises(dbapi.InterfaceError, match="sqlite3, libsql, libsql_experimental"):
        dbapi.connect(":memory:", driver="postgres")


def test_a_server_takes_no_driver():
    """A server is spoken to over Hrana, never by a driver."""
    with pytest.raises(dbapi.InterfaceError, match="Hrana"):
        dbapi.connect("http://127.0.0.1:1", driver="libsql")


def test_a_damaged_schema_may_be_quoted_in_any_bytes(tmp_path, driver):
    """SQLite's message quotes it, and stdlib cannot read a message that is not UTF-8."""
    path = tmp_path / "state.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE quoted (a)")
    data = path.read_bytes()
    path.write_bytes(data.replace(b"CREATE TABLE quoted (a)", b"CREATE TABLE quot\xce\xff (a("))
    with pytest.raises(DatabaseError, match="malformed database schema") as caught:
        dbapi.connect(path, driver=driver, read_only=True).execute("SELECT * FROM quoted")
    assert caught.value.code == "SQLITE_CORRUPT"
