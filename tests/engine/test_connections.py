"""Connections that break, and connections that are someone else's."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from sqlalchemy import event
from sqlalchemy.exc import DBAPIError, OperationalError, PendingRollbackError

from harel_schema import dbapi
from harel_schema.engine import Dialect, create_engine, from_connection
from harel_schema.errors import (
    BusyError,
    ConnectionLost,
    InterfaceError,
    RequestTimeout,
    TransactionLost,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from sqlalchemy import Engine

    from harel_schema.testing import Server


@pytest.mark.parametrize(
    "error",
    [
        ConnectionLost("no answer", sent=True),
        RequestTimeout("no answer", sent=True),
        TransactionLost("gone"),
    ],
)
def test_a_connection_that_is_gone_is_given_up(error: dbapi.Error) -> None:
    """SQLAlchemy throws a connection away when it, or the transaction on it, is gone."""
    assert Dialect().is_disconnect(error, None, None)


def test_a_statement_that_fails_leaves_the_connection() -> None:
    """A lock that was not to be had is no reason to throw the connection away."""
    assert not Dialect().is_disconnect(BusyError("locked"), None, None)


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
@pytest.mark.parametrize("pre_ping", [True, False])
def test_a_forked_worker_gets_connections_of_its_own(
    sqld: Server, caplog: pytest.LogCaptureFixture, *, pre_ping: bool
) -> None:
    """After a fork the pool gives up the parent's connection: with a ping in silence, else once."""
    engine = create_engine(sqld.url, pool_pre_ping=pre_ping)
    with engine.begin() as connection:
        connection.exec_driver_sql("CREATE TABLE t (a)")
    child = os.fork()
    if child == 0:
        failures = 0
        try:
            for _ in range(3):
                try:
                    with engine.begin() as connection:
                        connection.exec_driver_sql("INSERT INTO t VALUES (1)")
                except DBAPIError as error:
                    failures += 1 if error.connection_invalidated else 10
            failures += 100 * len(caplog.records)
        finally:
            os._exit(failures)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == (0 if pre_ping else 1)
    with engine.connect() as connection:
        count = connection.exec_driver_sql("SELECT count(*) FROM t").scalar()
    assert count == (3 if pre_ping else 2)
    engine.dispose()


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
@pytest.mark.parametrize("disposed", [True, False])
def test_a_forked_worker_may_open_a_file_that_no_pool_has_open(
    tmp_path: Path, *, disposed: bool
) -> None:
    """What a pool of the parent has open is refused in the child, before its locks fail it."""
    engine = create_engine(tmp_path / "state.db")
    with engine.begin() as connection:
        connection.exec_driver_sql("CREATE TABLE t (a)")
    if disposed:
        engine.dispose()
    child = os.fork()
    if child == 0:
        code = 99
        try:
            engine.dispose(close=False)
            with engine.begin() as connection:
                connection.exec_driver_sql("INSERT INTO t VALUES (1)")
            code = 0
        except DBAPIError as error:
            code = 1 if "forked" in str(error) else 98
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == (0 if disposed else 1)
    with engine.connect() as connection:
        count = connection.exec_driver_sql("SELECT count(*) FROM t").scalar()
    assert count == int(disposed)
    engine.dispose()


def test_an_engine_works_again_after_the_server_did_not(sqld: Server) -> None:
    """A connection that broke fails once, and the next one from the pool works."""
    engine = create_engine(sqld.url)
    with engine.connect() as connection:
        connection.exec_driver_sql("SELECT 1")
        sqld.kill()
        with pytest.raises(OperationalError) as caught:
            connection.exec_driver_sql("SELECT 1")
        assert caught.value.connection_invalidated
    sqld.start()
    with engine.connect() as connection:
        assert connection.exec_driver_sql("SELECT 1").scalar_one() == 1
    engine.dispose()


def test_pre_ping_replaces_a_connection_that_broke_in_the_pool(sqld: Server) -> None:
    """With `pool_pre_ping` a server's restart is not seen by what comes after it."""
    engine = create_engine(sqld.url, pool_pre_ping=True)
    with engine.connect() as connection:
        connection.exec_driver_sql("SELECT 1")
    sqld.restart()
    with engine.connect() as connection:
        assert connection.exec_driver_sql("SELECT 1").scalar_one() == 1
    engine.dispose()


def test_a_lost_transaction_runs_nothing_more(sqld: Server) -> None:
    """After the server took a transaction away, nothing runs until it is rolled back."""
    engine = create_engine(sqld.url)
    with engine.connect() as connection:
        connection.exec_driver_sql("CREATE TABLE t (a)")
        sqld.restart()
        with pytest.raises(DBAPIError) as caught:
            connection.exec_driver_sql("INSERT INTO t VALUES (1)")
        assert caught.value.connection_invalidated
        with pytest.raises(PendingRollbackError):
            connection.exec_driver_sql("CREATE TABLE u (a)")
        connection.rollback()
        assert connection.exec_driver_sql("SELECT count(*) FROM sqlite_schema").scalar_one() == 0
    engine.dispose()


