"""An embedded replica of a real server: local reads, writes on the primary, its own writes read."""

from __future__ import annotations

import pytest

from harel_schema import dbapi
from harel_schema.errors import ConnectionLost, InterfaceError, TargetError


@pytest.fixture
def primary(sqld, closing):
    """Return a connection to the primary, which has a table t with one row."""
    connection = dbapi.connect(sqld.url)
    closing.callback(connection.close)
    with connection:
        connection.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, a)")
        connection.execute("INSERT INTO t (a) VALUES (?)", ("a\0b",))
    return connection


@pytest.fixture
def replica(primary, sqld, tmp_path, closing):
    """Return a replica of the primary in a file of its own."""
    connection = dbapi.connect(tmp_path / "replica.db", sync_url=sqld.url)
    closing.callback(connection.close)
    return connection


def test_a_new_replica_has_the_rows(replica):
    """Opening fetches what the primary has, exactly, and asks it which library it needs."""
    assert replica.driver == "libsql_experimental"
    assert replica.execute("SELECT id, a FROM t").fetchall() == [(1, "a\0b")]


def test_a_replica_reads_its_own_writes(replica, primary):
    """A write is on the primary when it returns, and in the replica's next read."""
    with replica:
        cursor = replica.execute("INSERT INTO t (a) VALUES (?) RETURNING id, a", (2**53 + 1,))
        assert (cursor.fetchall(), cursor.rowcount) == ([(2, 2**53 + 1)], 1)
    assert primary.execute("SELECT a FROM t WHERE id = 2").fetchone() == (2**53 + 1,)
    assert replica.execute("SELECT a FROM t WHERE id = 2").fetchone() == (2**53 + 1,)


def test_many_rows_and_scripts(replica, primary):
    """Bulk writes and scripts run on the primary, and the next read here has them."""
    with replica:
        replica.executemany("INSERT INTO t (a) VALUES (?)", [(at,) for at in range(600)])
    replica.executescript("CREATE TABLE u (a); INSERT INTO u VALUES (1)")
    for connection in (replica, primary):
        assert connection.execute("SELECT count(*) FROM t").fetchone() == (601,)
        assert connection.execute("SELECT a FROM u").fetchall() == [(1,)]
    assert replica.execute_reads(["SELECT a FROM u", "SELECT a FROM v"]) == [[(1,)], None]


def test_reads_in_a_transaction_see_it(replica):
    """Inside a transaction a read sees what was written in it; after a rollback it is gone."""
    replica.execute("INSERT INTO t (a) VALUES ('x')")
    assert replica.execute("SELECT count(*) FROM t").fetchone() == (2,)
    replica.rollback()
    assert replica.execute("SELECT count(*) FROM t").fetchone() == (1,)


def test_sync_fetches_what_others_wrote(replica, primary):
    """Another's write arrives with sync, and not before."""
    with primary:
        primary.execute("INSERT INTO t (a) VALUES ('other')")
    assert replica.execute("SELECT count(*) FROM t").fetchone() == (1,)
    replica.sync()
    assert replica.execute("SELECT count(*) FROM t").fetchone() == (2,)


def test_errors_are_the_primarys(replica):
    """A broken constraint on the primary is an IntegrityError here."""
    with pytest.raises(dbapi.IntegrityError, match="UNIQUE"):
        replica.execute("INSERT INTO t (id) VALUES (1)")
    assert not replica.in_transaction


def test_schema_changes_roll_back(replica):
    """DDL belongs to the transaction, as on any server."""
    replica.execute("CREATE TABLE u (a)")
    replica.rollback()
    assert replica.execute("SELECT name FROM sqlite_schema").fetchall() == [("t",)]


def test_reads_go_on_without_the_primary(replica, sqld):
    """With the primary gone reads go on; sync and writes say what is wrong."""
    sqld.stop()
    assert replica.execute("SELECT count(*) FROM t").fetchone() == (1,)
    with pytest.raises(ConnectionLost, match="cannot connect"):
        replica.sync()
    with pytest.raises(ConnectionLost):
        replica.execute("INSERT INTO t (a) VALUES (1)")


def test_one_library_reads_a_replica_file(replica, tmp_path):
    """Another library of SQLite in the process may not open the file of an open replica."""
    with pytest.raises(InterfaceError, match="sqlite3"):
        dbapi.connect(tmp_path / "replica.db", driver="libsql")


def test_a_new_replica_needs_its_primary(tmp_path):
    """Without the primary a new replica is refused, and no file is left."""
    with pytest.raises(ConnectionLost) as caught:
        dbapi.connect(tmp_path / "replica.db", sync_url="http://127.0.0.1:1")
    assert "\n" not in str(caught.value)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("database", "options", "says"),
    [
        (":memory:", {}, "file"),
        ("http://127.0.0.1:2", {}, "file"),
        ("state.db", {"sync_url": "other.db"}, "no server"),
        ("state.db", {"driver": "sqlite3"}, "driver"),
        ("state.db", {"read_only": True}, "read-only"),
    ],
)
def test_what_cannot_be_a_replica(database, options, says):
    """A replica is a local file of a server; anything else is refused before it is opened."""
    with pytest.raises(InterfaceError, match=says):
        dbapi.connect(database, **{"sync_url": "http://127.0.0.1:1", **options})


def test_a_forgotten_replica_gives_its_file_free(primary, sqld, tmp_path):
    """A replica that nobody closed gives its file free when it is collected."""
    dbapi.connect(tmp_path / "replica.db", sync_url=sqld.url).execute("SELECT 1")
    dbapi.connect(tmp_path / "replica.db", driver="sqlite3").close()


def test_a_missing_folder(sqld, tmp_path):
    """A replica in a folder that does not exist is one clear line."""
    with pytest.raises(TargetError, match="does not exist"):
        dbapi.connect(tmp_path / "no" / "replica.db", sync_url=sqld.url)
