"""Reading, checking and stamping the revision of a database."""

from __future__ import annotations

import logging
import sqlite3
from contextlib import closing

import pytest
from harel.engine.schema import sql_schema

from harel_schema import dbapi, migrate
from harel_schema.errors import MigrationError, SchemaMismatch, TargetError, UnknownRevision
from harel_schema.migrate import Current
from harel_schema.sql import TABLES
from harel_schema.target import Target
from tests.migrations.conftest import CHAIN, HEAD


def test_current_names_revision_head_and_pending(database):
    """`current` says where a database stands and what is pending."""
    migrate.upgrade(database.target, "0001")
    found = migrate.current(database.target)
    assert found == Current(found.target, "harel", "0001", HEAD, CHAIN[1:])
    assert found.target in database.target


def test_commands_that_look_change_nothing(file):
    """`current` of an unversioned database is None, and makes no version table."""
    file.rows("CREATE TABLE mine (id)")
    before = file.fingerprint()
    assert migrate.current(file.target).revision is None
    assert migrate.current(file.target).pending == CHAIN
    assert file.fingerprint() == before


@pytest.mark.parametrize("look", [migrate.current, lambda t: migrate.downgrade(t, "base")])
def test_a_missing_file_is_not_created(look, tmp_path):
    """Only an upgrade creates a file; anything else says that there is none."""
    with pytest.raises(TargetError, match="no such file"):
        look(tmp_path / "missing.db")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "command",
    [
        migrate.current,
        migrate.upgrade,
        lambda target: migrate.downgrade(target, "base", force=True),
        lambda target: migrate.stamp(target, "head"),
    ],
)
def test_a_database_ahead_is_refused(command, database):
    """A revision that this version does not know is named as ahead, and nothing is written."""
    migrate.upgrade(database.target)
    database.rows("UPDATE harel_alembic_version SET version_num = '0999'")
    before = database.fingerprint()
    with pytest.raises(UnknownRevision, match=r"'0999'.*ahead") as caught:
        command(database.target)
    assert caught.value.revision == "0999"
    assert "\n" not in str(caught.value)
    assert database.fingerprint() == before


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        ("INSERT INTO harel_alembic_version VALUES ('0001')", "2 rows"),
        ("UPDATE harel_alembic_version SET version_num = ''", "''"),
        ("UPDATE harel_alembic_version SET version_num = '000'", "'000'"),
        ("UPDATE harel_alembic_version SET version_num = x'00'", "does not know"),
        ("ALTER TABLE harel_alembic_version RENAME COLUMN version_num TO v", "not a version table"),
    ],
)
def test_a_version_table_that_makes_no_sense_is_refused(damage, message, database):
    """Two rows, garbage and somebody else's table are each named, and nothing is written."""
    migrate.upgrade(database.target)
    database.rows(damage)
    before = database.fingerprint()
    for command in (migrate.current, migrate.upgrade):
        with pytest.raises(MigrationError, match=message):
            command(database.target)
    assert database.fingerprint() == before


def test_stamp_writes_the_row_and_nothing_else(database):
    """`stamp` moves the version row up, down and to base without running a revision."""
    migrate.upgrade(database.target)
    before = database.fingerprint()[:-1]
    done = migrate.stamp(database.target, "0001", force=True)
    assert (done.before, done.after, done.applied) == (HEAD, "0001", ())
    assert migrate.current(database.target).revision == "0001"
    assert migrate.stamp(database.target, "base", force=True).after is None
    assert migrate.stamp(database.target, "head").after == HEAD
    assert database.fingerprint()[:-1] == before


@pytest.mark.parametrize("revision", ["base", *CHAIN[:-1]])
def test_stamp_refuses_a_revision_of_another_shape(revision, database):
    """A version row is not written over tables that are not those of its revision."""
    migrate.upgrade(database.target)
    before = database.fingerprint()
    with pytest.raises(SchemaMismatch, match=f"not the shape of {revision}: .*--force") as caught:
        migrate.stamp(database.target, revision)
    assert caught.value.differences
    assert "\n" not in str(caught.value)
    assert database.fingerprint() == before


