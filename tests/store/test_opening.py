"""Opening: the schema is made once, an existing one is left alone, what is missing is named."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
import warnings
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest
from harel.engine.schema import store_schema, transport_schema

from harel_schema import LibsqlStore, StoreConflict
from harel_schema.errors import StoreError, TargetError
from harel_schema.models import Event, Execution
from harel_schema.revisions import schema_sql
from harel_schema.sql import REVISION, TABLES, statements
from tests.store.support import Opener, rows

if TYPE_CHECKING:
    from pathlib import Path

SCHEMA = "SELECT name, sql FROM sqlite_schema WHERE name LIKE '%harel%' ORDER BY name"


def prepare(opener: Opener, *sql: str) -> None:
    """Run statements on the opener's database, before any store is opened on it."""
    if str(opener.database).startswith("http"):
        from harel_schema.hrana import Client, Statement  # noqa: PLC0415

        with Client(opener.database) as client:
            for each in sql:
                client.execute(Statement(each))
        return
    with closing(sqlite3.connect(opener.database)) as connection:
        for each in sql:
            connection.execute(each)
        connection.commit()


def test_an_empty_database_is_migrated_to_head(open_store) -> None:
    """The tables and the version row are those of the migrations."""
    store = open_store()
    assert rows(store, "SELECT version_num FROM harel_alembic_version") == [(REVISION,)]
    with closing(sqlite3.connect(":memory:")) as oracle:
        for sql in schema_sql():
            oracle.execute(sql)
        assert rows(store, SCHEMA) == oracle.execute(SCHEMA).fetchall()


def test_prefixes_keep_apart(open_store) -> None:
    """Two prefixes in one database are two stores."""
    first, second = open_store(), open_store(prefix="other")
    first.save(Execution(id="e", definition_id="d"))
    assert second.load("e") is None
    second.save(Execution(id="e", definition_id="d"))
    with pytest.raises(StoreConflict):
        second.save(Execution(id="e", definition_id="d"))


@pytest.mark.parametrize("prefix", ["", "1a", "a-b", "a b", "a" * 31, 'a"; --', "é"])
def test_a_prefix_that_is_no_name_is_refused(prefix) -> None:
    """A prefix is checked before anything is opened."""
    with pytest.raises(TargetError):
        LibsqlStore(prefix=prefix)


