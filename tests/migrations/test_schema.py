"""One truth for the schema: the chain, the metadata, harel's own store, a replay."""

from __future__ import annotations

import hashlib
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest
import sqlalchemy as sa
from harel.engine.execution import Execution
from harel.engine.store import SqliteStore
from hypothesis import given, settings
from hypothesis import strategies as st

from harel_schema import LibsqlStore, dbapi, drift, engine, introspect, migrate, tables
from harel_schema.errors import MigrationError, TargetError
from tests.migrations.conftest import HEAD

if TYPE_CHECKING:
    from pathlib import Path

PREFIXES = ["harel", "Harel_2", "_", "p" * 30]

# A released revision is never edited: what it made is out there. Add a new one instead.
RELEASED = {
    "0001_store_tables.py": "ed6d5a22934b18fc303b67bb7f61b29b18a65b755339c1a15b133e492fe6dbb4",
    "0002_definitions.py": "4b5c3ecf7a53442ac7131a9ca14d08a73fbeeb9f4ed0c626061a51aa0b38562f",
    "0003_transport.py": "74d40562d54ef3978a29084b4b6eb1e1ee184b9fa041588560959603be85d9b7",
    "0004_indexes.py": "1eeed9da23fae549617303ca4f1850c86d67850807d3bbcf485a4950313ec5c4",
}


def shape(schema: introspect.Schema) -> introspect.Schema:
    """The tables without Alembic's own and SQLite's, which no downgrade drops."""
    others = ("_alembic_version", "sqlite_sequence")
    kept = [each for each in schema.tables if not each.name.endswith(others)]
    return introspect.Schema(tables=tuple(kept))


def differences(expected: introspect.Schema, found: introspect.Schema) -> list[str]:
    """Every difference as a line."""
    return [str(each) for each in drift.schema_differences(expected, found)]


def pragmas(connection: Any) -> dict[str, Any]:
    """What SQLite's PRAGMAs say about everything but Alembic's table."""
    names = [n for (n,) in connection.execute("SELECT name FROM sqlite_schema").fetchall()]
    kinds = ("table_xinfo", "index_list", "index_xinfo", "foreign_key_list")
    return {
        name: [connection.execute(f"PRAGMA {kind}('{name}')").fetchall() for kind in kinds]
        for name in names
        if "alembic_version" not in name
    }


@pytest.mark.parametrize("prefix", PREFIXES)
def test_0001_is_what_harel_makes(prefix, tmp_path):
    """0001 makes the six tables exactly as harel's own SqliteStore does, under any prefix."""
    SqliteStore(tmp_path / "harel.db", prefix=prefix).close()
    migrate.upgrade(tmp_path / "ours.db", "0001", prefix)
    sql = "SELECT type, name, tbl_name, sql FROM sqlite_schema WHERE name NOT LIKE '%_alembic_ver%'"
    with (
        closing(sqlite3.connect(tmp_path / "harel.db")) as theirs,
        closing(sqlite3.connect(tmp_path / "ours.db")) as ours,
    ):
        assert pragmas(ours) == pragmas(theirs)
        assert len(pragmas(ours)) == 6 + 4 + 1  # tables, keys, sqlite_sequence
        assert set(ours.execute(sql)) == set(theirs.execute(sql))


@pytest.mark.parametrize("prefix", PREFIXES)
def test_metadata_chain_and_replay_are_equal(prefix, database, tmp_path):
    """Metadata, the migrated database, its offline SQL and its replay have one schema."""
    migrate.upgrade(database.target, prefix=prefix)
    migrated = database.schema()
    with closing(dbapi.connect(":memory:")) as made:
        tables.metadata(prefix).create_all(engine.from_connection(made))
        assert not differences(shape(migrated), shape(introspect.read(made)))
    with closing(sqlite3.connect(tmp_path / "replayed.db")) as replayed:
        replayed.executescript(migrate.upgrade_sql(prefix=prefix))
        assert not differences(migrated, introspect.read(replayed))
        versions = replayed.execute(f"SELECT * FROM {prefix}_alembic_version").fetchall()
    assert versions == database.rows(f"SELECT * FROM {prefix}_alembic_version")
    with closing(dbapi.connect(":memory:")) as replayed_fast:
        for statement in migrate.schema_sql(prefix):
            replayed_fast.execute(statement)
        assert not differences(migrated, introspect.read(replayed_fast))


def test_a_store_made_database_is_a_migrated_one(database, tmp_path):
    """What a store creates is head, version row included, and an upgrade finds nothing to do."""
    LibsqlStore(database.target, prefix="p").close()
    migrate.upgrade(tmp_path / "other.db", prefix="p")
    with closing(dbapi.connect(tmp_path / "other.db")) as migrated:
        assert not differences(introspect.read(migrated), database.schema())
    done = migrate.upgrade(database.target, prefix="p")
    assert (done.before, done.applied, done.adopted) == (HEAD, (), ())


