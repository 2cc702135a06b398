"""Databases that harel made itself: taken over by their shape, or refused with the difference."""

from __future__ import annotations

import logging
import sqlite3
from contextlib import closing

import pytest
from harel.engine.schema import sql_schema, store_schema, transport_schema

from harel_schema import migrate
from harel_schema.errors import SchemaMismatch
from tests.migrations.conftest import CHAIN, HEAD

DEFINITIONS = migrate.schema_sql(revision="0002")[-2]


def test_the_six_tables_of_harel_are_taken_over(database, caplog):
    """A database that harel made is stamped at 0001 and goes on from there, rows and all."""
    database.rows(
        *store_schema("sqlite"),
        "INSERT INTO harel_executions VALUES ('a', 'd', '{}', 1)",
        "INSERT INTO harel_outbox (event) VALUES ('e')",
    )
    with caplog.at_level(logging.INFO, "harel_schema"):
        done = migrate.upgrade(database.target)
    assert (done.before, done.after, done.adopted) == (None, HEAD, ("0001",))
    assert done.applied == CHAIN[1:]
    assert "taken over as it is at 0001" in caplog.text
    assert database.rows("SELECT id FROM harel_executions") == [("a",)]
    assert migrate.current(database.target).revision == HEAD


@pytest.mark.parametrize("prefix", ["harel", "Work_1"])
def test_transport_and_other_tables_may_be_there(prefix, database):
    """The transport's tables, and other people's, neither hinder the take-over nor change."""
    others = [
        *transport_schema("sqlite", prefix),
        "CREATE TABLE executions (id)",
        "CREATE TABLE alembic_version (version_num)",
        f"CREATE TABLE {prefix}_other (id)",
    ]
    database.rows(*store_schema("sqlite", prefix), *others)
    before = {t.name: t for t in database.schema().tables}
    assert migrate.upgrade(database.target, prefix=prefix).adopted == ("0001", "0003")
    after = {t.name: t for t in database.schema().tables}
    theirs = {"executions", "alembic_version", f"{prefix}_other"}
    for name, table in before.items():
        # Later revisions add indexes to harel's own tables, and change nothing else.
        indexes = after[name].indexes if name in theirs else table.indexes
        assert after[name].model_copy(update={"indexes": indexes}) == table
    assert len(after) == len(before) + 2


def test_all_seven_tables_are_taken_over_at_0002(database):
    """Where harel_definitions is there in the right shape, 0002 is stamped, not run."""
    database.rows(*store_schema("sqlite"), DEFINITIONS)
    done = migrate.upgrade(database.target)
    assert (done.before, done.after, done.applied, done.adopted) == (
        None,
        HEAD,
        CHAIN[2:],
        CHAIN[:2],
    )


def test_a_table_of_the_next_revision_is_taken_over(database):
    """At 0001 with harel_definitions already there, 0002 is stamped, not run."""
    migrate.upgrade(database.target, "0001")
    database.rows(DEFINITIONS)
    done = migrate.upgrade(database.target)
    assert (done.before, done.after, done.applied, done.adopted) == (
        "0001",
        HEAD,
        CHAIN[2:],
        ("0002",),
    )


def test_upgrade_to_0001_takes_over_only(database):
    """An upgrade to the revision that the shape has is a stamp."""
    database.rows(*store_schema("sqlite"))
    done = migrate.upgrade(database.target, "0001")
    assert (done.after, done.applied, done.adopted) == ("0001", (), ("0001",))


@pytest.mark.parametrize(("made", "adopted"), [(6, CHAIN[:1]), (7, CHAIN[:2])])
def test_a_plan_predicts_the_take_over(made, adopted, tmp_path):
    """The SQL of a plan takes the database over too: it writes the version row first."""
    path = tmp_path / "state.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(";".join([*store_schema("sqlite"), DEFINITIONS][:made]))
        plan = migrate.plan(path)
        assert (plan.revision, plan.adopted) == (None, adopted)
        connection.executescript(plan.sql)
    assert migrate.current(path).pending == ()


DAMAGES = {
    "harel_trace": ["DROP TABLE harel_trace"],
    "harel_timers.extra": ["ALTER TABLE harel_timers ADD COLUMN extra TEXT"],
    "harel_outbox.by_target": ["CREATE INDEX by_target ON harel_outbox (target_id)"],
    "harel_spawns.t": [
        "CREATE TRIGGER t BEFORE DELETE ON harel_spawns BEGIN SELECT RAISE(ABORT, 'no'); END"
    ],
    "harel_outbox": [
        "DROP TABLE harel_outbox",
        "CREATE TABLE harel_outbox (seq INTEGER PRIMARY KEY, target_id TEXT, event TEXT NOT NULL)",
    ],
    "harel_executions.version": [
        "DROP TABLE harel_executions",
        store_schema("sqlite")[0].replace("version INTEGER", "version INT"),
    ],
    "harel_definitions": ["CREATE TABLE harel_definitions (definition_id TEXT)"],
}


@pytest.mark.parametrize("place", DAMAGES)
def test_another_shape_is_refused_with_the_difference(place, database):
    """A table that is not exactly harel's is named, and nothing is written."""
    database.rows(*sql_schema("sqlite"), *DAMAGES[place])
    before = database.fingerprint()
    with pytest.raises(SchemaMismatch) as caught:
        migrate.upgrade(database.target)
    assert any(place in line for line in caught.value.differences)
    assert place in str(caught.value)
    assert "\n" not in str(caught.value)
    assert database.fingerprint() == before


def test_one_table_of_six_is_refused(database):
    """Part of the six tables is not a database of harel."""
    database.rows(store_schema("sqlite")[0])
    with pytest.raises(SchemaMismatch) as caught:
        migrate.upgrade(database.target)
    assert len(caught.value.differences) == 5


def test_a_wrong_table_in_the_way_of_the_next_revision_is_refused(database):
    """At 0001, a harel_definitions of another shape stops the upgrade with the difference."""
    migrate.upgrade(database.target, "0001")
    database.rows("CREATE TABLE harel_definitions (definition_id TEXT)")
    before = database.fingerprint()
    with pytest.raises(SchemaMismatch, match="harel_definitions"):
        migrate.upgrade(database.target)
    assert database.fingerprint() == before


def test_the_transport_alone_is_no_store(database):
    """A database that holds only the transport's tables gets the store's beside them."""
    database.rows(*transport_schema("sqlite"))
    done = migrate.upgrade(database.target)
    assert (done.applied, done.adopted) == ((*CHAIN[:2], *CHAIN[3:]), ("0003",))


def test_a_wrong_transport_is_refused_before_anything_is_run(database):
    """Tables that only a later revision makes are compared before the first step."""
    database.rows(*sql_schema("sqlite"), "DROP INDEX harel_transport_messages_by_group")
    before = database.fingerprint()
    with pytest.raises(SchemaMismatch, match="harel_transport_messages_by_group"):
        migrate.upgrade(database.target)
    assert database.fingerprint() == before


def test_the_transport_is_taken_over_at_0002_too(file):
    """At 0002 with harel's own transport in place, 0003 is stamped and its rows stay."""
    migrate.upgrade(file.target, "0002")
    file.rows(
        *transport_schema("sqlite"),
        "INSERT INTO harel_transport_messages (group_id, event) VALUES ('g', 'e')",
    )
    assert migrate.upgrade(file.target).adopted == ("0003",)
    assert file.rows("SELECT seq, group_id FROM harel_transport_messages") == [(1, "g")]
