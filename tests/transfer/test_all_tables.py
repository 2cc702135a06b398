"""With `all_tables`, a file full of odd things comes over whole."""

from __future__ import annotations

import pytest

from harel_schema.errors import TransferError
from harel_schema.transfer import Limits, copy
from harel_schema.verify import verify
from tests.transfer.support import (
    EDGES,
    contents,
    definitions,
    edit,
    fetch,
    make_source,
    stopping_copy,
)

ODD = (
    "CREATE TABLE wr (a TEXT COLLATE NOCASE, b, PRIMARY KEY (b DESC, a)) WITHOUT ROWID",
    "INSERT INTO wr VALUES ('a', 1), ('B', 1), ('c', 2.5), ('', x''), ('x', 'text')",
    "CREATE TABLE st (i INTEGER PRIMARY KEY, x ANY, t TEXT) STRICT",
    "INSERT INTO st VALUES (1, '1', 'a'), (-5, 1.0, 'b'), (9, x'00', NULL)",
    "CREATE TABLE gen (a INT, b AS (a * 2) STORED, c TEXT AS ('x' || a), d)",
    "INSERT INTO gen (a, d) VALUES (1, 'one'), (NULL, 'none')",
    "CREATE TABLE bare (x)",
    "INSERT INTO bare (rowid, x) VALUES (-9223372036854775808, 'least'), (7, NULL), (9, 'nine')",
    "CREATE TABLE hidden_rowid (rowid TEXT, x)",
    "INSERT INTO hidden_rowid (_rowid_, rowid, x) VALUES (12, 'twelve', 1), (3, 'three', 2)",
    'CREATE TABLE "select" ("from" PRIMARY KEY, "a b", "q""uote", "ключ" UNIQUE)',
    "INSERT INTO \"select\" VALUES ('k', 1, 2, 'u'), ('K', 3, 4, 'v')",
    "CREATE TABLE parent (id INTEGER PRIMARY KEY, child REFERENCES child (id))",
    "CREATE TABLE child (id INTEGER PRIMARY KEY, parent NOT NULL REFERENCES parent (id))",
    "INSERT INTO parent VALUES (1, 10), (2, 20)",
    "INSERT INTO child VALUES (10, 2), (20, 1), (30, 77)",
    "CREATE TABLE counted (n INTEGER PRIMARY KEY AUTOINCREMENT, x)",
    "INSERT INTO counted VALUES (5000000000, 'far'), (1, 'near')",
    "CREATE TABLE never (n INTEGER PRIMARY KEY AUTOINCREMENT)",
    "CREATE TABLE log (line)",
    "CREATE TRIGGER noted AFTER INSERT ON bare BEGIN INSERT INTO log VALUES (new.x); END",
    "CREATE TRIGGER refuse BEFORE INSERT ON st BEGIN SELECT RAISE(ABORT, 'no'); END",
    "CREATE VIEW seen AS SELECT * FROM later",
    "CREATE VIEW later AS SELECT x FROM bare",
    "CREATE TRIGGER into_view INSTEAD OF INSERT ON seen BEGIN SELECT 1; END",
    "CREATE UNIQUE INDEX part ON bare (lower(x) DESC) WHERE x NOT NULL",
    "CREATE TABLE coll (k TEXT COLLATE NOCASE, PRIMARY KEY (k COLLATE BINARY))",
    "INSERT INTO coll VALUES ('b'), ('B'), ('a'), ('A'), ('c')",
    "CREATE TABLE defaults (x DEFAULT 5, y TEXT DEFAULT 'd')",
    "INSERT INTO defaults VALUES (NULL, NULL)",
    "CREATE TABLE alembic_version (version_num VARCHAR(32) PRIMARY KEY)",
    "INSERT INTO alembic_version VALUES ('of the application')",
)
CHECKED = ("bare", "hidden_rowid", "defaults", "gen")


@pytest.fixture
def odd(tmp_path):
    """Return a file full of odd things, harel's tables among them."""
    path = make_source(tmp_path / "odd.db", executions=4)
    edit(path, *ODD)
    return path


def test_everything_comes_over_and_back(odd, sqld_url, target_file):
    """Tables of every kind, their rowids, sequences, views, triggers and indexes are the same."""
    copy(odd, sqld_url, all_tables=True, limits=Limits(rows=2))
    copy(sqld_url, target_file, all_tables=True, limits=Limits(rows=3))
    assert definitions(odd) == definitions(sqld_url) == definitions(target_file)
    assert contents(odd) == contents(sqld_url) == contents(target_file)
    for table in CHECKED:
        rowid = "_rowid_" if table == "hidden_rowid" else "rowid"
        sql = f"SELECT {rowid} FROM {table} ORDER BY 1"
        assert fetch(odd, sql) == fetch(sqld_url, sql) == fetch(target_file, sql)
    assert verify(odd, sqld_url, all_tables=True).equal
    assert verify(sqld_url, target_file, all_tables=True).equal
    assert copy(odd, sqld_url, all_tables=True).action == "already equal"


