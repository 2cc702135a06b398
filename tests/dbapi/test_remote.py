"""A connection to a server: one request a statement, and a lost transaction is always known."""

from __future__ import annotations

import threading

import pytest

from harel_schema import dbapi
from harel_schema.errors import ConnectionLost, TransactionLost
from tests.support.proxy import Cut, Drop, FaultyProxy


@pytest.fixture
def proxy(sqld):
    """Yield a proxy in front of a server that has an empty table t."""
    with dbapi.connect(sqld.url) as setup:
        setup.execute("CREATE TABLE t (a)")
    setup.close()
    with FaultyProxy(sqld.url) as proxy:
        yield proxy


@pytest.fixture
def connection(proxy, closing):
    """Return a connection through the proxy, its stream open."""
    connection = dbapi.connect(proxy.url)
    closing.callback(connection.close)
    connection.execute("SELECT 1")
    return connection


def requests(proxy, call):
    """Return how many requests `call` takes."""
    before = len(proxy.requests)
    call()
    return len(proxy.requests) - before


def test_requests(connection, proxy):
    """Every statement is one request, its BEGIN and what goes with it included."""
    sql = "INSERT INTO t VALUES (?)"
    assert requests(proxy, lambda: connection.execute(sql, (1,))) == 1
    assert requests(proxy, lambda: connection.execute("SELECT * FROM t").fetchall()) == 1
    assert requests(proxy, connection.commit) == 1
    assert requests(proxy, connection.commit) == 0
    assert requests(proxy, lambda: connection.in_transaction) == 0
    assert requests(proxy, lambda: connection.executemany(sql, [(1,)] * 900)) == 2
    assert requests(proxy, connection.rollback) == 1
    script = "BEGIN; INSERT INTO t VALUES (2); CREATE TABLE u (a); COMMIT"
    assert requests(proxy, lambda: connection.executescript(script)) == 1


def test_the_first_statement_is_one_request(proxy, closing):
    """Opening takes no request, and the first statement of a stream is one like any other."""
    connection = dbapi.connect(proxy.url)
    closing.callback(connection.close)
    assert proxy.requests == []
    assert requests(proxy, lambda: connection.execute("INSERT INTO t VALUES (1)")) == 1


def test_a_restarted_server_loses_the_transaction(sqld, closing):
    """After the stream is gone nothing more is sent until rollback, COMMIT least of all."""
    connection = dbapi.connect(sqld.url)
    closing.callback(connection.close)
    connection.execute("CREATE TABLE t (a)")
    sqld.restart()
    with pytest.raises((TransactionLost, ConnectionLost)):
        connection.execute("INSERT INTO t VALUES (1)")
    for call in (
        connection.commit,
        connection.begin,
        lambda: connection.execute("SELECT 1"),
        lambda: connection.executescript("SELECT 1"),
        lambda: connection.executemany("INSERT INTO t VALUES (?)", [(1,)]),
    ):
        with pytest.raises(TransactionLost, match="roll back"):
            call()
        assert connection.in_transaction
    connection.rollback()
    assert not connection.in_transaction
    assert connection.execute("SELECT count(*) FROM sqlite_schema").fetchone() == (0,)


def test_an_idle_connection_survives_the_end_of_its_stream(sqld, closing):
    """Outside of a transaction a dropped stream is replaced without a word, settings included."""
    connection = dbapi.connect(sqld.url, isolation_level=None)
    closing.callback(connection.close)
    connection.execute("PRAGMA foreign_keys = ON")
    connection.execute("CREATE TABLE t (a)")
    sqld.restart()
    connection.execute("INSERT INTO t VALUES (1)")
    assert connection.execute("SELECT a FROM t").fetchall() == [(1,)]
    assert connection.execute("PRAGMA foreign_keys").fetchone() == (1,)


def test_a_stolen_transaction_is_known(sqld, closing):
    """A transaction that another writer took over fails whole: nothing of it is ever applied."""
    holder, thief = dbapi.connect(sqld.url), dbapi.connect(sqld.url, check_same_thread=False)
    closing.callback(holder.close)
    closing.callback(thief.close)
    with holder:
        holder.execute("CREATE TABLE t (a)")
    holder.execute("INSERT INTO t VALUES ('first')")
    # The server gives the lock to whoever waits once the transaction is 5 s old.
    thief.execute("INSERT INTO t VALUES ('thief')")
    thief.commit()
    with pytest.raises(TransactionLost):
        holder.execute("INSERT INTO t VALUES ('second')")
    with pytest.raises(TransactionLost):
        holder.commit()
    holder.rollback()
    assert holder.execute("SELECT a FROM t").fetchall() == [("thief",)]


def test_a_stolen_transaction_is_known_to_commit(sqld, closing):
    """COMMIT as the first call after the theft fails, and says why."""
    holder, thief = dbapi.connect(sqld.url), dbapi.connect(sqld.url)
    closing.callback(holder.close)
    closing.callback(thief.close)
    holder.execute("CREATE TABLE t (a)")
    thief.execute("CREATE TABLE u (a)")
    thief.commit()
    with pytest.raises(TransactionLost):
        holder.commit()
    holder.rollback()
    assert holder.execute("SELECT name FROM sqlite_schema").fetchall() == [("u",)]


