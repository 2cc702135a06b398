"""Full-text indexes come over with all tables, or are refused by name."""

from __future__ import annotations

import pytest

from harel_schema.errors import TransferError
from harel_schema.transfer import Limits, copy
from harel_schema.verify import verify
from tests.transfer.support import definitions, edit, fetch, stopping_copy

NOTES = "CREATE TABLE notes (id INTEGER PRIMARY KEY, title, body)"
OWN = "CREATE VIRTUAL TABLE own USING fts5 (title, body UNINDEXED, tokenize = 'porter ascii')"
EXTERNAL = (
    'CREATE VIRTUAL TABLE "ex ternal" USING fts5 '
    "(title, body, content='notes', content_rowid='id')"
)


@pytest.fixture
def indexed(tmp_path):
    """Return a file with both kinds of index, and triggers that keep one of them."""
    path = tmp_path / "indexed.db"
    edit(
        path,
        NOTES,
        OWN,
        EXTERNAL,
        'CREATE TRIGGER kept AFTER INSERT ON notes BEGIN INSERT INTO "ex ternal" '
        "(rowid, title, body) VALUES (new.id, new.title, new.body); END",
        "INSERT INTO own (own, rank) VALUES ('pgsz', 100), ('rank', 'bm25(10.0)')",
    )
    for number in range(40):
        words = (number * 3, f"runs and jumps {number}", f"{number} sleeping dogs")
        edit(path, ("INSERT INTO notes VALUES (?, ?, ?)", words))
        edit(path, ("INSERT INTO own (rowid, title, body) VALUES (?, ?, ?)", words))
    edit(
        path, "INSERT INTO own (rowid, title, body) VALUES (-5, 7.5, x'00'), (9999999999, NULL, '')"
    )
    return path


def found(database):
    """Return what searches find, and the settings."""
    return [
        fetch(database, sql)
        for sql in (
            "SELECT rowid, typeof(title), title, typeof(body), body FROM own ORDER BY rowid",
            "SELECT rowid FROM own WHERE own MATCH 'run' ORDER BY rowid",
            'SELECT rowid FROM "ex ternal" WHERE "ex ternal" MATCH \'dogs AND 7\' ORDER BY rowid',
            "SELECT k, v FROM own_config ORDER BY k",
        )
    ]


def test_both_kinds_come_over_and_back(indexed, sqld_url, target_file):
    """Rows, rowids, what a search finds and the settings are the same at either end."""
    copy(indexed, sqld_url, all_tables=True, limits=Limits(rows=9))
    copy(sqld_url, target_file, all_tables=True, limits=Limits(rows=7))
    assert found(indexed) == found(sqld_url) == found(target_file)
    assert len(found(indexed)[1]) == 40
    assert definitions(indexed) == definitions(sqld_url) == definitions(target_file)
    assert verify(indexed, sqld_url, all_tables=True).equal
    assert copy(indexed, sqld_url, all_tables=True).action == "already equal"
    assert copy(indexed, sqld_url, all_tables=True, replace=True).action == "replaced"
    assert found(sqld_url) == found(indexed)


def test_stopped_and_resumed(indexed, dest):
    """A copy that is stopped after any batch ends with the same rows and searches."""
    assert stopping_copy(indexed, dest, all_tables=True, limits=Limits(rows=30)) > 4
    assert found(dest) == found(indexed)


def test_a_verify_sees_rows_and_options(indexed, target_file):
    """A row of an index that differs is found, and other options of the index are."""
    copy(indexed, target_file, all_tables=True)
    edit(target_file, "UPDATE own SET title = 'other' WHERE rowid = 9")
    (difference,) = verify(indexed, target_file, all_tables=True).rows
    assert (difference.table, difference.key) == ("own", (("rowid", 9),))
    edit(target_file, "DROP TABLE own", "CREATE VIRTUAL TABLE own USING fts5 (title, body)")
    kinds = {str(each.kind) for each in verify(indexed, target_file, all_tables=True).schema}
    assert kinds == {"virtual-table-changed"}


def test_merging_an_index_is_refused(indexed, target_file):
    """An index with rows of its own cannot take some of them: the message names it."""
    copy(indexed, target_file, all_tables=True)
    with pytest.raises(TransferError, match="full-text index cannot be merged: own"):
        copy(indexed, target_file, all_tables=True, merge=True)


@pytest.mark.parametrize(
    ("name", "sql"),
    [
        ("none", "CREATE VIRTUAL TABLE none USING fts5 (a, content='')"),
        ("old", "CREATE VIRTUAL TABLE old USING fts4 (a)"),
        ("box", "CREATE VIRTUAL TABLE box USING rtree (id, a, b)"),
        ("words", "CREATE VIRTUAL TABLE words USING fts5vocab (own, row)"),
    ],
)
def test_others_are_refused_by_name(indexed, dest, name, sql):
    """A virtual table that cannot be read back is named, and nothing is written."""
    edit(indexed, sql)
    with pytest.raises(TransferError, match=f"rows cannot be copied: {name};"):
        copy(indexed, dest, all_tables=True)
    assert str(dest).startswith("http") or not dest.exists()