def test_no_trigger_fires(odd, dest):
    """A trigger is made after the rows: the log has the source's lines and no other."""
    copy(odd, dest, all_tables=True)
    assert fetch(dest, "SELECT * FROM log") == fetch(odd, "SELECT * FROM log") == []


def test_stopped_and_resumed(odd, dest):
    """A copy of everything that is stopped at any batch ends equal, triggers and views too."""
    stopping_copy(odd, dest, all_tables=True, limits=Limits(rows=2))
    assert definitions(dest) == definitions(odd)
    assert contents(dest) == contents(odd)


def test_replace_takes_the_place_of_everything_named_alike(odd, dest):
    """With replace, tables and views of the same names are dropped first, others are kept."""
    other = odd.with_name("other.db")
    edit(other, "CREATE TABLE bare (y, z)", "CREATE VIEW seen AS SELECT 1", "CREATE TABLE kept (x)")
    edit(other, "INSERT INTO bare VALUES (1, 2)", "INSERT INTO kept VALUES (5)")
    copy(other, dest, all_tables=True)
    copy(odd, dest, all_tables=True, replace=True)
    assert fetch(dest, "SELECT x FROM kept") == [(5,)]
    assert [each for each in definitions(dest) if each[1] != "kept"] == definitions(odd)
    assert {**contents(odd), "kept": contents(other)["kept"]} == contents(dest)


def test_the_application_is_left_alone(odd, dest):
    """Without `all_tables` only harel's tables come over, and a verify looks at no other."""
    copy(odd, dest)
    names = {name for kind, name, *_ in definitions(dest) if kind == "table"}
    assert names
    assert all(name.startswith(("harel_", "sqlite_")) for name in names)
    assert verify(odd, dest).equal
    assert not verify(odd, dest, all_tables=True).equal


def test_views_and_triggers_that_differ_are_found(odd, target_file):
    """A verify of everything names a view, a trigger and an index that are not the same."""
    copy(odd, target_file, all_tables=True)
    edit(
        target_file,
        "DROP VIEW later",
        "CREATE VIEW later AS SELECT x AS y FROM bare",
        "DROP TRIGGER noted",
        "DROP INDEX part",
    )
    report = verify(odd, target_file, all_tables=True)
    assert {str(each.kind) for each in report.schema} == {
        "view-changed",
        "trigger-missing",
        "index-missing",
    }
    assert report.rows == ()


def test_a_table_whose_rows_cannot_be_named_is_refused(tmp_path, dest):
    """Columns that hide the rowid under all its names leave nothing to tell rows by."""
    source = tmp_path / "hidden.db"
    edit(source, "CREATE TABLE t (rowid, oid, _rowid_)")
    with pytest.raises(TransferError, match="t has no key, and columns that hide its rowid"):
        copy(source, dest, all_tables=True)


def test_keys_of_every_class_in_batches(tmp_path, dest):
    """A key without affinity holds every storage class, and keyset reading misses none."""
    source = tmp_path / "keys.db"
    edit(source, "CREATE TABLE t (k PRIMARY KEY, x)")
    edit(source, *(("INSERT OR IGNORE INTO t VALUES (?, 1)", (edge,)) for edge in EDGES if edge))
    for size in (1, 4):
        copy(source, dest, all_tables=True, limits=Limits(rows=size), replace=size > 1)
        assert contents(dest) == contents(source)


def test_broken_foreign_keys_are_told(odd, dest):
    """Rows that refer to no row come over as they are, and a note names them."""
    report = copy(odd, dest, all_tables=True)
    (note,) = report.notes
    assert note.endswith("child rowid 30 -> parent (1 in all)")


def test_references_to_no_key_are_told(tmp_path, dest):
    """SQLite takes a reference to columns that are no key; it comes over, and a note says so."""
    source = tmp_path / "source.db"
    edit(source, "CREATE TABLE a (x)", "CREATE TABLE b (y REFERENCES a (x))")
    edit(source, "INSERT INTO a VALUES (1)", "INSERT INTO b VALUES (1), (2)")
    report = copy(source, dest, all_tables=True)
    assert any("foreign key mismatch" in note for note in report.notes)
    assert contents(dest) == contents(source)


def test_the_numbers_of_an_application_come_over(tmp_path, dest, target_file):
    """user_version and application_id are the source's; what a server keeps to itself is noted."""
    source = tmp_path / "numbers.db"
    numbers = ("PRAGMA user_version = 7", "PRAGMA application_id = 5")
    edit(source, "CREATE TABLE t (x)", *numbers)
    report = copy(source, dest, all_tables=True)
    assert fetch(dest, "PRAGMA user_version") == [(7,)]
    if dest == target_file:
        assert fetch(dest, "PRAGMA application_id") == [(5,)]
        assert report.notes == ()
    else:
        assert report.notes == (f"{dest} keeps its own application_id; the source's is 5",)
