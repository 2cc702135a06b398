"""A live schema is read whole, from whatever connection, and agrees with SQLite's own PRAGMAs."""

from __future__ import annotations

import sqlite3

import pytest

from harel_schema import dbapi, introspect
from harel_schema.introspect import Generated, Key, Schema, Table, Term
from tests.drift import zoo
from tests.drift.support import schema


@pytest.fixture(scope="module")
def animals() -> introspect.Schema:
    """Read the schema of every clause there is."""
    return schema(*zoo.STATEMENTS)


def test_facts_of_the_text_and_of_the_pragmas_are_joined(animals):
    """A column shows its type, its affinity and what only the statement's text says."""
    keys = animals.table("KEYS")
    assert [(c.name, c.type, c.affinity, c.default) for c in keys.columns] == [
        ("a", "TEXT", "TEXT", None),
        ("b", "TEXT", "TEXT", "'B'"),
        ("c", "INTEGER", "INTEGER", "-1"),
        ("d", "REAL", "REAL", "1.5 + 1"),
        ("e", "BLOB", "BLOB", "x'00ff'"),
        ("f", "", "BLOB", None),
    ]
    assert keys.by_name["a"].not_null_conflict == "IGNORE"
    assert keys.by_name["b"].collation == "NOCASE"
    assert keys.without_rowid


def test_keys_have_order_direction_collation_and_conflict(animals):
    """A primary key and UNIQUE constraints are told apart, each with its clauses."""
    keys = animals.table("keys")
    assert keys.primary_key == Key(
        terms=(Term(text="a", desc=True), Term(text="b", collation="NOCASE")), conflict="REPLACE"
    )
    assert [str(key) for key in keys.uniques] == [
        "(b COLLATE NOCASE, c) ON CONFLICT FAIL",
        "(d COLLATE RTRIM)",
    ]


def test_a_rowid_alias_is_known(animals):
    """INTEGER PRIMARY KEY is the rowid; INT PRIMARY KEY is not."""
    assert animals.table("checks").rowid_alias == "id"
    assert animals.table("checks").autoincrement
    assert animals.table("foreigners").rowid_alias is None
    assert animals.table("foreigners").primary_key is not None


def test_generated_columns_keep_expression_and_storage(animals):
    """A generated column says what it computes and whether it is stored."""
    table = animals.table("generated")
    assert table.by_name["c"].generated == Generated(expression="a * 2", stored=True)
    assert table.by_name["d"].generated == Generated(expression="upper(b) || '!'", stored=False)
    assert (table.by_name["c"].hidden, table.by_name["d"].hidden) == (3, 2)
    assert table.strict


def test_foreign_keys_name_the_parent_s_key_and_their_deferral(animals):
    """A reference without columns means the parent's primary key; deferral comes from the text."""
    assert [str(key) for key in animals.table("foreigners").foreign_keys] == [
        "(p) REFERENCES parent (id) ON DELETE CASCADE",
        "(q) REFERENCES parent (code) ON UPDATE SET NULL DEFERRABLE INITIALLY DEFERRED",
        "(r) REFERENCES parent (id)",
    ]


def test_indexes_triggers_and_views_are_read(animals):
    """Expressions, direction, collation and WHERE of an index; the body of triggers and views."""
    (index,) = animals.table("plain").indexes
    assert [str(term) for term in index.terms] == ["a COLLATE NOCASE DESC", "lower(b)", "n"]
    assert (index.unique, index.where) == (True, "n > 1 and b is not null")
    (trigger,) = animals.table("plain").triggers
    assert trigger.body.startswith("before update of a on plain for each row when new.n > 1")
    assert [view.name for view in animals.views] == ["busy"]


def test_a_constraint_name_stays_in_force_as_sqlite_has_it():
    """SQLite names a CHECK after a CONSTRAINT that stands before another clause of the column."""
    statement = "CREATE TABLE t (a INT CONSTRAINT n NOT NULL CHECK (a > 0), b CHECK (b > 0))"
    checks = schema(statement).table("t").checks
    assert [(check.name, check.expression) for check in checks] == [
        (None, "b > 0"),
        ("n", "a > 0"),
    ]
    connection = sqlite3.connect(":memory:")
    connection.execute(statement)
    with pytest.raises(sqlite3.IntegrityError, match=r"failed: n$"):
        connection.execute("INSERT INTO t VALUES (-1, 1)")
    connection.close()


def test_values_are_frozen_and_equal_by_content(animals):
    """A schema is a value: it cannot be changed, and equals another reading of the same."""
    with pytest.raises(ValueError, match="frozen"):
        animals.tables[0].name = "other"
    assert animals == schema(*zoo.STATEMENTS)


@pytest.mark.parametrize("driver", ["sqlite3", "libsql"])
def test_our_connections_and_plain_ones_read_the_same(driver, animals, tmp_path):
    """A connection of ours reads what stdlib's reads, on stdlib's SQLite and on libSQL's."""
    connection = dbapi.connect(str(tmp_path / "zoo.db"), driver=driver)
    for statement in zoo.STATEMENTS:
        connection.execute(statement)
    connection.commit()
    assert introspect.read(connection) == animals
    assert not connection.in_transaction
    connection.close()


def test_reading_leaves_an_open_transaction_open():
    """What is read inside a transaction sees it, and does not end it."""
    connection = sqlite3.connect(":memory:", isolation_level=None)
    connection.execute("BEGIN")
    connection.execute("CREATE TABLE t (a)")
    assert introspect.read(connection).table("t") is not None
    assert connection.in_transaction
    connection.rollback()
    assert introspect.read(connection).tables == ()
    connection.close()


def test_names_in_any_spelling_are_read(animals):
    """Names with spaces, quotes, reserved words and other scripts come back as they are."""
    del animals
    names = ["a b", 'q"q', "select", "größe", "x'y", "a.b", "[z]"]
    columns = ", ".join('"' + name.replace('"', '""') + '" TEXT CHECK (1)' for name in names)
    found = schema(f"CREATE TABLE 'odd one' ({columns})", 'CREATE INDEX "i i" ON "odd one" ("a b")')
    table = found.table("odd one")
    assert [column.name for column in table.columns] == names
    assert [check.expression for check in table.checks] == ["1"] * len(names)
    assert table.indexes[0].terms[0].text == "a b"


@pytest.mark.parametrize("tables", [1, 200])
def test_the_number_of_queries_does_not_grow_with_the_schema(tables):
    """One query a kind of thing, whatever is in the database."""
    queries: list[str] = []
    connection = sqlite3.connect(":memory:")
    for n in range(tables):
        connection.execute(f"CREATE TABLE t{n} (a UNIQUE, b REFERENCES t{n} (a))")
    connection.commit()
    # SQLite's own statements, such as those of the PRAGMAs, begin with a comment.
    connection.set_trace_callback(lambda sql: None if sql.startswith("--") else queries.append(sql))
    introspect.read(connection, prefix="harel")
    connection.set_trace_callback(None)
    connection.close()
    assert len([sql for sql in queries if sql.startswith("SELECT")]) == 5


def test_a_changed_copy_of_a_schema_knows_its_own_tables():
    """What a schema has looked up before is not what its copy finds."""
    found = Schema(tables=(Table(name="a", columns=()),))
    assert found.table("a") is not None
    assert found.model_copy(update={"tables": ()}).table("a") is None