def test_metadata_is_not_blind(file):
    """The comparison above sees a column that only one side has."""
    migrate.upgrade(file.target)
    meta = tables.metadata()
    meta.tables["harel_trace"].append_column(sa.Column("extra", sa.Text))
    with closing(dbapi.connect(":memory:")) as made:
        meta.create_all(engine.from_connection(made))
        found = differences(shape(file.schema()), shape(introspect.read(made)))
    assert len(found) == 1


@pytest.mark.parametrize("revision", [each.revision for each in migrate.history()])
def test_each_downgrade_drops_exactly_what_its_upgrade_made(revision, database):
    """Up, down and up again pass through the same schemas, revision by revision."""
    down = next(r.down_revision for r in migrate.history() if r.revision == revision) or "base"
    migrate.upgrade(database.target, down) if down != "base" else None
    before = database.schema()
    migrate.upgrade(database.target, revision)
    after = database.fingerprint()
    migrate.downgrade(database.target, down)
    left = database.schema()
    assert shape(left) == shape(before)
    migrate.upgrade(database.target, revision)
    assert database.fingerprint() == after


@settings(max_examples=15)
@given(st.lists(st.sampled_from(["base", *(each.revision for each in migrate.history())])))
def test_every_way_leads_to_the_same_schema(ways):
    """Whatever ups and downs come before, a revision has the schema that its SQL makes."""
    chain = ["base", *(each.revision for each in migrate.history())]
    with closing(dbapi.connect(":memory:")) as walked, closing(dbapi.connect(":memory:")) as direct:
        at = "base"
        for to in ways:
            down = chain.index(to) < chain.index(at)
            (migrate.downgrade if down else migrate.upgrade)(walked, to)
            at = to
        for statement in migrate.schema_sql(revision=at) if at != "base" else ():
            direct.execute(statement)
        direct.commit()
        assert not differences(shape(introspect.read(direct)), shape(introspect.read(walked)))
        assert migrate.current(walked).revision == (None if at == "base" else at)


def test_harel_itself_works_on_the_migrated_schema(file):
    """Harel's own store finds everything in place: it makes nothing, saves and loads."""
    migrate.upgrade(file.target)
    before = file.fingerprint()
    store = SqliteStore(file.target)
    execution = Execution(id="a", definition_id="d")
    store.save(execution)
    assert store.load("a") == execution
    store.close()
    assert file.fingerprint() == before


def test_two_prefixes_and_an_application_share_one_database(database):
    """Each prefix has its own revision, and an application's alembic_version stays untouched."""
    database.rows(
        "CREATE TABLE alembic_version (version_num VARCHAR(32) NOT NULL)",
        "INSERT INTO alembic_version VALUES ('abc')",
        "CREATE TABLE executions (id INTEGER)",
    )
    migrate.upgrade(database.target, "0001", "a")
    migrate.upgrade(database.target, prefix="b")
    assert migrate.current(database.target, "a").revision == "0001"
    assert migrate.current(database.target, "b").revision == HEAD
    migrate.downgrade(database.target, "base", "a")
    assert migrate.current(database.target, "b").revision == HEAD
    assert database.rows("SELECT * FROM alembic_version") == [("abc",)]
    assert len(database.schema().tables) == 2 + 1 + (9 + 1) + 1


@pytest.mark.parametrize("prefix", ["", "1a", "a-b", "p" * 31, "é", "sqlite", "SQLite_x", "a\n"])
def test_a_bad_prefix_is_refused(prefix, tmp_path):
    """A prefix that harel or SQLite would not take is refused before a file is made."""
    with pytest.raises(TargetError, match="prefix"):
        migrate.upgrade(tmp_path / "state.db", prefix=prefix)
    with pytest.raises(TargetError, match="prefix"):
        migrate.schema_sql(prefix)
    assert not list(tmp_path.iterdir())


def test_the_chain_has_one_head():
    """The revisions are one chain, from one base to one head, each with a summary."""
    chain = migrate.history()
    assert [each.down_revision for each in chain] == [None, *(r.revision for r in chain[:-1])]
    assert all(each.summary for each in chain)


def test_schema_sql_refuses_an_unknown_revision():
    """An unknown revision is one clear line, not Alembic's exception."""
    with pytest.raises(MigrationError, match=r"nope.*harel-schema history"):
        migrate.schema_sql(revision="nope")


def test_released_revisions_are_never_edited(root: Path):
    """The text of a released revision is the one that was released, line ends aside."""
    folder = root / "migrations/versions"
    found = {
        path.name: hashlib.sha256(path.read_text().encode()).hexdigest()
        for path in folder.glob("*.py")
    }
    assert found == RELEASED
