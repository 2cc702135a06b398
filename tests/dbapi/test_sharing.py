"""Threads and forks: honest refusals instead of hangs."""

from __future__ import annotations

import os
import signal
import threading

import pytest

from harel_schema import dbapi
from harel_schema.errors import InterfaceError


def in_thread(call):
    """Return what `call` gives, or raises, in another thread."""
    found = []

    def run():
        try:
            found.append(call())
        except dbapi.Error as error:
            found.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join(30)
    return found[0]


def test_threadsafety_is_told():
    """The module says that threads may share it, but not a connection."""
    assert dbapi.threadsafety == 1


def test_another_thread_is_refused(open_any):
    """By default a connection belongs to the thread that opened it."""
    connection = open_any()
    error = in_thread(lambda: connection.execute("SELECT 1"))
    assert isinstance(error, dbapi.ProgrammingError)
    assert "thread" in str(error)


def test_a_connection_can_move_between_threads(open_any):
    """With check_same_thread=False threads may take turns, in the middle of a transaction too."""
    connection = open_any(check_same_thread=False)
    connection.execute("CREATE TABLE t (a)")
    in_thread(lambda: connection.execute("INSERT INTO t VALUES (1)"))
    assert in_thread(lambda: connection.execute("SELECT a FROM t").fetchall()) == [(1,)]
    in_thread(connection.commit)
    assert not connection.in_transaction


def test_two_threads_at_once_are_refused(open_any):
    """A second thread that calls while the first is inside is refused, not let in."""
    connection = open_any(check_same_thread=False)
    connection.execute("CREATE TABLE t (a)")
    errors = []

    def rows():
        yield (1,)
        errors.append(in_thread(lambda: connection.execute("SELECT 1")))

    connection.executemany("INSERT INTO t VALUES (?)", rows())
    assert isinstance(errors[0], dbapi.ProgrammingError)
    assert connection.execute("SELECT a FROM t").fetchall() == [(1,)]


def test_interrupt(tmp_path):
    """With sqlite3 another thread can stop a statement."""
    connection = dbapi.connect(":memory:")
    endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n) SELECT sum(i) FROM n"
    stop = threading.Event()

    def interrupt():
        # The statement may not have begun yet: an interrupt before it has no effect.
        while not stop.wait(0.01):
            connection.interrupt()

    thread = threading.Thread(target=interrupt)
    thread.start()
    with pytest.raises(dbapi.OperationalError) as caught:
        connection.execute(endless)
    stop.set()
    thread.join()
    connection.close()
    assert caught.value.code == "SQLITE_INTERRUPT"


@pytest.mark.parametrize("driver", ["libsql", "libsql_experimental"])
def test_interrupt_where_there_is_none(driver):
    """A driver that cannot interrupt says so."""
    connection = dbapi.connect(":memory:", driver=driver)
    with pytest.raises(dbapi.NotSupportedError, match="sqlite3"):
        connection.interrupt()
    connection.close()


def in_fork(call):
    """Run `call` in a forked child; return its exit code, or kill it after 30 s and fail."""
    child = os.fork()
    if child == 0:
        # Not to be seen by pytest: the child must never return into the test run.
        code = 99
        try:
            signal.alarm(30)
            code = call()
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_fork_is_refused(open_any):
    """A forked child is refused at once, may close, and does the parent no harm."""
    connection = open_any()
    connection.execute("CREATE TABLE t (a)")
    connection.executemany("INSERT INTO t VALUES (?)", [(i,) for i in range(1000)])
    cursor = connection.execute("SELECT a FROM t")
    assert cursor.fetchone() == (0,)

    def child():
        refused = 0
        for call in (
            lambda: connection.execute("SELECT 1"),
            connection.commit,
            connection.rollback,
            cursor.fetchall,
            lambda: connection.in_transaction,
        ):
            try:
                call()
            except InterfaceError as error:
                refused += "fork" in str(error)
        connection.close()
        return refused

    assert in_fork(child) == 5
    connection.commit()
    assert len(cursor.fetchall()) == 999
    assert connection.execute("SELECT count(*) FROM t").fetchone() == (1000,)


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_fork_opens_the_file_with_another_library_only(open_local, tmp_path, driver):
    """The parent's library brought its locks along, and would take none for the child."""
    connection = open_local()
    connection.execute("CREATE TABLE t (a)")
    connection.commit()
    other = "libsql" if driver == "sqlite3" else "sqlite3"

    def child():
        with pytest.raises(InterfaceError, match="forked"):
            dbapi.connect(tmp_path / "state.db", driver=driver)
        own = dbapi.connect(tmp_path / "state.db", driver=other)
        own.execute("INSERT INTO t VALUES (1)")
        own.commit()
        own.close()
        return 0

    assert in_fork(child) == 0
    assert connection.execute("SELECT a FROM t").fetchall() == [(1,)]


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_fork_opens_what_its_parent_has_closed(open_local, tmp_path, driver):
    """Nothing of the parent's locks is left then."""
    connection = open_local()
    connection.execute("CREATE TABLE t (a)")
    connection.commit()
    connection.close()

    def child():
        own = dbapi.connect(tmp_path / "state.db", driver=driver)
        own.execute("INSERT INTO t VALUES (1)")
        own.commit()
        own.close()
        return 0

    assert in_fork(child) == 0
    assert open_local().execute("SELECT a FROM t").fetchall() == [(1,)]
