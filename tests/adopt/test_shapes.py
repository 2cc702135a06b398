"""What counts is the exact set of shapes: tables of other applications are never touched."""

from __future__ import annotations

import pytest

from harel_schema import LibsqlStore, dbapi, drift, migrate
from harel_schema.errors import MigrationError, SchemaMismatch, StoreError, TargetError
from tests.adopt.conftest import STORE, Database

# Of another application, beside rows of its own.
STRANGERS = [
    "CREATE TABLE executions (id INTEGER PRIMARY KEY, command TEXT, exit_code INTEGER)",
    "CREATE TABLE groups (id INTEGER PRIMARY KEY, name TEXT UNIQUE)",
    "CREATE TABLE messages (id INTEGER PRIMARY KEY, body TEXT)",
    "CREATE TABLE trace (at REAL, line TEXT)",
    "INSERT INTO executions (command) VALUES ('ls')",
    "INSERT INTO groups (name) VALUES ('wheel')",
    "INSERT INTO messages (body) VALUES ('hello')",
]


@pytest.fixture
def strange(tmp_path):
    """Return a database of another application that uses harel's old names."""
    database = Database(str(tmp_path / "theirs.db"))
    database.rows(*STRANGERS)
    return database


def test_another_application_is_not_touched(strange):
    """Adopt finds nothing of harel's; an upgrade makes its own tables beside theirs."""
    before = strange.fingerprint()
    with pytest.raises(MigrationError, match=r"nothing that harel made.*harel-schema upgrade"):
        migrate.adopt(strange.target)
    assert strange.fingerprint() == before
    theirs = {table.name: table for table in strange.schema().tables}
    rows = {name: strange.rows(f"SELECT * FROM {name}") for name in theirs}
    migrate.upgrade(strange.target)
    assert migrate.adopt(strange.target).renamed == ()
    after = {table.name: table for table in strange.schema().tables}
    assert {name: after[name] for name in theirs} == theirs
    assert {name: strange.rows(f"SELECT * FROM {name}") for name in theirs} == rows


@pytest.mark.parametrize("dry_run", [False, True])
@pytest.mark.parametrize("columns", ["a", "id", "data", "id, data"])
def test_their_table_of_our_name_is_refused_by_what_differs(columns, dry_run, strange):
    """A table with the prefix that is in no shape of ours: the difference, not an error of SQL."""
    strange.rows(f"CREATE TABLE harel_executions ({columns})")
    before = strange.fingerprint()
    with pytest.raises(SchemaMismatch, match=r"shape of no revision: column-.* harel_executions"):
        migrate.adopt(strange.target, dry_run=dry_run)
    assert strange.fingerprint() == before


def test_a_few_tables_like_harels_are_somebody_elses(strange):
    """Three tables that look exactly like harel's are not a database of harel."""
    strange.rows("DROP TABLE executions", "DROP TABLE trace")
    for statement in migrate.schema_sql(revision="0001")[1:4]:
        strange.rows(statement.replace("harel_", ""))
    before = strange.fingerprint()
    with pytest.raises(MigrationError, match="nothing that harel made"):
        migrate.adopt(strange.target)
    assert strange.fingerprint() == before
    assert migrate.upgrade(strange.target).before is None


def test_their_groups_beside_harels_messages(file):
    """Harel 0.1 has no groups: a table of that name is another application's, and stays."""
    database = file("0.1.4")
    database.rows("CREATE TABLE groups (id INTEGER PRIMARY KEY, name TEXT)")
    database.rows("INSERT INTO groups VALUES (1, 'wheel')")
    messages = database.rows("SELECT DISTINCT group_id FROM messages ORDER BY 1")
    done = migrate.adopt(database.target)
    assert done.notes == ("groups is not harel's: left as it is",)
    assert database.rows("SELECT * FROM groups") == [(1, "wheel")]
    assert database.rows("SELECT group_id FROM harel_transport_groups ORDER BY 1") == messages
    assert not drift.check(database.target)


def test_the_store_alone(file):
    """A file with the store only is adopted, and gets the transport's tables empty."""
    database = file("0.6.1")
    database.rows("DROP TABLE messages", "DROP TABLE groups")
    done = migrate.adopt(database.target)
    assert len(done.renamed) == len(STORE)
    assert database.rows("SELECT * FROM harel_transport_messages") == []
    assert not drift.check(database.target, strict=True)


def test_the_transport_alone(file):
    """A file with the queue only is adopted, and gets the store's tables empty."""
    database = file("0.6.1")
    for name in STORE:
        database.rows(f"DROP TABLE {name}")
    messages = database.rows("SELECT * FROM messages")
    plan = migrate.adopt(database.target, dry_run=True)
    done = migrate.adopt(database.target)
    assert plan.applied == done.applied
    assert [old for old, _ in done.renamed] == ["groups", "messages"]
    assert database.rows("SELECT * FROM harel_transport_messages") == messages
    assert not drift.check(database.target, strict=True)


CHANGES = {
    "by_definition": ["CREATE INDEX by_definition ON executions (definition_id)"],
    "executions.tenant": ["ALTER TABLE executions ADD COLUMN tenant TEXT"],
    "groups.weight": ["ALTER TABLE groups ADD COLUMN weight INTEGER"],
    "messages.weight": ["ALTER TABLE messages ADD COLUMN weight INTEGER"],
    "guard": ["CREATE TRIGGER guard BEFORE DELETE ON trace BEGIN SELECT RAISE(ABORT, 'no'); END"],
    "messages_by_group": [
        "DROP INDEX messages_by_group",
        "CREATE INDEX messages_by_group ON messages (seq)",
    ],
    "table-missing trace": ["DROP TABLE trace"],
}


