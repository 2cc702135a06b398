"""A transaction begins where we say, in the mode we say, and never stays behind."""

from __future__ import annotations

import pytest

from harel_schema import dbapi
from harel_schema.errors import BusyError

CHANGES = [
    "INSERT INTO t VALUES (1)",
    "REPLACE INTO t VALUES (1)",
    "/* c */ DELETE FROM t",
    "WITH x AS (SELECT 1) INSERT INTO t SELECT * FROM x",
    "CREATE TABLE u (a)",
    "ALTER TABLE t ADD COLUMN b",
    "DROP TABLE t",
    "CREATE INDEX i ON t (a)",
]
OTHERS = [
    "SELECT * FROM t",
    "WITH x AS (SELECT 1) SELECT * FROM x",
    "EXPLAIN DELETE FROM t",
    "PRAGMA user_version",
    "",
]


@pytest.fixture
def connection(open_any):
    """Return a connection of every kind, to a database with an empty table t."""
    connection = open_any()
    connection.execute("CREATE TABLE t (a)")
    connection.commit()
    return connection


@pytest.mark.parametrize("sql", CHANGES)
def test_a_change_begins_a_transaction(connection, sql):
    """A statement that changes something, DDL included, begins a transaction that rolls back."""
    before = connection.execute("SELECT sql FROM sqlite_schema").fetchall()
    connection.execute(sql)
    assert connection.in_transaction
    connection.rollback()
    assert not connection.in_transaction
    assert connection.execute("SELECT sql FROM sqlite_schema").fetchall() == before
    assert connection.execute("SELECT count(*) FROM t").fetchone() == (0,)


@pytest.mark.parametrize("sql", OTHERS)
def test_a_read_begins_nothing(connection, sql):
    """A read or a PRAGMA begins no transaction."""
    connection.execute(sql).fetchall()
    assert not connection.in_transaction


@pytest.mark.parametrize("sql", CHANGES)
def test_without_isolation_level_nothing_begins(connection, sql):
    """With isolation_level None a statement commits by itself."""
    connection.isolation_level = None
    connection.execute(sql)
    assert not connection.in_transaction


def test_a_transaction_takes_the_lock_when_it_begins(open_local):
    """IMMEDIATE, the default, holds the write lock from its first statement on."""
    one, two = open_local(), open_local(timeout=0)
    one.execute("CREATE TABLE t (a)")
    one.commit()
    one.execute("UPDATE t SET a = 1")
    with pytest.raises(BusyError):
        two.begin()
    one.rollback()
    two.begin()
    two.rollback()


def test_deferred_takes_no_lock(open_any):
    """`begin("DEFERRED")` leaves the write lock to others until it writes."""
    one, two = open_any(isolation_level="DEFERRED"), open_any(timeout=0)
    one.begin()
    two.begin("IMMEDIATE")
    two.rollback()
    one.rollback()


def test_begin_in_a_transaction_is_refused(connection):
    """A second BEGIN is an error, and the first transaction goes on."""
    connection.begin()
    with pytest.raises(dbapi.OperationalError):
        connection.begin()
    assert connection.in_transaction


@pytest.mark.parametrize("mode", ["", "SERIALIZABLE", "immediate; --"])
def test_unknown_isolation_level(connection, mode):
    """A mode that SQLite has not is refused."""
    with pytest.raises(dbapi.ProgrammingError, match="isolation level"):
        connection.isolation_level = mode


def test_commit_and_rollback_outside_a_transaction(connection):
    """Commit and rollback do nothing when nothing is open."""
    connection.commit()
    connection.rollback()
    assert not connection.in_transaction


def test_context_manager_commits(open_any):
    """Leaving the block commits, and the connection stays open."""
    one, two = open_any(), open_any()
    with one:
        one.execute("CREATE TABLE t (a)")
    assert two.execute("SELECT * FROM t").fetchall() == []
    assert one.execute("SELECT 1").fetchone() == (1,)


def test_context_manager_rolls_back(connection):
    """An error rolls back and comes out as it is."""

    def fail():
        with connection:
            connection.execute("INSERT INTO t VALUES (1)")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert not connection.in_transaction
    assert connection.execute("SELECT * FROM t").fetchall() == []


def test_context_manager_shows_the_first_error(connection):
    """An error of the rollback does not cover the one that led to it."""

    def fail():
        with connection:
            connection.close()
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()


def test_a_failed_first_statement_leaves_no_transaction(connection):
    """A statement that fails takes the transaction that was begun for it with it."""
    for sql in ("INSERT INTO t VALUES (1, 2)", "INSERT INTO nope VALUES (1)", "DROP TABLE nope"):
        with pytest.raises(dbapi.OperationalError):
            connection.execute(sql)
        assert not connection.in_transaction
    with pytest.raises(dbapi.OperationalError):
        connection.executemany("INSERT INTO t VALUES (abs(?))", [(-(2**63),), (1,)])
    assert not connection.in_transaction


def test_a_failed_later_statement_leaves_the_transaction(connection):
    """What came before a failed statement is still there to be committed."""
    connection.execute("INSERT INTO t VALUES (1)")
    with pytest.raises(dbapi.OperationalError):
        connection.execute("INSERT INTO t VALUES (abs(-9223372036854775808))")
    assert connection.in_transaction
    connection.commit()
    assert connection.execute("SELECT a FROM t").fetchall() == [(1,)]


def test_a_rollback_by_sqlite_is_seen(connection):
    """After ON CONFLICT ROLLBACK the connection says that no transaction is open."""
    connection.execute("CREATE UNIQUE INDEX i ON t (a)")
    connection.commit()
    connection.execute("INSERT INTO t VALUES (1)")
    with pytest.raises(dbapi.IntegrityError):
        connection.execute("INSERT OR ROLLBACK INTO t VALUES (1)")
    assert not connection.in_transaction
    connection.commit()
    assert connection.execute("SELECT a FROM t").fetchall() == []


def test_savepoints(connection):
    """A rollback to a savepoint leaves the transaction and what came before."""
    connection.execute("INSERT INTO t VALUES (1)")
    connection.execute("SAVEPOINT s")
    connection.execute("INSERT INTO t VALUES (2)")
    connection.execute("ROLLBACK TO s")
    connection.execute("RELEASE s")
    connection.commit()
    assert connection.execute("SELECT a FROM t").fetchall() == [(1,)]


def test_closing_rolls_back(open_any):
    """What was not committed is gone after close, and the lock with it."""
    one, two = open_any(), open_any(timeout=1)
    one.execute("CREATE TABLE t (a)")
    one.close()
    two.begin()
    assert two.execute("SELECT count(*) FROM sqlite_schema").fetchone() == (0,)


def test_a_closed_connection_says_so(any_connection):
    """Every call on a closed connection or cursor is an `InterfaceError`; close may be repeated."""
    cursor = any_connection.cursor()
    kept = any_connection.execute("SELECT 1")
    cursor.close()
    with pytest.raises(dbapi.InterfaceError):
        cursor.execute("SELECT 1")
    any_connection.close()
    any_connection.close()
    for call in (
        any_connection.cursor,
        any_connection.commit,
        any_connection.rollback,
        any_connection.begin,
        kept.fetchone,
        lambda: any_connection.execute("SELECT 1"),
        lambda: any_connection.in_transaction,
    ):
        with pytest.raises(dbapi.InterfaceError, match="closed"):
            call()
