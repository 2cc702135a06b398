"""The server's errors arrive as the class that stdlib sqlite3 raises for the same statement."""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING

import pytest

from harel_schema import errors as e
from harel_schema.hrana import Client, Statement
from harel_schema.hrana.faults import from_server
from harel_schema.testing import sqld_server

if TYPE_CHECKING:
    from pathlib import Path

SETUP = (
    "CREATE TABLE p(id INTEGER PRIMARY KEY)",
    """CREATE TABLE t(id INTEGER PRIMARY KEY, u UNIQUE, n NOT NULL,
    c CHECK (0 < c AND c > -9), f REFERENCES p(id))""",
    "INSERT INTO t VALUES (1, 1, 1, 1, NULL)",
    "CREATE TRIGGER r BEFORE DELETE ON t BEGIN SELECT RAISE(ABORT, 'moved to elsewhere'); END",
)


@pytest.mark.parametrize(
    ("sql", "code"),
    [
        ("SELEC 1", "SQL_PARSE_ERROR"),
        ("SELECT * FROM nowhere", "SQLITE_UNKNOWN"),
        ("SELECT nope", "SQL_INPUT_ERROR"),
        ("SELECT abs(-9223372036854775808)", "SQLITE_UNKNOWN"),
        ("INSERT INTO t VALUES (1, 2, 2, 2, NULL)", "SQLITE_CONSTRAINT"),
        ("INSERT INTO t VALUES (2, 1, 2, 2, NULL)", "SQLITE_CONSTRAINT"),
        ("INSERT INTO t VALUES (2, 2, NULL, 2, NULL)", "SQLITE_CONSTRAINT"),
        ("INSERT INTO t VALUES (2, 2, 2, -1, NULL)", "SQLITE_CONSTRAINT"),
        ("INSERT INTO t VALUES (2, 2, 2, 2, 9)", "SQLITE_CONSTRAINT"),
        ("INSERT INTO t VALUES ('x', 2, 2, 2, NULL)", "SQLITE_MISMATCH"),
        ("DELETE FROM t", "SQLITE_CONSTRAINT"),
        ("SELECT zeroblob(2000000000)", "SQLITE_TOOBIG"),
        ("SELECT 1; SELECT 2", "SQL_MANY_STATEMENTS"),
    ],
)
def test_error_is_that_of_sqlite(client: Client, sql: str, code: str) -> None:
    """Class and text of an error are those of stdlib sqlite3; the server's code is kept."""
    oracle = sqlite3.connect(":memory:", isolation_level=None)
    oracle.execute("PRAGMA foreign_keys = ON")
    for statement in SETUP:
        oracle.execute(statement)
        client.execute(Statement(statement))
    with pytest.raises(sqlite3.Error) as expected:
        oracle.execute(sql)
    oracle.close()
    with pytest.raises(e.Error) as failure:
        client.execute(Statement(sql))
    assert type(failure.value).__name__ == type(expected.value).__name__
    assert failure.value.code == code
    if code.startswith("SQLITE"):
        assert failure.value.message == str(expected.value)


@pytest.mark.parametrize(
    ("statement", "kind", "code"),
    [
        (Statement(""), e.ProgrammingError, "SQL_NO_STATEMENT"),
        (Statement("SELECT ?"), e.ProgrammingError, "ARGS_INVALID"),
        (Statement("SELECT 1", (1,)), e.ProgrammingError, "ARGS_INVALID"),
        (Statement("SELECT :a", {"b": 1}), e.ProgrammingError, "ARGS_INVALID"),
        (Statement("ATTACH 'x' AS y"), e.NotSupportedError, "SQL_PARSE_ERROR"),
        (Statement("SELECT ?", ("x" * 6_000_000,)), e.DataError, "SQLITE_TOOBIG"),
        (Statement("VACUUM"), e.NotSupportedError, "SQL_PARSE_ERROR"),
    ],
)
def test_errors_of_the_server_alone(
    client: Client, statement: Statement, kind: type[e.Error], code: str
) -> None:
    """What only the server refuses has a class of its own."""
    with pytest.raises(kind) as failure:
        client.execute(statement)
    assert (type(failure.value), failure.value.code) == (kind, code)


def test_stale_snapshot_is_busy(client: Client) -> None:
    """A write on a snapshot that another writer has overtaken is BusyError, as in SQLite."""
    client.execute(Statement("CREATE TABLE t(a)"))
    with client.stream() as stream:
        stream.execute(Statement("BEGIN"))
        stream.execute(Statement("SELECT * FROM t"))
        client.execute(Statement("INSERT INTO t VALUES (1)"))
        with pytest.raises(e.BusyError, match="database is locked") as failure:
            stream.execute(Statement("INSERT INTO t VALUES (2)"))
    assert failure.value.code == "SQLITE_BUSY"


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("SQLITE_LOCKED", e.BusyError),
        ("TRANSACTION_BUSY", e.BusyError),
        ("TRANSACTION_TIMEOUT", e.TransactionLost),
        ("STREAM_EXPIRED", e.TransactionLost),
        ("SQLITE_INTERNAL", e.InternalError),
        ("SQLITE_NOTADB", e.NotADatabaseError),
        ("SQLITE_CORRUPT", e.DatabaseError),
        ("SQLITE_RANGE", e.InterfaceError),
        ("SQLITE_FULL", e.OperationalError),
        ("BLOCKED", e.OperationalError),
        ("SOMETHING_NEW", e.OperationalError),
        (None, e.OperationalError),
    ],
)
def test_codes_that_a_test_cannot_provoke(code: str | None, kind: type[e.Error]) -> None:
    """Every code of the server has the class that fits, an unknown one OperationalError."""
    assert type(from_server("what happened", code)) is kind


def test_errors_are_one_line() -> None:
    """Whatever the server writes, the error is one readable line."""
    line = str(from_server("SQLite error: a\n\tb\0" + "c" * 5000, "SQLITE_ERROR"))
    assert line.isprintable()
    assert line.startswith("a b c")
    assert len(line) < 1100


def test_replica_reports_the_primarys_error(tmp_path: Path) -> None:
    """A constraint that fails on the primary is IntegrityError through a replica server, too."""
    with (
        sqld_server(tmp_path / "primary", grpc=True) as primary,
        sqld_server(tmp_path / "replica", primary_grpc_url=primary.grpc_url) as replica,
        Client(replica.url) as client,
    ):
        client.execute(Statement("CREATE TABLE t(a UNIQUE)"))
        client.execute(Statement("INSERT INTO t VALUES (1)"))
        with pytest.raises(e.IntegrityError, match=r"^UNIQUE constraint failed: t\.a$"):
            client.execute(Statement("INSERT INTO t VALUES (1)"))