def test_a_database_in_memory_lives_as_long_as_its_engine() -> None:
    """Every connection of a thread to a database in memory is to the same one."""
    engine = create_engine(":memory:")
    with engine.begin() as connection:
        connection.exec_driver_sql("CREATE TABLE t (a)")
    with engine.connect() as connection:
        assert connection.exec_driver_sql("SELECT count(*) FROM t").scalar_one() == 0
    engine.dispose()


def test_regexp_is_pythons_where_the_driver_takes_functions() -> None:
    """`sqlite3` has the REGEXP operator that SQLAlchemy's own dialect brings; NULL stays NULL."""
    engine = create_engine(":memory:", connect_args={"driver": "sqlite3"})
    with engine.connect() as connection:
        query = "SELECT 'harel' REGEXP '^h.+l$', 'harel' REGEXP 'x', NULL REGEXP 'x'"
        assert connection.exec_driver_sql(query).one() == (1, 0, None)
    engine.dispose()


@pytest.fixture(params=["sqlite3", "libsql", "sqld"])
def connection(request: pytest.FixtureRequest, tmp_path: Path) -> dbapi.Connection:
    """Return an open connection in the mode of a store: no transaction begins by itself."""
    if request.param == "sqld":
        return dbapi.connect(request.getfixturevalue("sqld_url"), isolation_level=None)
    return dbapi.connect(tmp_path / "state.db", driver=request.param, isolation_level=None)


def test_an_engine_over_a_connection_never_closes_it(connection: dbapi.Connection) -> None:
    """A borrowed connection comes back open, outside a transaction and with its own level."""
    engine = from_connection(connection)
    with engine.begin() as borrowed:
        borrowed.exec_driver_sql("CREATE TABLE t (a)")
        assert connection.in_transaction
    with engine.connect() as borrowed:
        borrowed.exec_driver_sql("CREATE TABLE u (a)")
    engine.dispose()
    assert connection.isolation_level is None
    assert not connection.in_transaction
    assert connection.execute("SELECT name FROM sqlite_schema").fetchall() == [("t",)]
    connection.close()


def test_an_engine_over_a_connection_opens_no_other(connection: dbapi.Connection) -> None:
    """Every connection of the engine is the one that was lent."""
    engine = from_connection(connection)
    seen: list[object] = []
    event.listen(engine, "connect", lambda opened, _record: seen.append(opened))
    for _ in range(2):
        with engine.connect() as borrowed:
            assert borrowed.connection.dbapi_connection is connection
    assert seen == [connection]
    engine.dispose()
    connection.close()


def test_a_connection_in_a_transaction_is_not_lent(connection: dbapi.Connection) -> None:
    """A transaction that is open would be rolled back by the engine, so it is refused."""
    connection.begin()
    with pytest.raises(InterfaceError, match="in a transaction"):
        from_connection(connection)
    connection.close()


def test_a_read_only_engine_reads_and_writes_nothing(
    make_engine: Callable[..., Engine],
) -> None:
    """`read_only` refuses every write, in whatever mode its transactions begin."""
    with make_engine().begin() as connection:
        connection.exec_driver_sql("CREATE TABLE t (a)")
    engine = make_engine(connect_args={"read_only": True})
    with engine.connect() as connection:
        assert connection.exec_driver_sql("SELECT count(*) FROM t").scalar_one() == 0
    with pytest.raises(DBAPIError), engine.begin() as connection:
        connection.exec_driver_sql("INSERT INTO t VALUES (1)")


@pytest.mark.parametrize("driver", ["libsql", "libsql_experimental"])
def test_nothing_but_our_own_output_is_on_stdout(driver: str, tmp_path: Path) -> None:
    """No driver that the dialect brings along writes its log to stdout, whatever is asked of it."""
    script = (
        "from harel_schema.engine import create_engine\n"
        f"target, arguments = {str(tmp_path / 'state.db')!r}, {{'driver': {driver!r}}}\n"
        "engine = create_engine(target, connect_args=arguments)\n"
        "with engine.begin() as connection:\n"
        "    connection.exec_driver_sql('CREATE TABLE t (a)')\n"
        "print('done')\n"
    )
    environment = os.environ | {"RUST_LOG": "trace", "PYTHONPATH": os.pathsep.join(sys.path)}
    output = subprocess.check_output([sys.executable, "-c", script], env=environment, text=True)
    assert output == "done\n"
