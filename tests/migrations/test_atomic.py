"""A revision is whole or not at all: failures, races, lost transactions."""

from __future__ import annotations

import logging

import pytest

from harel_schema import migrate
from harel_schema.errors import MigrationError
from harel_schema.migrate.shape import Shapes
from tests.migrations.conftest import HEAD, NEXT

BROKEN = """
def upgrade():
    op.execute("CREATE TABLE harel_first (id)")
    op.execute("INSERT INTO harel_trace VALUES ('a', 0, 'b')")
    op.execute("{statement}")
    op.execute("CREATE TABLE harel_last (id)")
"""


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE TABLE nonsense",
        "CREATE TABLE harel_trace (id)",
        "INSERT INTO harel_trace VALUES (1)",
    ],
)
def test_a_failing_statement_leaves_nothing(statement, database, extended):
    """A revision that fails in the middle leaves the schema and the version row as they were."""
    migrate.upgrade(database.target)
    before = database.fingerprint()
    alembic = extended(BROKEN.format(statement=statement))
    line = alembic.refused("-x", f"target={database.target}", "upgrade", "head")
    assert f"revision {NEXT} failed and was rolled back" in line
    assert database.fingerprint() == before
    assert database.rows("SELECT count(*) FROM harel_trace") == [(0,)]


def test_revisions_before_the_failing_one_are_kept(database, extended):
    """Each revision is a transaction of its own."""
    alembic = extended(BROKEN.format(statement="nonsense"))
    alembic.refused("-x", f"target={database.target}", "upgrade", "head")
    assert migrate.current(database.target).pending == ()
    assert "harel_first" not in database.schema().by_name


def test_an_exception_of_the_revision_leaves_nothing(database, extended):
    """Code that fails between two statements leaves no more than SQL that fails."""
    alembic = extended(
        'def upgrade():\n    op.execute("CREATE TABLE harel_first (id)")\n    raise KeyError("x")\n'
    )
    with pytest.raises(KeyError):
        alembic("-x", f"target={database.target}", "upgrade", "head")
    assert migrate.current(database.target).revision == HEAD
    assert "harel_first" not in database.schema().by_name


def test_the_version_table_comes_with_the_first_revision(file, monkeypatch):
    """A first revision that fails leaves no version table behind either."""
    file.rows("CREATE VIEW harel_trace AS SELECT 1")
    monkeypatch.setattr(Shapes, "refuse_taken", lambda *_: None)
    with pytest.raises(MigrationError, match="rolled back"):
        migrate.upgrade(file.target)
    assert file.schema().by_name.keys() <= {"sqlite_sequence"}


STOLEN = """
from pathlib import Path

from harel_schema import dbapi

def upgrade():
    op.execute("CREATE TABLE harel_first (id)")
    if not Path("stolen").exists():
        Path("stolen").touch()
        other = dbapi.connect("{url}", timeout=30.0)
        with other:
            other.execute("INSERT INTO harel_trace VALUES ('a', 0, 'b')")
        other.close()
    op.execute("CREATE TABLE harel_last (id)")
"""


def test_a_stolen_transaction_is_retried_whole(sqld, extended, caplog):
    """A revision whose transaction the server took away leaves nothing, and is run again."""
    migrate.upgrade(sqld.url)
    alembic = extended(STOLEN.format(url=sqld.url))
    with caplog.at_level(logging.INFO, "harel_schema"):
        alembic("-x", f"target={sqld.url}", "upgrade", "head")
    assert caplog.text.count("trying again") == 1
    assert caplog.text.count(f"upgraded to {NEXT}") == 1
