"""Both generations of harel's tables in one database: an early open, or two lives."""

from __future__ import annotations

import logging

import pytest
from harel import SqliteStore
from harel.engine.schema import sql_schema, store_schema, transport_schema

from harel_schema import drift, migrate
from harel_schema.errors import MigrationError, SchemaMismatch, UnknownRevision
from tests.adopt.conftest import EARLIER, STORE, renamed
from tests.adopt.test_releases import promised

EXECUTION = "INSERT INTO harel_executions VALUES ('new', 'order', '{}', 1)"
MESSAGE = "INSERT INTO harel_transport_messages (group_id, event) VALUES ('new', '{}')"


def tables(prefix: str = "harel") -> list[str]:
    """The names that harel gives its tables since 0.7."""
    return [renamed(name, prefix) for name in (*STORE, "groups", "messages")]


@pytest.mark.parametrize("release", [EARLIER[0], EARLIER[-1]])
@pytest.mark.parametrize("made", [store_schema, transport_schema, sql_schema])
def test_what_an_early_open_left_makes_room(release, made, written):
    """Empty tables of harel 0.7 or later are dropped, and all old rows come to their places."""
    database = written(release)
    before = database.everything()
    database.rows(*made("sqlite"))
    done = migrate.adopt(database.target)
    assert set(done.dropped) == {each.split()[5] for each in made("sqlite") if "TABLE" in each}
    assert database.everything() == promised(before)
    assert not drift.check(database.target, strict=True)


def test_what_was_used_and_emptied_makes_room_too(file):
    """Tables that have had rows are dropped with their sequence; the old numbers count on."""
    database = file("0.6.1")
    before = database.everything()
    database.rows(*sql_schema("sqlite"), MESSAGE, "DELETE FROM harel_transport_messages")
    assert ("harel_transport_messages", 1) in database.everything()["sqlite_sequence"]
    migrate.adopt(database.target)
    assert database.everything() == promised(before)


@pytest.mark.parametrize("revision", [each.revision for each in migrate.history()])
def test_what_this_tool_made_too_early_makes_room(revision, file):
    """Empty tables at any revision are dropped, and the version row starts again at 0001."""
    database = file("0.6.1")
    before = database.everything()
    database.rows(*migrate.schema_sql(revision=revision))
    with pytest.raises(MigrationError, match="harel-schema adopt"):
        migrate.upgrade(database.target)
    plan = migrate.adopt(database.target, dry_run=True)
    done = migrate.adopt(database.target)
    assert (plan.dropped, plan.applied) == (done.dropped, done.applied)
    assert (done.before, set(done.dropped) >= set(tables()[:6])) == (revision, True)
    assert database.everything() == promised(before)
    assert not drift.check(database.target, strict=True)


@pytest.mark.parametrize("row", [EXECUTION, MESSAGE])
def test_two_lives_are_refused(row, written, caplog):
    """Where both generations hold rows, adopt says which, and an upgrade only warns."""
    database = written("0.6.1")
    database.rows(*sql_schema("sqlite"), row)
    before = database.fingerprint()
    full = row.split()[2]
    for dry_run in (True, False):
        with pytest.raises(MigrationError, match=rf"both generations.*hold rows.*{full}"):
            migrate.adopt(database.target, dry_run=dry_run)
    assert database.fingerprint() == before
    with caplog.at_level(logging.WARNING, "harel_schema"):
        assert migrate.upgrade(database.target).before is None
    assert "both generations" in caplog.text


def test_old_empty_tables_beside_a_new_life_stay(file):
    """Where only the later generation is in use, the old empty tables are left, and named."""
    database = file("0.6.1")
    database.rows(*(f"DELETE FROM {name}" for name in (*STORE, "messages", "groups")))
    database.rows(*sql_schema("sqlite"), EXECUTION, MESSAGE)
    done = migrate.adopt(database.target)
    assert (done.renamed, len(done.notes)) == ((), 2)
    assert "executions" in done.notes[0]
    assert database.rows("SELECT id FROM harel_executions") == [("new",)]
    assert database.rows("SELECT count(*) FROM executions") == [(0,)]
    assert migrate.upgrade(database.target).applied == ()


def test_an_old_store_beside_a_new_queue(file):
    """Each part is judged alone: the store is renamed, the queue that is in use stays."""
    database = file("0.6.1")
    database.rows("DELETE FROM messages", "DELETE FROM groups")
    database.rows(*sql_schema("sqlite"), MESSAGE)
    executions = database.rows("SELECT * FROM executions")
    done = migrate.adopt(database.target)
    assert [new for _, new in done.renamed] == sorted(tables()[:6])
    assert database.rows("SELECT * FROM harel_executions") == executions
    assert database.rows("SELECT group_id FROM harel_transport_messages") == [("new",)]
    assert not drift.check(database.target)


def test_empty_old_tables_keep_their_numbers(file):
    """A queue that is empty on both sides is the old one: its sequence goes on."""
    database = file("0.6.1")
    database.rows("DELETE FROM messages", "DELETE FROM groups", *sql_schema("sqlite"))
    number = dict(database.everything()["sqlite_sequence"])["messages"]
    migrate.adopt(database.target)
    assert dict(database.everything()["sqlite_sequence"])["harel_transport_messages"] == number


def test_a_stranger_in_the_way_is_refused(file):
    """A table with one of the later names and another shape is nobody's to drop."""
    database = file("0.6.1")
    database.rows("CREATE TABLE harel_timers (id INTEGER PRIMARY KEY, name TEXT)")
    before = database.fingerprint()
    with pytest.raises(SchemaMismatch, match=r"harel_timers.*--prefix"):
        migrate.adopt(database.target)
    assert database.fingerprint() == before
    assert migrate.adopt(database.target, "other").renamed


def test_a_database_ahead_is_refused(file):
    """A revision that this version does not know stops the adoption before it looks."""
    database = file("0.6.1")
    database.rows(*migrate.schema_sql(), "UPDATE harel_alembic_version SET version_num = '0999'")
    before = database.fingerprint()
    with pytest.raises(UnknownRevision, match="ahead"):
        migrate.adopt(database.target)
    assert database.fingerprint() == before


def test_a_second_prefix_stays_as_it_is(file):
    """Another prefix's tables in the same database, and its version row, are not touched."""
    database = file("0.6.1")

    for statement in migrate.schema_sql("other"):
        database.rows(statement)
    database.rows("INSERT INTO other_timers VALUES ('e', 'p', 0.1)")
    before = {k: v for k, v in database.everything().items() if k.startswith("other_")}
    migrate.adopt(database.target)
    after = database.everything()
    assert {name: after[name] for name in before} == before
    assert not drift.check(database.target, prefix="other")


def test_harel_opens_the_adopted_file_and_makes_nothing(file):
    """Harel's own store and transport find all that they would create."""
    database = file("0.1.4")
    migrate.adopt(database.target)
    before = database.fingerprint()
    SqliteStore(database.target).close()
    database.rows(*transport_schema("sqlite"))
    assert database.fingerprint() == before