def test_stamp_takes_every_revision_of_its_own_shape(file):
    """What each revision's own SQL made, and harel's own tables beside 0001, may be stamped."""
    for revision in CHAIN:
        prefix = f"p{revision}"
        file.rows(*migrate.schema_sql(prefix, revision))
        file.rows(f"DELETE FROM {prefix}_alembic_version")
        assert migrate.stamp(file.target, revision, prefix).after == revision
    file.rows(*sql_schema("sqlite"))
    assert migrate.stamp(file.target, "0001").after == "0001"


def test_current_says_whether_the_tables_match(database):
    """Asked for the shape, `current` compares the tables with the revision, and says how."""
    migrate.upgrade(database.target, "0002")
    assert migrate.current(database.target).shape is None
    assert migrate.current(database.target, shape=True).shape == ()
    database.rows("ALTER TABLE harel_trace ADD COLUMN extra TEXT")
    (line,) = migrate.current(database.target, shape=True).shape
    assert "harel_trace.extra" in line


def test_stamp_refuses_an_unknown_revision(database):
    """A revision that does not exist is not stamped."""
    migrate.upgrade(database.target)
    with pytest.raises(MigrationError, match=r"nope.*harel-schema history"):
        migrate.stamp(database.target, "nope")
    assert migrate.current(database.target).revision == HEAD


def test_stamp_purge_mends_a_version_table(database):
    """`stamp` with purge replaces rows that cannot be understood by one that is true."""
    migrate.upgrade(database.target)
    database.rows("INSERT INTO harel_alembic_version VALUES ('0999')")
    assert migrate.stamp(database.target, HEAD, purge=True).after == HEAD
    assert database.rows("SELECT * FROM harel_alembic_version") == [(HEAD,)]


def test_a_plan_is_what_an_upgrade_then_does(database, tmp_path):
    """`plan` names the pending revisions, its SQL makes them, and it changes nothing itself."""
    migrate.upgrade(database.target, "0001")
    before = database.fingerprint()
    plan = migrate.plan(database.target)
    assert (plan.revision, plan.adopted, plan.pending) == ("0001", (), CHAIN[1:])
    assert database.fingerprint() == before
    migrate.upgrade(tmp_path / "other.db", "0001")
    with closing(sqlite3.connect(tmp_path / "other.db")) as connection:
        connection.executescript(plan.sql)
    assert migrate.upgrade(database.target).applied == plan.pending
    assert migrate.current(tmp_path / "other.db").revision == HEAD
    assert migrate.plan(database.target).pending == ()
    assert migrate.plan(database.target).sql == ""


def test_a_plan_of_a_file_that_is_not_there_creates_none(tmp_path):
    """A missing file is planned as an empty database."""
    assert migrate.plan(tmp_path / "state.db").pending == CHAIN
    assert not list(tmp_path.iterdir())


def test_relative_revisions_are_single_steps(database):
    """+1 and -1 are one step each, also when more are pending."""
    assert migrate.upgrade(database.target, "+1").applied == ("0001",)
    assert migrate.upgrade(database.target, "+1").applied == ("0002",)
    assert migrate.downgrade(database.target, "-1").applied == ("0002",)
    assert migrate.current(database.target).revision == "0001"


def test_nothing_to_do_is_a_result(database):
    """An upgrade of a current database applies nothing."""
    assert migrate.upgrade(database.target).applied == CHAIN
    done = migrate.upgrade(database.target)
    assert (done.before, done.after, done.applied, done.adopted) == (HEAD, HEAD, (), ())