def test_a_database_that_harel_made_opens(open_store) -> None:
    """The six tables of harel are enough; only definitions need the upgrade, and say so."""
    prepare(open_store, *store_schema("sqlite", "harel"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        store = open_store()
    exe = Execution(id="e", definition_id="d")
    assert store.commit(exe, [("t", Event(kind="k"))]) == [1]
    for call in (
        lambda: store.publish_definition("m", 1, "x", "{}"),
        lambda: store.load_definition("m", 1),
    ):
        with pytest.raises(StoreError, match="harel_definitions; run `harel-schema upgrade`"):
            call()


def test_a_database_in_which_the_transport_came_first_is_migrated(open_store) -> None:
    """Tables that harel's transport made are part of the schema; others of the name are not."""
    prepare(open_store, *transport_schema("sqlite", "harel"), *transport_schema("sqlite", "p"))
    prepare(open_store, "ALTER TABLE p_transport_groups ADD COLUMN extra")
    store = open_store()
    assert rows(store, "SELECT version_num FROM harel_alembic_version") == [(REVISION,)]
    with pytest.raises(StoreError, match="p_transport_groups already exists"):
        open_store(prefix="p")
    assert rows(store, "SELECT name FROM sqlite_schema WHERE name = 'p_executions'") == []


def test_an_older_schema_opens_with_a_warning(open_store) -> None:
    """A schema that lacks nothing the store needs is used as it is, with the command named."""
    prepare(open_store, *schema_sql("harel", "0001"))
    with pytest.warns(UserWarning, match=f"older than {REVISION}; run `harel-schema upgrade`"):
        store = open_store()
    assert "harel_definitions" not in dict(rows(store, SCHEMA))
    store.save(Execution(id="e", definition_id="d"))


def test_a_newer_schema_opens(open_store) -> None:
    """A worker goes on while a later version of the tools has upgraded the database."""
    prepare(open_store, *schema_sql(), "UPDATE harel_alembic_version SET version_num = '9999'")
    open_store().save(Execution(id="e", definition_id="d"))


def test_without_create_schema_nothing_is_made(open_store) -> None:
    """Missing tables are an error that names them and the command."""
    with pytest.raises(StoreError, match="run `harel-schema upgrade --prefix p` on it") as caught:
        open_store(create_schema=False, prefix="p")
    assert "p_executions, p_outbox" in str(caught.value)
    assert rows(open_store(), "SELECT name FROM sqlite_schema WHERE name LIKE 'p_%'") == []


def test_half_a_schema_is_refused(open_store) -> None:
    """Some of the tables are not completed behind the back of whoever owns them."""
    prepare(open_store, *store_schema("sqlite", "harel"), "DROP TABLE harel_trace")
    with pytest.raises(StoreError, match="no table harel_trace"):
        open_store()


@pytest.mark.parametrize("gone", [["harel_timers"], [f"harel_{table}" for table in TABLES]])
def test_a_version_row_that_lies_is_one_error(open_store, gone) -> None:
    """At head by its row and without its tables: named at the opening, and nothing is made."""
    prepare(open_store, *schema_sql(), *(f"DROP TABLE {table}" for table in gone))
    said = f"says that it is at revision {REVISION} and has no table {', '.join(gone)}; see what "
    with pytest.raises(StoreError, match=f"{said}`harel-schema check`"):
        open_store()


def test_a_foreign_version_table_is_named(open_store) -> None:
    """When the tables cannot be made the error says where to look."""
    prepare(open_store, "CREATE TABLE harel_alembic_version (version_num TEXT)")
    with pytest.raises(StoreError, match="harel-schema current"):
        open_store()


def test_an_application_may_share_the_database(open_store) -> None:
    """Tables of others, Alembic's own version table included, do not matter."""
    prepare(
        open_store,
        "CREATE TABLE alembic_version (version_num TEXT)",
        "CREATE TABLE executions (id)",
    )
    open_store().save(Execution(id="e", definition_id="d"))


OPEN = """
import sys
from harel_schema import LibsqlStore
from harel_schema.models import Execution
import harel_schema.revisions
print("ready", flush=True)
sys.stdin.readline()
with LibsqlStore(sys.argv[1]) as store:
    store.save(Execution(definition_id="d"))
"""


@pytest.mark.parametrize("kind", ["file", "server"])
def test_many_may_open_an_empty_database_at_once(request, kind, tmp_path: Path) -> None:
    """One process creates the schema; the others wait for it, and all of them can work."""
    name = str(tmp_path / "state.db")
    if kind == "server":
        name = request.getfixturevalue("sqld_url")
    command = [sys.executable, "-W", "error", "-c", OPEN, name]
    pipe = subprocess.PIPE
    children = [subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) for _ in range(4)]
    for child in children:
        assert child.stdout.readline() == "ready\n"
    for child in children:
        child.stdin.write("\n")
        child.stdin.flush()
    for child in children:
        child.communicate()
    assert [child.returncode for child in children] == [0] * 4
    with LibsqlStore(name) as store:
        assert len(store.list_executions().items) == 4


def pragma(store: LibsqlStore, name: str) -> Any:
    """Return the value of a pragma."""
    return rows(store, f"PRAGMA {name}")[0][0]


@pytest.mark.parametrize("driver", ["libsql", "sqlite3"])
def test_a_local_file_is_durable_by_default(driver) -> None:
    """WAL with synchronous=FULL, or NORMAL when that is chosen; memory needs no WAL."""
    with LibsqlStore("state.db", driver=driver) as store:
        assert (pragma(store, "journal_mode"), pragma(store, "synchronous")) == ("wal", 2)
    with LibsqlStore("state.db", driver=driver, durability="normal") as store:
        assert (pragma(store, "journal_mode"), pragma(store, "synchronous")) == ("wal", 1)
    with LibsqlStore(driver=driver) as store:
        assert pragma(store, "journal_mode") == "memory"


@pytest.mark.parametrize(
    ("settings", "error"),
    [
        ({"driver": "postgres"}, ValueError),
        ({"durability": "off"}, ValueError),
        ({"sync_interval": 1.0}, ValueError),
        ({"sync_url": "elsewhere.db"}, TargetError),
        ({"database": ":memory:", "sync_url": "http://127.0.0.1:1"}, TargetError),
        ({"auth_token": "secret"}, TargetError),
        ({"database": "nowhere/state.db"}, TargetError),
        ({"database": "ftp://host"}, TargetError),
        ({"database": "."}, TargetError),
    ],
)
def test_bad_settings_are_one_clear_error(settings, error, tmp_path: Path) -> None:
    """What cannot be opened is refused before a file is made, without showing a token."""
    with pytest.raises(error) as caught:
        LibsqlStore(**{"database": "state.db"} | settings)
    assert "\n" not in str(caught.value)
    assert "secret" not in str(caught.value)
    assert list(tmp_path.iterdir()) == []


def test_a_token_is_never_shown(sqld_url) -> None:
    """The repr of a store on a server has no token in it."""
    with LibsqlStore(f"{sqld_url}?authToken=sesame") as store:
        assert "sesame" not in repr(store)
        assert sqld_url.removeprefix("http://") in repr(store)


def test_statements_are_built_once_a_prefix() -> None:
    """The hot path builds no SQL."""
    assert statements("p") is statements("p")
    assert json.dumps(statements("p").load).find("{p}") == -1


def test_the_store_is_written_for_head() -> None:
    """The revision that the store knows is the head of the chain."""
    assert schema_sql() == schema_sql("harel", REVISION)
