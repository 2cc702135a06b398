"""The command ``alembic`` itself, from the repository's ``alembic.ini``."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from harel.engine.schema import sql_schema

from harel_schema import migrate
from harel_schema.testing import JwtKey, sqld_server
from tests.migrations.conftest import CHAIN, HEAD


def test_the_whole_life_of_a_database(database, alembic):
    """upgrade, current, check, history, stamp and downgrade work on a file and on sqld."""
    target = ("-x", f"target={database.target}")
    _, err = alembic.run(*target, "upgrade", "head")
    steps = [line.rsplit(": ")[-1] for line in err.splitlines()]
    assert steps == [f"upgraded to {each}" for each in CHAIN]
    assert alembic.run(*target, "current") == (f"{HEAD} (head)\n", "")
    assert alembic.run(*target, "check") == ("No new upgrade operations detected.\n", "")
    assert f"{CHAIN[-2]} -> {HEAD} (head)" in alembic.run("history")[0]
    alembic(*target, "downgrade", "-1")
    assert "not the shape of" in alembic.refused(*target, "stamp", "head")
    alembic(*target, "upgrade", "head")
    alembic(*target, "-x", "force=true", "stamp", CHAIN[-2])
    assert migrate.current(database.target).revision == CHAIN[-2]
    alembic(*target, "stamp", "head")
    assert migrate.current(database.target).revision == HEAD


def test_check_is_clean_beside_other_tables(database, alembic):
    """Other people's tables, the transport's and another prefix's are hidden from autogenerate."""
    target = ("-x", f"target={database.target}")
    database.rows(
        *sql_schema("sqlite"),
        "CREATE TABLE orders (id INTEGER PRIMARY KEY, x TEXT)",
        "CREATE INDEX orders_x ON orders (x)",
        "CREATE TABLE harel_orders (id)",
        "CREATE VIEW v AS SELECT 1 AS one",
    )
    alembic(*target, "upgrade", "head")
    alembic(*target, "-x", "prefix=harel_b", "upgrade", "head")
    for prefix in ("harel", "harel_b"):
        alembic(*target, "-x", f"prefix={prefix}", "check")


def test_check_sees_a_column_too_many(file, alembic):
    """The clean checks above are not blind."""
    migrate.upgrade(file.target)
    file.rows("ALTER TABLE harel_trace ADD COLUMN extra TEXT")
    assert "extra" in alembic.refused("-x", f"target={file.target}", "check")


def test_autogenerate_makes_an_empty_revision(database, extended, tmp_path):
    """`revision --autogenerate` on a migrated database finds nothing to do."""
    alembic = extended("def upgrade():\n    pass\n\n\ndef downgrade():\n    pass\n")
    target = ("-x", f"target={database.target}")
    alembic(*target, "upgrade", "head")
    folder = tmp_path / "extra"
    arguments = ("--autogenerate", "-m", "empty", "--version-path", str(folder), "--rev-id", "0999")
    alembic(*target, "revision", *arguments)
    text = (folder / "0999_empty.py").read_text()
    assert text.count("    pass\n") == 2
    assert "op." not in text.split("def upgrade")[1]


def test_sql_replays_to_the_same_schema(file, alembic, tmp_path):
    """`upgrade --sql` opens nothing, and its text makes the schema that `upgrade` makes."""
    script, _ = alembic.run("-x", f"target={file.target}", "upgrade", "head", "--sql")
    assert not list(tmp_path.iterdir())
    with closing(sqlite3.connect(file.target)) as connection:
        connection.executescript(script)
    replayed = file.fingerprint()
    Path(file.target).unlink()
    migrate.upgrade(file.target)
    assert [row[:3] for row in replayed[:-1]] == [row[:3] for row in file.fingerprint()[:-1]]
    assert replayed[-1] == file.fingerprint()[-1] == [(HEAD,)]


def test_the_environment_names_the_database(alembic, monkeypatch):
    """Without -x: HAREL_SCHEMA_TARGET and HAREL_PREFIX, else state.db and harel; -x wins."""
    alembic("upgrade", "head")
    monkeypatch.setenv("HAREL_SCHEMA_TARGET", "a.db")
    monkeypatch.setenv("HAREL_PREFIX", "p")
    alembic("upgrade", "head")
    alembic("-x", "target=b.db", "-x", "prefix=q", "upgrade", "0001")
    for name, prefix in (("state", "harel"), ("a", "p"), ("b", "q")):
        assert migrate.current(f"{name}.db", prefix).revision is not None


def test_looking_creates_no_file(alembic):
    """A file that does not exist is not made by `current` and `check`."""
    assert "no such file" in alembic.refused("current")
    assert "not up to date" in alembic.refused("check")
    assert [path.name for path in Path().iterdir()] == ["quiet.ini"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("-x", "target=missing/x.db", "upgrade", "head"), "the folder missing does not exist"),
        (("-x", "target=", "upgrade", "head"), "no database is named"),
        (("-x", "prefix=", "upgrade", "head"), "'' is no prefix"),
        (("-x", "target=.", "upgrade", "head"), "is a directory"),
        (("-x", "target=mysql://h/x", "upgrade", "head"), "unknown scheme mysql"),
        (("-x", "target=http://127.0.0.1:1", "upgrade", "head"), "127.0.0.1:1"),
        (("-x", "target=quiet.ini", "upgrade", "head"), "not a SQLite database"),
        (("-x", "prefix=a-b", "upgrade", "head"), "'a-b' is no prefix"),
        (("-x", "taget=x", "upgrade", "head"), "unknown -x taget; known: target, prefix, force"),
        (("-x", "force=maybe", "downgrade", "base"), "neither true nor false"),
        (("upgrade", "nope"), "nope"),
    ],
)
def test_bad_input_is_one_line(arguments, message, alembic):
    """A mistake is one line, without a traceback, and writes nothing."""
    assert message in alembic.refused(*arguments)
    assert [path.name for path in Path().iterdir()] == ["quiet.ini"]


def test_a_database_ahead_is_named_as_ahead(database, alembic):
    """A revision of a later version is not Alembic's "can't locate revision"."""
    migrate.upgrade(database.target)
    database.rows("UPDATE harel_alembic_version SET version_num = '0999'")
    for command in (("current",), ("upgrade", "head"), ("check",)):
        line = alembic.refused("-x", f"target={database.target}", *command)
        assert "the database is ahead" in line


def test_downgrade_keeps_rows_without_force(file, alembic):
    """`alembic downgrade` drops rows only with -x force=true."""
    target = ("-x", f"target={file.target}")
    migrate.upgrade(file.target)
    file.rows("INSERT INTO harel_outbox (event) VALUES ('a')")
    assert "harel_outbox (1 row)" in alembic.refused(*target, "downgrade", "base")
    alembic(*target, "-x", "force=true", "downgrade", "base")
    assert migrate.current(file.target).revision is None


def test_tokens_come_from_the_environment_and_are_never_shown(alembic, tmp_path, monkeypatch):
    """A server's token comes from the environment or the target, and no message shows it."""
    key = JwtKey()
    token = key.token()
    with sqld_server(tmp_path / "sqld", auth_key=key.public) as server:
        alembic("-x", f"target={server.url}?authToken={token}", "upgrade", "0001")
        monkeypatch.setenv("HAREL_LIBSQL_AUTH_TOKEN", token)
        alembic("-x", f"target={server.url}", "upgrade", "head")
        monkeypatch.setenv("TURSO_AUTH_TOKEN", "wrong-token-123")
        line = alembic.refused("-x", f"target={server.url}", "current")
    assert server.url in line
    assert "wrong-token-123" not in line