def test_commands_print_nothing(file, capfd, caplog):
    """The functions write neither to stdout nor to stderr; what they did is logged."""
    with caplog.at_level(logging.INFO, "harel_schema"):
        migrate.upgrade(file.target)
        migrate.current(file.target)
        migrate.history()
        migrate.upgrade_sql()
        migrate.downgrade(file.target, "base")
    assert capfd.readouterr() == ("", "")
    messages = [r.message for r in caplog.records if r.name == "harel_schema.migrate"]
    ups = [f"state.db: upgraded to {each}" for each in CHAIN]
    downs = [f"state.db: downgraded to {each}" for each in (*CHAIN[-2::-1], "base")]
    assert [message.partition(", dropped")[0] for message in messages] == [*ups, *downs]


def test_an_open_connection_is_used_and_left_open():
    """A database in memory is migrated through its own connection, which stays usable."""
    connection = dbapi.connect(":memory:")
    assert migrate.upgrade(connection).applied == CHAIN
    assert migrate.current(connection).revision == HEAD
    assert connection.execute("SELECT count(*) FROM harel_executions").fetchone() == (0,)
    assert migrate.downgrade(connection, "base").after is None
    connection.close()


def test_a_connection_in_a_transaction_is_refused():
    """A migration never commits what its caller has not."""
    connection = dbapi.connect(":memory:")
    connection.begin()
    with pytest.raises(MigrationError, match="in a transaction"):
        migrate.upgrade(connection)
    assert connection.in_transaction
    connection.close()


@pytest.mark.parametrize("revision", ["", " ", "@", ":", "head+1", "+9", "0001:head", "0\x001"])
@pytest.mark.parametrize("verb", [migrate.upgrade, migrate.downgrade, migrate.stamp, migrate.plan])
def test_what_is_no_revision_is_refused(verb, revision: str) -> None:
    """A text that names no revision is one clear error, and the database stays where it is."""
    before = migrate.upgrade("x.db").after
    with pytest.raises(MigrationError) as caught:
        verb("x.db", revision)
    assert len(str(caught.value).splitlines()) == 1
    assert migrate.current("x.db").revision == before


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("CREATE VIEW harel_definitions AS SELECT 1", "harel_definitions is a view"),
        (
            "CREATE INDEX Harel_Definitions ON harel_trace (idx)",
            "harel_definitions is an index on harel_trace",
        ),
        (
            "CREATE VIRTUAL TABLE harel_transport_groups USING fts5 (a)",
            "harel_transport_groups is a virtual table",
        ),
        ("CREATE VIEW harel_timers_by_fire_at AS SELECT 1", "harel_timers_by_fire_at is a view"),
        ("CREATE TABLE harel_executions_roots (a)", "harel_executions_roots is a table"),
        (
            "CREATE INDEX harel_transport_messages_by_group ON mine (id)",
            "harel_transport_messages_by_group is an index on mine",
        ),
    ],
)
@pytest.mark.parametrize("verb", [migrate.plan, migrate.upgrade])
def test_a_name_that_is_taken_is_refused_before_the_first_write(verb, statement, message, database):
    """What has the name of something that a later revision makes is named by the dry run too."""
    migrate.upgrade(database.target, "0001")
    database.rows("CREATE TABLE mine (id)", statement)
    before = database.fingerprint()
    with pytest.raises(SchemaMismatch, match=rf"{message}; rename or drop") as caught:
        verb(database.target)
    assert "\n" not in str(caught.value)
    assert database.fingerprint() == before


@pytest.mark.parametrize("name", ["harel_executions", "harel_alembic_version"])
@pytest.mark.parametrize("verb", [migrate.plan, migrate.upgrade])
def test_so_is_one_on_a_database_without_revision(verb, name, file):
    """The version table's name counts, and that of a table of the first revision."""
    file.rows(f"CREATE VIEW {name} AS SELECT '0001' AS version_num WHERE 0")
    with pytest.raises(SchemaMismatch, match=f"{name} is a view"):
        verb(file.target)


