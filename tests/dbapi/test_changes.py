"""`execute_all`: several statements of a transaction in one call, each as `execute` runs it."""

from __future__ import annotations

import datetime as dt
from enum import IntEnum, StrEnum

import pytest

from harel_schema.errors import DataError, IntegrityError, OperationalError, ProgrammingError
from tests.dbapi.test_values import EDGES, identity

INSERT = "INSERT INTO t VALUES (?, ?)"


class Number(IntEnum):
    """A subclass of int that does not fit in 32 bits."""

    LARGE = 2**40


class Name(StrEnum):
    """A subclass of str."""

    A = "a"


@pytest.fixture
def connection(any_connection):
    """Return a connection in a transaction, with a table and a trigger that refuses."""
    any_connection.execute("CREATE TABLE t (a INTEGER PRIMARY KEY, b)")
    any_connection.execute(
        "CREATE TRIGGER refuse BEFORE INSERT ON t WHEN new.b = 'refused' "
        "BEGIN SELECT RAISE(ABORT, 'it is refused'); END"
    )
    any_connection.begin("IMMEDIATE")
    return any_connection


def test_each_statement_tells_what_it_did(connection) -> None:
    """Rows changed, last rowid and rows, one effect a statement."""
    effects = connection.execute_all(
        [
            ("INSERT INTO t VALUES (?, ?), (?, ?)", (3, "x", 4, "y")),
            ("UPDATE t SET b = ? WHERE a < ?", ("z", 10)),
            ("SELECT a, b FROM t WHERE b = ?", ("z",)),
            ("DELETE FROM t WHERE a = ? RETURNING b", (4,)),
            ("WITH n(x) AS (VALUES (5)) INSERT INTO t SELECT x, ? FROM n", (b"\0",)),
            ("UPDATE t SET b = 1 WHERE a = 99", ()),
        ]
    )
    assert [effect.rowcount for effect in effects] == [2, 2, -1, 1, 1, 0]
    assert (effects[0].lastrowid, effects[4].lastrowid) == (4, 5)
    assert effects[2].rows == [(3, "z"), (4, "z")]
    assert effects[3].rows == [("z",)]
    assert connection.in_transaction


def test_values_arrive_as_by_execute(connection) -> None:
    """Every edge of every type, and subclasses of them, are stored to the bit."""
    values = [*EDGES, True, Number.LARGE, Name.A, bytearray(b"\0a"), memoryview(b"\xff")]
    effects = connection.execute_all([(INSERT, (at, value)) for at, value in enumerate(values)])
    assert [effect.rowcount for effect in effects] == [1] * len(values)
    together = connection.execute("SELECT b FROM t ORDER BY a").fetchall()
    connection.execute("DELETE FROM t")
    for at, value in enumerate(values):
        connection.execute(INSERT, (at, value))
    alone = connection.execute("SELECT b FROM t ORDER BY a").fetchall()
    assert [identity(b) for (b,) in together] == [identity(b) for (b,) in alone]


@pytest.mark.parametrize(("key", "count"), [(1, 2), (2, 1)])
def test_the_first_may_decide(connection, key, count) -> None:
    """With `must_change` nothing follows a first statement that changed no row."""
    connection.execute(INSERT, (1, "x"))
    statements = [("UPDATE t SET b = 'y' WHERE a = ?", (key,)), ("DELETE FROM t WHERE a = 9", ())]
    assert len(connection.execute_all(statements, must_change=True)) == count
    assert len(connection.execute_all(statements)) == 2


@pytest.mark.parametrize(
    ("sql", "parameters", "error"),
    [
        (INSERT, (2, "\ud800"), DataError),
        (INSERT, (2, 2**63), DataError),
        (INSERT, (2, dt.date(2020, 1, 1)), ProgrammingError),
        (INSERT, (2,), ProgrammingError),
        (INSERT, (2, 3, 4), ProgrammingError),
        (INSERT, "ab", ProgrammingError),
        (INSERT, {"a": 1, "b": 2}, ProgrammingError),
        (f"{INSERT}; {INSERT}", (2, 3), ProgrammingError),
        (INSERT, (1, "again"), IntegrityError),
        (INSERT, (2, "refused"), IntegrityError),
        ("INSERT INTO missing VALUES (?)", (1,), OperationalError),
    ],
)
def test_a_failure_is_that_of_execute(connection, sql, parameters, error) -> None:
    """The same class and message, what came before stays, and nothing after it is run."""
    connection.execute(INSERT, (1, "x"))
    with pytest.raises(error) as alone:
        connection.execute(sql, parameters)
    before, after = (INSERT, (7, "before")), (INSERT, (8, "after"))
    with pytest.raises(error) as among:
        connection.execute_all([before, (sql, parameters), after])
    assert (type(among.value), str(among.value)) == (type(alone.value), str(alone.value))
    assert connection.execute("SELECT a FROM t").fetchall() == [(1,), (7,)]
    assert connection.in_transaction


def test_a_read_only_connection_refuses(open_any) -> None:
    """What `execute` refuses on a read-only connection is refused in one call too."""
    with open_any() as writer:
        writer.execute("CREATE TABLE t (a, b)")
    reader = open_any(read_only=True, isolation_level=None)
    with pytest.raises(OperationalError):
        reader.execute_all([(INSERT, (1, 2))])