@pytest.mark.parametrize("place", CHANGES)
def test_changed_tables_are_refused_with_the_difference(place, file):
    """A database of harel's that somebody changed is left alone, by adopt and by upgrade."""
    database = file("0.6.1")
    database.rows(*CHANGES[place])
    before = database.fingerprint()
    for command in (migrate.adopt, migrate.upgrade):
        with pytest.raises(SchemaMismatch, match=place) as caught:
            command(database.target)
        assert caught.value.differences
        assert "\n" not in str(caught.value)
        assert "harel-schema adopt" in str(caught.value)
    assert database.fingerprint() == before


@pytest.mark.parametrize("gone", [["groups_by_last_claimed"], ["messages_by_group"]])
def test_an_index_that_is_not_there_yet_is_made(gone, file):
    """Harel makes each index at an open of its own: one may be missing."""
    database = file("0.6.1")
    database.rows(*(f"DROP INDEX {name}" for name in gone))
    migrate.adopt(database.target)
    assert not drift.check(database.target, strict=True)


@pytest.mark.parametrize("written", ["quoted", "spaced", "shouted"])
def test_the_text_of_the_statements_does_not_count(written, tmp_path):
    """Tables are compared by what SQLite makes of them, not by how they were typed."""
    database = Database(str(tmp_path / "state.db"))
    for statement in migrate.schema_sql(revision="0001")[1:-1]:
        plain = statement.replace("harel_", "")
        name = plain.split()[2]
        match written:
            case "quoted":
                plain = plain.replace(f"TABLE {name}", f'TABLE "{name}"', 1)
            case "spaced":
                plain = plain.replace(", ", " ,\n\t")
            case "shouted":
                plain = plain.upper()
        database.rows(plain)
    database.rows("INSERT INTO trace VALUES ('e', 0, '{}')")
    assert len(migrate.adopt(database.target).renamed) == len(STORE)
    assert database.rows("SELECT * FROM harel_trace") == [("e", 0, "{}")]
    assert not drift.check(database.target)


def test_views_and_foreign_keys_of_others_follow_the_tables(file):
    """What an application built on harel's tables reads them under their new names."""
    database = file("0.6.1")
    database.rows(
        "CREATE VIEW mine AS SELECT id FROM executions",
        "CREATE TABLE notes (execution TEXT REFERENCES executions (id), note TEXT)",
        "INSERT INTO notes VALUES ('waiting', 'slow')",
    )
    names = database.rows("SELECT * FROM mine ORDER BY 1")
    migrate.adopt(database.target)
    assert database.rows("SELECT * FROM mine ORDER BY 1") == names
    (notes,) = [table for table in database.schema().tables if table.name == "notes"]
    assert notes.foreign_keys[0].parent == "harel_executions"


def test_what_sqlite_refuses_is_undone(file):
    """A broken view of somebody's makes SQLite refuse the rename: one line, nothing changed."""
    database = file("0.1.4")
    database.rows("CREATE VIEW broken AS SELECT 1 FROM nowhere")
    before = database.fingerprint()
    with pytest.raises(MigrationError, match=r"rolled back.*broken"):
        migrate.adopt(database.target)
    assert database.fingerprint() == before


def test_an_empty_database_and_a_missing_file_are_refused(tmp_path):
    """Adopt makes nothing: it says what does."""
    with pytest.raises(TargetError, match="no such file"):
        migrate.adopt(tmp_path / "missing.db")
    (tmp_path / "empty.db").touch()
    with pytest.raises(MigrationError, match="harel-schema upgrade"):
        migrate.adopt(tmp_path / "empty.db")
    assert [path.name for path in tmp_path.iterdir()] == ["empty.db"]
    assert (tmp_path / "empty.db").stat().st_size == 0


@pytest.mark.parametrize("release", ["0.1.4", "0.6.1"])
def test_a_store_and_a_check_name_adopt(release, file):
    """A store makes no second set of tables beside the old ones; a check has one line for them."""
    database = file(release)
    before = database.fingerprint()
    with pytest.raises(StoreError, match=r"harel before 0\.7; run `harel-schema adopt`"):
        LibsqlStore(database.target, driver="sqlite3")
    checked = drift.check(database.target, prefix="work")
    (found,) = checked
    assert checked.others == ()
    assert (found.kind, found.fix) == ("version-missing", "harel-schema adopt --prefix work")
    assert database.fingerprint() == before
    migrate.adopt(database.target)
    LibsqlStore(database.target, driver="sqlite3").close()


def test_an_open_connection_is_used_and_left_open(file):
    """Adoption works on a connection, and refuses one in a transaction."""
    connection = dbapi.connect(file("0.6.1").target)
    connection.begin()
    with pytest.raises(MigrationError, match="in a transaction"):
        migrate.adopt(connection)
    connection.rollback()
    assert migrate.adopt(connection).renamed
    assert connection.execute("SELECT count(*) FROM harel_executions").fetchone() != (0,)
    connection.close()
