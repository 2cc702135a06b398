"""A database on a server is read as a local one is, and in one request."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from harel_schema import dbapi, introspect, migrate, transfer
from harel_schema.drift import check, diff
from harel_schema.errors import AuthError, ConnectionLost
from harel_schema.sql import REVISION
from tests.drift import zoo
from tests.drift.support import schema
from tests.support.proxy import Answer, FaultyProxy

if TYPE_CHECKING:
    from pathlib import Path


def run(url: str, *statements: str) -> None:
    """Run statements on a server."""
    connection = dbapi.connect(url, isolation_level=None)
    for statement in statements:
        connection.execute(statement)
    connection.close()


def test_a_migrated_server_has_no_drift_and_is_read_in_one_request(sqld_url: str):
    """`check` of a server is one HTTP request, whatever is in the database."""
    run(sqld_url, *migrate.schema_sql("harel"))
    with FaultyProxy(sqld_url) as proxy:
        drift = check(proxy.url)
        assert len(proxy.requests) == 1
    assert (len(drift), drift.revision, drift.others) == (0, REVISION, ())


def test_a_dropped_index_on_a_server_is_named_with_its_cure(sqld_url: str):
    """What is missing on the server is one difference, and its statement mends it there."""
    run(sqld_url, *migrate.schema_sql("harel"))
    run(sqld_url, "DROP INDEX harel_transport_messages_by_group")
    (difference,) = check(sqld_url)
    assert str(difference) == (
        "index-missing harel_transport_messages.harel_transport_messages_by_group:"
        " expected (group_id, seq), found nothing"
    )
    run(sqld_url, difference.fix.rstrip(";"))
    assert not check(sqld_url)


def test_a_server_without_a_version_table_is_read(sqld_url: str):
    """An empty database is one whose version row and tables are missing, not an error."""
    drift = check(sqld_url)
    assert {d.kind.value for d in drift} == {"version-missing", "table-missing"}
    assert drift.revision is None
    assert len(drift) == 1 + 9


def test_a_server_reads_every_clause_as_sqlite_does(sqld_url: str, tmp_path: Path):
    """The same statements give the same schema on a server as in stdlib's SQLite."""
    run(sqld_url, *zoo.STATEMENTS)
    connection = dbapi.connect(sqld_url)
    assert introspect.read(connection) == schema(*zoo.STATEMENTS)
    connection.close()
    local = dbapi.connect(tmp_path / "zoo.db")
    for statement in zoo.STATEMENTS:
        local.execute(statement)
    local.commit()
    local.close()
    assert not len(diff(tmp_path / "zoo.db", sqld_url))


def test_the_tables_of_libsql_and_of_virtual_tables_are_its_own(sqld_url: str):
    """A vector index, full text and a sequence bring tables that are nobody's drift."""
    run(sqld_url, *migrate.schema_sql("harel"))
    run(
        sqld_url,
        "CREATE TABLE points (v F32_BLOB(3))",
        "CREATE INDEX near ON points (libsql_vector_idx(v))",
        "CREATE VIRTUAL TABLE notes USING fts5(body)",
    )
    assert check(sqld_url).others == ("notes", "points")
    assert [d.name for d in check(sqld_url, strict=True)] == ["points", "notes"]


def test_a_schema_larger_than_one_response_is_read(sqld_url: str):
    """A schema over the server's limit of 10 MB a response is read in more requests."""
    text = "x" * 1_000_000
    run(sqld_url, *(f"CREATE TABLE t{n} (a CHECK (a <> '{text}'))" for n in range(11)))
    connection = dbapi.connect(sqld_url)
    found = introspect.read(connection)
    assert not connection.in_transaction
    connection.close()
    assert len(found.tables) == 11
    assert found.table("t3").checks[0].expression == f"a != '{text}'"


def test_reading_inside_a_transaction_sees_it(sqld_url: str):
    """In an open transaction the schema is read in it, and it stays open."""
    connection = dbapi.connect(sqld_url)
    connection.execute("CREATE TABLE t (a)")
    assert connection.in_transaction
    assert introspect.read(connection, prefix="harel").table("t") is not None
    assert connection.in_transaction
    connection.rollback()
    assert introspect.read(connection).tables == ()
    connection.close()


def test_a_refused_token_and_a_dead_server_are_told_apart(sqld_url: str):
    """A 401 is an AuthError, no server is a ConnectionLost, each in one line without the token."""
    with FaultyProxy(sqld_url) as proxy:
        proxy.script(Answer(401, b'{"error":"no"}'), Answer(401, b'{"error":"no"}'))
        with pytest.raises(AuthError) as refused:
            check(f"{proxy.url}?authToken=secret")
        dead = proxy.url
    with pytest.raises(ConnectionLost) as lost:
        check(dead)
    for error in (refused.value, lost.value):
        assert "\n" not in str(error)
        assert "secret" not in str(error)


def test_a_copy_to_a_server_and_back_has_no_drift(sqld_url: str, tmp_path: Path):
    """What a copy makes, on the server and in a new file, is the schema that it copied."""
    migrate.upgrade(tmp_path / "state.db")
    with closing(dbapi.connect(tmp_path / "state.db")) as connection:
        connection.execute("INSERT INTO harel_outbox (event) VALUES ('{}')")
        connection.commit()
    transfer.copy(tmp_path / "state.db", sqld_url)
    assert not len(check(sqld_url))
    transfer.copy(sqld_url, tmp_path / "back.db")
    assert not len(check(tmp_path / "back.db"))
    assert not len(diff(tmp_path / "state.db", tmp_path / "back.db"))
