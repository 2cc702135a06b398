"""Reading SQL text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harel_schema.dbapi.statements import Kind, read, split
from harel_schema.errors import ProgrammingError

KINDS = [
    ("", Kind.EMPTY),
    (" ; -- nothing\n/* at all */", Kind.EMPTY),
    ("/* unterminated", Kind.EMPTY),
    ("SELECT 1", Kind.READ),
    ("values (1)", Kind.READ),
    ("-- why\n/* INSERT */ select 'INSERT'", Kind.READ),
    ("EXPLAIN INSERT INTO t VALUES (1)", Kind.READ),
    ("WITH a AS (SELECT 1), b(x) AS (VALUES (2)) SELECT * FROM a", Kind.READ),
    ("WITH a AS (SELECT 1) INSERT INTO t SELECT * FROM a", Kind.WRITE),
    ('WITH "select" AS (SELECT 1) DELETE FROM t', Kind.WRITE),
    ("/*c*/ INSERT INTO t VALUES (1)", Kind.WRITE),
    ("REPLACE INTO t VALUES (1)", Kind.WRITE),
    ("CREATE TABLE t (a)", Kind.SCHEMA),
    ("PRAGMA user_version = 1", Kind.PRAGMA),
    ("END", Kind.COMMIT),
    ("ROLLBACK TO a", Kind.ROLLBACK),
    ("SAVEPOINT a", Kind.SAVEPOINT),
    ("VACUUM", Kind.OUTSIDE),
    ("selec 1", Kind.UNKNOWN),
]


@pytest.mark.parametrize(("sql", "kind"), KINDS)
def test_kind(sql, kind):
    """A statement's kind is that of its main verb, past comments and WITH."""
    assert read(sql).kind is kind


@pytest.mark.parametrize(
    ("sql", "mode"),
    [
        ("BEGIN", "DEFERRED"),
        ("begin transaction", "DEFERRED"),
        ("BEGIN IMMEDIATE TRANSACTION", "IMMEDIATE"),
        ("BEGIN EXCLUSIVE", "EXCLUSIVE"),
        ("ROLLBACK TRANSACTION TO SAVEPOINT a", "TO"),
        ("ROLLBACK", ""),
    ],
)
def test_mode(sql, mode):
    """The mode of a BEGIN is read, and a ROLLBACK to a savepoint is told from a whole one."""
    assert read(sql).mode == mode


@pytest.mark.parametrize(
    ("sql", "count", "names"),
    [
        ("SELECT ?, ?", 2, None),
        ("SELECT ?3, ?", 4, None),
        ("SELECT :a, @b, $c, :a", 3, ("a", "b", "c")),
        ("SELECT '?', \"?\", [?], `?`, x'00' -- ?\n/* ? */", 0, None),
        ("SELECT 'it''s ?', ?", 1, None),
        ("SELECT a->'$.x' FROM t WHERE b = :b", 1, ("b",)),
    ],
)
def test_parameters(sql, count, names):
    """Placeholders are numbered as SQLite numbers them, outside of strings and comments."""
    assert (read(sql).count, read(sql).names) == (count, names)


@given(st.text(st.sampled_from("?:a1 '\"[]`-/*;()x\n,"), max_size=30))
def test_parameters_agree_with_sqlite(sql):
    """Whatever the text, where SQLite can prepare it, it takes the number of values we count."""
    import sqlite3  # noqa: PLC0415 - the oracle of this test

    statement = read("SELECT " + sql)
    names = statement.names
    # From 3.14 on stdlib refuses a sequence where the placeholders have names.
    values = (0,) * statement.count if names is None else dict.fromkeys(names, 0)
    connection = sqlite3.connect(":memory:")
    try:
        connection.execute(statement.body, values)
    except sqlite3.ProgrammingError as error:
        assert "bindings" not in str(error)  # noqa: PT017 - other errors are fine
    except (sqlite3.Error, sqlite3.Warning):
        pass
    finally:
        connection.close()


def test_split_keeps_a_trigger_whole():
    """A script is split at its semicolons, but not at those of a trigger or a string."""
    trigger = (
        "CREATE TEMP TRIGGER a AFTER INSERT ON t BEGIN "
        "SELECT CASE 1 WHEN 1 THEN 2 END; DELETE FROM t WHERE x = ';'; END"
    )
    script = f"; ;CREATE TABLE t (x); -- ;\n{trigger};\nINSERT INTO t VALUES ('a;b') ; "
    assert list(split(script)) == ["CREATE TABLE t (x)", trigger, "INSERT INTO t VALUES ('a;b')"]


@pytest.mark.parametrize(
    ("sql", "more"),
    [("SELECT 1;", False), ("SELECT 1; ; -- x", False), ("SELECT 1; SELECT 2", True)],
)
def test_more(sql, more):
    """Only another statement counts as more."""
    assert read(sql).more is more


@pytest.mark.parametrize("sql", ["SELECT '\0'", "SELECT '\ud800'"])
def test_text_that_no_driver_takes(sql):
    """A NUL or a lone surrogate in a statement is refused before a driver sees it."""
    with pytest.raises(ProgrammingError, match="holds"):
        read(sql)
