"""A database that SQLite treats the same shows no drift, however it came to be."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

import pytest
from harel.engine.schema import sql_schema, transport_schema
from harel.engine.store.sqlite import SqliteStore
from hypothesis import given
from hypothesis import strategies as st

from harel_schema import migrate
from harel_schema.drift import check
from harel_schema.sql import REVISION
from tests.drift import zoo
from tests.drift.support import checked, differences

if TYPE_CHECKING:
    from pathlib import Path

OTHERS = """
    CREATE TABLE people (id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT);
    CREATE TABLE alembic_version (version_num VARCHAR(32) NOT NULL);
    CREATE TABLE other_executions (id TEXT PRIMARY KEY);
    CREATE VIEW everybody AS SELECT * FROM people;
    CREATE VIRTUAL TABLE notes USING fts5(body);
    CREATE TRIGGER on_people AFTER INSERT ON people BEGIN SELECT 1; END;
"""


def test_a_migrated_database_has_no_drift(tmp_path: Path):
    """After `upgrade` there is nothing to report, not even a note."""
    target = str(tmp_path / "state.db")
    migrate.upgrade(target)
    drift = check(target)
    assert (len(drift), drift.revision, drift.head, drift.others) == (0, REVISION, REVISION, ())


@pytest.mark.parametrize("prefix", ["harel", "_a9", "Orders"])
def test_any_prefix_has_no_drift(tmp_path: Path, prefix):
    """Two prefixes live in one file, and neither is drift to the other."""
    target = str(tmp_path / "state.db")
    migrate.upgrade(target, prefix="zz")
    migrate.upgrade(target, prefix=prefix)
    drift = check(target, prefix=prefix)
    assert not len(drift)
    assert len(drift.others) == 10


def test_up_down_up_has_no_drift(tmp_path: Path):
    """Down and up again is the same schema, and each revision is checked as itself."""
    target = str(tmp_path / "state.db")
    migrate.upgrade(target)
    migrate.downgrade(target, "0001")
    drift = check(target)
    assert not drift
    assert drift.revision == "0001"
    migrate.upgrade(target)
    assert not len(check(target))


def test_replayed_offline_sql_has_no_drift(tmp_path: Path):
    """The SQL of `upgrade --sql`, run by another program, gives the same schema."""
    with closing(sqlite3.connect(tmp_path / "state.db")) as connection:
        connection.executescript(migrate.upgrade_sql())
    assert not len(check(tmp_path / "state.db"))


def test_an_adopted_harel_database_has_no_drift(tmp_path: Path):
    """What harel 0.9.0 made itself is taken over and equals a migrated database, transport too."""
    with closing(sqlite3.connect(tmp_path / "state.db")) as connection:
        for statement in sql_schema("sqlite", "harel"):
            connection.execute(statement)
    migrate.upgrade(tmp_path / "state.db")
    drift = check(tmp_path / "state.db")
    assert (len(drift), drift.others) == (0, ())


def test_harel_opening_a_migrated_database_is_no_drift(tmp_path: Path):
    """Harel 0.9.0 with `create_schema=True` on top changes nothing that counts."""
    migrate.upgrade(tmp_path / "state.db")
    store = SqliteStore(str(tmp_path / "state.db"))
    store.close()
    assert not len(check(tmp_path / "state.db"))


def test_renaming_there_and_back_is_no_drift(migrated: sqlite3.Connection):
    """ALTER … RENAME leaves quotes in the stored text, which do not count."""
    for table in ("harel_outbox", "harel_transport_messages"):
        migrated.execute(f"ALTER TABLE {table} RENAME TO other")
        migrated.execute(f"ALTER TABLE other RENAME TO {table}")
    migrated.execute("ALTER TABLE harel_outbox RENAME COLUMN event TO e")
    migrated.execute("ALTER TABLE harel_outbox RENAME COLUMN e TO event")
    stored = migrated.execute("SELECT sql FROM sqlite_schema WHERE name = 'harel_outbox'")
    assert '"harel_outbox"' in stored.fetchone()[0]
    assert not len(checked(migrated))


def test_other_people_s_tables_are_listed_and_do_not_count(migrated: sqlite3.Connection):
    """What is not harel's is named once, without its internals; `strict` makes it count."""
    migrated.executescript(OTHERS)
    migrated.execute("ANALYZE")
    drift = checked(migrated)
    assert not len(drift)
    assert drift.others == (
        "alembic_version", "everybody", "notes", "other_executions", "people",
    )  # fmt: skip
    strict = checked(migrated, strict=True)
    assert {(d.kind.value, d.name, d.fix) for d in strict} == {
        ("table-extra", "alembic_version", None),
        ("table-extra", "other_executions", None),
        ("table-extra", "people", None),
        ("view-extra", "everybody", None),
        ("virtual-table-extra", "notes", None),
    }
    assert strict


def test_before_0003_the_transport_s_tables_may_be_absent():
    """Up to 0002 harel's own are allowed and not asked for; one of the two alone is drift."""
    with closing(sqlite3.connect(":memory:")) as connection:
        for statement in (*migrate.schema_sql(revision="0002"), *transport_schema("sqlite")):
            connection.execute(statement)
        assert not checked(connection)
        connection.execute("DROP TABLE harel_transport_messages")
        drift = checked(connection)
        assert [d.kind for d in drift if d.counts] == ["table-missing"]
        connection.execute("DROP TABLE harel_transport_groups")
        assert not checked(connection)


def test_from_0003_on_they_are_promised(migrated: sqlite3.Connection):
    """A database at head without them has drifted."""
    migrated.execute("DROP TABLE harel_transport_messages")
    migrated.execute("DROP TABLE harel_transport_groups")
    assert [d.kind for d in checked(migrated)] == ["table-missing"] * 2


def test_statistics_and_sequences_are_sqlite_s_own(migrated: sqlite3.Connection):
    """sqlite_sequence and sqlite_stat tables are neither drift nor others, even under `strict`."""
    migrated.execute("INSERT INTO harel_outbox (event) VALUES ('{}')")
    migrated.execute("ANALYZE")
    drift = checked(migrated, strict=True)
    assert (len(drift), drift.others) == (0, ())


@given(st.sampled_from(zoo.STATEMENTS), st.integers(0, 2**32))
def test_layout_case_and_quotes_are_no_drift(statement, seed):
    """Any layout, any case of keywords, any quotes around names: the same schema."""
    respelled = zoo.respell(statement, seed)
    base = [s for s in (zoo.PARENT, zoo.PLAIN) if s != statement]
    assert differences([*base, statement], [*base, respelled]) == []
