"""The module interface of PEP 249, and what importing it costs."""

from __future__ import annotations

import datetime as dt
import pickle
import subprocess
import sys

import pytest

from harel_schema import dbapi, errors

EXCEPTIONS = [
    "Warning",
    "Error",
    "InterfaceError",
    "DatabaseError",
    "DataError",
    "OperationalError",
    "IntegrityError",
    "InternalError",
    "ProgrammingError",
    "NotSupportedError",
]


def test_globals():
    """The module tells its level and its parameter style."""
    assert (dbapi.apilevel, dbapi.paramstyle) == ("2.0", "qmark")


@pytest.mark.parametrize("name", EXCEPTIONS)
def test_exceptions(name):
    """Every exception class is in the module and on the connection, and is the package's own."""
    cls = getattr(errors, name)
    assert getattr(dbapi, name) is cls
    assert getattr(dbapi.Connection, name) is cls


def test_constructors():
    """The constructors give what SQLite stores: ISO 8601 text and bytes."""
    assert dbapi.Date(2026, 1, 2) == "2026-01-02"
    assert dbapi.Time(3, 4, 5) == "03:04:05"
    assert dbapi.Timestamp(2026, 1, 2, 3, 4, 5) == "2026-01-02 03:04:05"
    assert dbapi.Binary(b"a") == b"a"
    moment = dt.datetime(2026, 1, 2, 3, 4, 5).astimezone()
    ticks = moment.timestamp()
    assert dbapi.TimestampFromTicks(ticks) == "2026-01-02 03:04:05"
    assert (dbapi.DateFromTicks(ticks), dbapi.TimeFromTicks(ticks)) == ("2026-01-02", "03:04:05")


def test_type_objects():
    """A type object equals the Python types of its values and no others."""
    types = (str, bytes, int, float)
    assert [
        [each.__name__ for each in types if wanted == each]
        for wanted in (dbapi.STRING, dbapi.BINARY, dbapi.NUMBER, dbapi.ROWID, dbapi.DATETIME)
    ] == [["str"], ["bytes"], ["int", "float"], ["int"], []]
    assert len({dbapi.STRING, dbapi.BINARY, dbapi.NUMBER, dbapi.DATETIME, dbapi.ROWID}) == 5


def test_errors_can_be_pickled(any_connection):
    """An error keeps its class, message and code on the way through a process pool."""
    with pytest.raises(dbapi.OperationalError) as caught:
        any_connection.execute("SELECT * FROM nope")
    copy = pickle.loads(pickle.dumps(caught.value))
    assert (type(copy), str(copy), copy.code) == (
        dbapi.OperationalError,
        "no such table: nope",
        caught.value.code,
    )


def test_repr_names_database_and_driver(any_connection):
    """Repr tells what is connected to what, and whether it still is."""
    text = repr(any_connection)
    assert str(any_connection.target) in text
    assert any_connection.driver in text
    any_connection.close()
    assert "closed" in repr(any_connection)


def test_no_token_in_any_text(sqld_url):
    """A token is in no repr and no error."""
    connection = dbapi.connect(sqld_url, auth_token="s3cret-token")
    with pytest.raises(dbapi.Error) as caught:
        connection.execute("SELECT * FROM nope")
    texts = [repr(connection), repr(connection.target), str(caught.value), repr(vars(connection))]
    connection.close()
    assert "s3cret" not in "".join(texts)


def test_a_local_file_needs_no_http():
    """Opening a local file imports neither httpx nor SQLAlchemy, nor a driver it does not use."""
    code = """
import sys
from harel_schema import dbapi
dbapi.connect(":memory:").execute("SELECT 1")
heavy = {"httpx", "sqlalchemy", "alembic", "sqlglot", "libsql", "libsql_experimental"}
bad = heavy.intersection(sys.modules)
raise SystemExit(", ".join(bad) or 0)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_cursors_accept_size_hints(any_connection):
    """Setinputsizes and setoutputsize may be called, and do nothing."""
    cursor = any_connection.cursor()
    cursor.setinputsizes([1])
    cursor.setoutputsize(1, 0)
    assert cursor.execute("SELECT 1").fetchmany() == [(1,)]