def test_what_is_not_in_the_way_does_not_hinder(file):
    """A trigger has names of its own, and a later name does not hinder an earlier revision."""
    migrate.upgrade(file.target, "0001")
    file.rows(
        "CREATE TRIGGER harel_definitions AFTER INSERT ON harel_trace BEGIN SELECT 1; END",
        "CREATE VIEW harel_timers_by_fire_at AS SELECT 1",
    )
    assert migrate.upgrade(file.target, "0003").after == "0003"


LIES = {
    "DROP TABLE harel_definitions": "harel_definitions",
    "DROP TABLE harel_executions": "harel_executions",
    "ALTER TABLE harel_timers DROP COLUMN fire_at": r"harel_timers\.fire_at",
}


@pytest.mark.parametrize("damage", LIES)
@pytest.mark.parametrize(
    "verb",
    [
        lambda target: migrate.upgrade(target, "0001"),
        lambda target: migrate.downgrade(target, "0002"),
        lambda target: migrate.stamp(target, "0002"),
        migrate.plan,
        migrate.upgrade,
        lambda target: migrate.downgrade(target, "base"),
        lambda target: migrate.downgrade(target, "0001", force=True),
    ],
)
def test_a_version_row_that_lies_is_named(verb, damage, database):
    """What the row promises and is not there is named with the next command; nothing is written."""
    migrate.upgrade(database.target, "0002")
    database.rows(damage)
    before = database.fingerprint()
    says = rf"says 0002, but there is no {LIES[damage]}; mend what `harel-schema check` names"
    with pytest.raises(SchemaMismatch, match=says) as caught:
        verb(database.target)
    assert "\n" not in str(caught.value)
    assert database.fingerprint() == before


def test_a_stamp_that_lied_is_mended_by_a_true_one(database):
    """Stamped head over the tables of 0001, a downgrade says so; the true stamp leads on."""
    migrate.upgrade(database.target, "0001")
    migrate.stamp(database.target, HEAD, force=True)
    with pytest.raises(SchemaMismatch, match=r"says .* but there is no harel_definitions, "):
        migrate.downgrade(database.target, "0003")
    migrate.stamp(database.target, "0001")
    assert migrate.upgrade(database.target).after == HEAD


@pytest.mark.parametrize(
    ("verb", "revision"),
    [
        (migrate.upgrade, "nope"),
        (migrate.upgrade, "+9"),
        (migrate.upgrade, ""),
        (migrate.plan, "0001:0002"),
        (migrate.downgrade, "-9"),
        (migrate.downgrade, "0003"),
        (migrate.stamp, "nope"),
    ],
)
def test_a_revision_that_no_step_leads_to_is_refused_in_our_words(verb, revision, database):
    """One line with the database, what was asked, and the command that lists the revisions."""
    migrate.upgrade(database.target, "0002")
    with pytest.raises(MigrationError) as caught:
        verb(database.target, revision)
    assert str(caught.value).startswith(f"{Target.parse(database.target)} cannot be ")
    assert f"{revision!r}" in caught.value.message
    assert caught.value.remedy == "`harel-schema history` lists the revisions"


@pytest.mark.parametrize("revision", ["base", "0001", "-1"])
def test_tables_without_a_revision_are_not_taken_back(revision, database):
    """Where harel made the tables there is no step to undo: they are to be taken over first."""
    migrate.upgrade(database.target)
    database.rows("DROP TABLE harel_alembic_version")
    before = database.fingerprint()
    with pytest.raises(MigrationError, match="has no revision from which to go back; take its"):
        migrate.downgrade(database.target, revision)
    assert database.fingerprint() == before


def test_many_differences_are_one_readable_line(database):
    """A shape of no revision: three differences, how many more, and the command for all of them."""
    database.rows(*(f"CREATE TABLE harel_{name} ({'x' * 500})" for name in TABLES))
    with pytest.raises(SchemaMismatch) as caught:
        migrate.upgrade(database.target)
    assert len(str(caught.value)) < 600
    assert len(caught.value.differences) > 9
    assert " more); mend what `harel-schema check` names" in str(caught.value)