def test_a_commit_without_an_answer(connection, proxy):
    """A COMMIT whose answer is lost is `ConnectionLost`, perhaps applied, and the end of it."""
    connection.execute("INSERT INTO t VALUES (1)")
    proxy.script(Cut(after=0))
    with pytest.raises(ConnectionLost) as caught:
        connection.commit()
    assert caught.value.sent
    assert not connection.in_transaction
    assert connection.execute("SELECT a FROM t").fetchall() == [(1,)]


def test_a_statement_without_an_answer(connection, proxy):
    """A statement whose answer is lost takes its transaction with it; it is not sent again."""
    connection.execute("INSERT INTO t VALUES (1)")
    proxy.script(Cut(after=0))
    with pytest.raises(ConnectionLost):
        connection.execute("INSERT INTO t VALUES (2)")
    before = len(proxy.requests)
    with pytest.raises(TransactionLost):
        connection.commit()
    assert len(proxy.requests) == before
    connection.rollback()
    assert connection.execute("SELECT a FROM t").fetchall() == []


def test_a_read_is_repeated(connection, proxy):
    """Outside of a transaction a read whose answer is lost is read again."""
    proxy.script(Cut(after=0))
    assert connection.execute("SELECT count(*) FROM t").fetchone() == (0,)


def test_a_write_is_not_repeated(connection, proxy):
    """A write whose answer is lost is never sent again."""
    connection.isolation_level = None
    proxy.script(Cut(after=0))
    with pytest.raises(ConnectionLost) as caught:
        connection.execute("INSERT INTO t VALUES (1)")
    assert caught.value.sent
    assert connection.execute("SELECT a FROM t").fetchall() == [(1,)]


def test_rolling_back_what_is_gone(connection, proxy):
    """A rollback whose answer is lost has done what it was asked for."""
    connection.execute("INSERT INTO t VALUES (1)")
    proxy.script(Drop())
    connection.rollback()
    assert not connection.in_transaction


def test_results_of_any_size(connection):
    """A result beyond the server's 10 MB for a response arrives whole, also beside other reads."""
    connection.executemany("INSERT INTO t VALUES (?)", [("x" * 1_000_000,) for _ in range(12)])
    cursor = connection.execute("SELECT rowid, a FROM t")
    assert cursor.fetchone()[0] == 1
    assert connection.execute("SELECT count(*) FROM t").fetchone() == (12,)
    rest = cursor.fetchall()
    assert [len(a) for _, a in rest] == [1_000_000] * 11
    assert connection.in_transaction
    connection.rollback()


def test_a_large_result_left_behind(connection, sqld):
    """A large result that nobody reads to its end keeps no lock and no stream."""
    connection.executemany("INSERT INTO t VALUES (?)", [("x" * 1_000_000,) for _ in range(12)])
    connection.commit()
    cursor = connection.execute("SELECT a FROM t")
    cursor.fetchone()
    cursor.close()
    del cursor
    connection.execute("DELETE FROM t")
    connection.commit()
    cursor = connection.execute("SELECT a FROM t")
    assert cursor.fetchall() == []


def test_read_only(proxy):
    """A read-only connection refuses writes before they are sent."""
    connection = dbapi.connect(proxy.url, read_only=True)
    sets = ("PRAGMA user_version = 3", "PRAGMA user_version(3)", "PRAGMA main.user_version(3)")
    for sql in ("INSERT INTO t VALUES (1)", "CREATE TABLE u (a)", *sets):
        with pytest.raises(dbapi.OperationalError, match="read-only"):
            connection.execute(sql)
    assert proxy.requests == []
    assert connection.execute("SELECT * FROM t").fetchall() == []
    for asked in ("table_info(t)", "main.table_info(t)", "table_info = t"):
        assert connection.execute(f"PRAGMA {asked}").fetchone()[1] == "a"
    assert connection.execute("PRAGMA main.user_version").fetchone() == (0,)
    connection.close()


def test_an_unreachable_server():
    """A server that is not there is one clear line, and nothing was sent."""
    connection = dbapi.connect("http://127.0.0.1:1")
    with pytest.raises(ConnectionLost) as caught:
        connection.execute("SELECT 1")
    connection.close()
    assert not caught.value.sent
    assert "\n" not in str(caught.value)


def test_a_forgotten_connection_does_not_talk(proxy, closing):
    """A connection that nobody closed sends nothing when it is collected."""
    connection = dbapi.connect(proxy.url)
    connection.execute("SELECT 1")
    before = len(proxy.requests)
    del connection
    assert len(proxy.requests) == before


def test_connections_of_many_threads(sqld, closing):
    """Threads with a connection each write side by side; every row is there once."""
    with dbapi.connect(sqld.url) as setup:
        setup.execute("CREATE TABLE t (a, b)")
    setup.close()

    def write(name):
        connection = dbapi.connect(sqld.url, timeout=30)
        for at in range(10):
            with connection:
                connection.execute("INSERT INTO t VALUES (?, ?)", (name, at))
        connection.close()

    threads = [threading.Thread(target=write, args=(name,)) for name in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    check = dbapi.connect(sqld.url)
    closing.callback(check.close)
    rows = check.execute("SELECT a, count(DISTINCT b), count(*) FROM t GROUP BY a").fetchall()
    assert rows == [(name, 10, 10) for name in range(4)]


def test_sync_and_interrupt_are_for_others(connection):
    """A server has nothing to sync and cannot be interrupted."""
    for call in (connection.sync, connection.interrupt):
        with pytest.raises(dbapi.NotSupportedError):
            call()
