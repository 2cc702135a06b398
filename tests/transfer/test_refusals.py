"""What would make a copy wrong stops it before its first write."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from types import SimpleNamespace

import pytest

from harel_schema.errors import HarelSchemaError, SchemaMismatch, TargetError, TransferError
from harel_schema.sql import REVISION
from harel_schema.transfer import copy, preflight
from tests.transfer.support import contents, definitions, edit, fetch, make_source

BAD_TEXT = "UPDATE harel_trace SET entry = CAST(x'41ff' AS TEXT) WHERE idx IN (3, 5)"


def refused(source, dest, match, error=TransferError, **options):
    """Assert that a copy is refused in one line, and that neither end has changed."""
    before = snapshot(source), snapshot(dest)
    with pytest.raises(error, match=match) as caught:
        copy(source, dest, **options)
    assert "\n" not in str(caught.value)
    assert (snapshot(source), snapshot(dest)) == before
    with pytest.raises(error, match=match):
        copy(source, dest, dry_run=True, **options)


def snapshot(database):
    """Return what a server holds, or the bytes of the files of a path."""
    if str(database).startswith("http"):
        return definitions(database)
    return {path.name: path.read_bytes() for path in database.parent.glob(f"{database.name}*")}


def test_bad_text_is_named_by_table_and_rowid(source, dest):
    """Text that is not UTF-8 is refused, each row by its table and rowid."""
    edit(source, BAD_TEXT)
    where = "harel_trace rowid 4, column entry; harel_trace rowid 6, column entry"
    refused(source, dest, f"source.db holds text that is not UTF-8: {where}; repair")


def test_bad_text_on_a_server_is_named(source, sqld_url, target_file):
    """A server whose text cannot be read is refused too, by a query that can."""
    copy(source, sqld_url)
    fetch(sqld_url, BAD_TEXT)
    where = "harel_trace rowid 4, column entry; harel_trace rowid 6, column entry"
    refused(sqld_url, target_file, f"holds text that is not UTF-8: {where}")


def test_bad_text_in_a_key_is_named(tmp_path, dest):
    """A key of bad text is named as well, and where there is no rowid, by its bytes."""
    source = tmp_path / "keys.db"
    edit(source, "CREATE TABLE k (k PRIMARY KEY) WITHOUT ROWID", "CREATE TABLE t (k PRIMARY KEY)")
    for table in ("k", "t"):
        edit(source, f"INSERT INTO {table} VALUES ('a'), (CAST(x'ff' AS TEXT)), ('b')")
    refused(source, dest, r"k k=RawText.*ff.*; t rowid 2, column k", all_tables=True)


def test_many_bad_rows_are_counted(source, dest):
    """Ten rows are named, and the others counted."""
    edit(source, "UPDATE harel_trace SET entry = CAST(x'ff' AS TEXT)")
    refused(source, dest, r"rowid 10, column entry; and 20 more; repair")


def test_rows_that_no_server_takes_are_named(source, sqld_url, target_file):
    """A record over 5,000,000 bytes is refused for a server by its rowid; a file takes it."""
    text = "x" * (5_000_000 - 10)
    for key in ("too big", "too big as well"):
        edit(source, ("INSERT INTO harel_executions VALUES (?, 'd', ?, 1)", (key, text)))
    where = r"harel_executions rowid 31 \(5,000,00\d bytes\); harel_executions rowid 32 "
    refused(source, sqld_url, f"over the server's limit of 5,000,000 bytes: {where}")
    assert copy(source, target_file).action == "copied"


def test_a_source_without_a_version_is_refused(source, dest):
    """Tables that harel made are taken over by an upgrade first, which the message says."""
    edit(source, "DROP TABLE harel_alembic_version")
    refused(source, dest, "run harel-schema upgrade source.db", SchemaMismatch)


def test_a_drifted_source_is_refused(source, dest):
    """A source that is not what its revision promises is refused with the first difference."""
    edit(source, "ALTER TABLE harel_trace ADD COLUMN x", "DROP TABLE harel_timers")
    refused(source, dest, "column-extra harel_trace.x.*and 1 more.*check source.db", SchemaMismatch)


def test_a_source_of_another_prefix_is_refused(source, dest):
    """A source without such tables is refused, and the message names the prefix."""
    refused(source, dest, "no tables of the prefix 'other'", prefix="other")


def test_other_rows_are_refused(source, dest, tmp_path):
    """A destination with other rows is refused, and the message names both ways out."""
    copy(make_source(tmp_path / "other.db", executions=3), dest)
    held = contents(dest)
    refused(source, dest, r"holds other rows .* --replace .* --merge")
    assert contents(dest) == held


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE harel_timers SET fire_at = fire_at + 1e-6 WHERE execution_id = 'e0005'",
        "DELETE FROM harel_spawns WHERE seq = 4",
        "INSERT INTO harel_processed_events VALUES ('x', 'y')",
        "UPDATE sqlite_sequence SET seq = seq + 1 WHERE name = 'harel_spawns'",
    ],
)
def test_one_other_cell_is_refused(source, target_file, change):
    """One cell, row or sequence that differs makes other rows."""
    copy(source, target_file)
    edit(target_file, change)
    refused(source, target_file, "holds other rows than the source")


def test_a_collision_is_named(source, dest):
    """With merge, a key that has another row is named by table and key, and nothing is added."""
    copy(source, dest)
    fetch_or_edit(dest, "UPDATE harel_trace SET entry = 'mine' WHERE idx = 7")
    fetch_or_edit(dest, "DELETE FROM harel_timers")
    held = contents(dest)
    where = r"harel_trace execution_id='e0007', idx=7"
    refused(source, dest, rf"other rows under the same key: {where}; .*--replace", merge=True)
    assert contents(dest) == held


def fetch_or_edit(database, sql):
    """Change a file or a server."""
    (fetch if str(database).startswith("http") else edit)(database, sql)


def test_other_tables_are_refused(source, dest, tmp_path):
    """A destination whose tables differ is refused with the difference, rows or none."""
    copy(make_source(tmp_path / "other.db", executions=0), dest)
    fetch_or_edit(dest, "CREATE INDEX mine ON harel_trace (idx)")
    refused(source, dest, r"other tables than the source: index-extra harel_trace.mine.*--replace")


def test_a_trigger_that_would_fire_is_refused(source, dest, tmp_path):
    """A trigger on a destination's table is a difference: no copied row may fire it."""
    copy(make_source(tmp_path / "other.db", executions=0), dest)
    trigger = "CREATE TRIGGER t AFTER INSERT ON harel_trace BEGIN DELETE FROM harel_timers; END"
    fetch_or_edit(dest, trigger)
    refused(source, dest, "trigger-extra harel_trace.t")


def test_another_revision_is_refused(source, dest, tmp_path):
    """A destination at another revision is refused, and both revisions are named."""
    copy(make_source(tmp_path / "other.db", executions=0), dest)
    fetch_or_edit(dest, "UPDATE harel_alembic_version SET version_num = '0001'")
    refused(source, dest, f"at revision 0001, the source at {REVISION}; .*upgrade")


def test_one_file_is_not_both_ends(source, tmp_path):
    """A file cannot be copied to itself, under whatever name."""
    hard, soft = tmp_path / "hard.db", tmp_path / "soft.db"
    hard.hardlink_to(source)
    soft.symlink_to(source)
    for name in (source, hard, soft, f"sqlite:///{source}"):
        with pytest.raises(TransferError, match="same database"):
            copy(source, name)


def test_one_server_is_not_both_ends(sqld_url):
    """A server cannot be copied to itself, under whatever spelling."""
    with pytest.raises(TransferError, match="same database"):
        copy(sqld_url, f"{sqld_url}/")


@pytest.mark.parametrize("options", [{"replace": True, "merge": True}])
def test_replace_and_merge_exclude_each_other(source, target_file, options):
    """Both at once are refused."""
    refused(source, target_file, "exclude each other", **options)


def test_memory_is_no_end(source):
    """A database in memory would be gone with the process."""
    for ends in ((source, ":memory:"), (":memory:", source)):
        with pytest.raises(TransferError, match="ends with this process"):
            copy(*ends)


@pytest.mark.parametrize(
    ("source_name", "dest_name", "match"),
    [
        ("missing.db", "new.db", "no such file"),
        (".", "new.db", "directory"),
        ("source.db", "no/such/folder/new.db", "folder"),
        ("text.txt", "new.db", "not a SQLite database"),
        ("source.db", "text.txt", "not a SQLite database"),
        ("source.db", "ftp://host/x", "unknown scheme"),
    ],
)
def test_bad_targets_make_no_file(source, tmp_path, source_name, dest_name, match):
    """A bad name at either end is one line, and nothing is made."""
    (tmp_path / "text.txt").write_text("this is no database, whatever it may seem")
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(HarelSchemaError, match=match) as caught:
        copy(source_name, dest_name)
    assert isinstance(caught.value, TargetError) or "not a SQLite" in str(caught.value)
    assert sorted(tmp_path.rglob("*")) == before


def test_a_damaged_source_is_refused(source, dest):
    """A file that fails SQLite's quick check is refused."""
    with closing(sqlite3.connect(source)) as connection:
        sql = "SELECT rootpage FROM sqlite_schema WHERE name = 'harel_trace'"
        ((page,),) = connection.execute(sql)
    with source.open("r+b") as file:
        file.seek(4096 * (page - 1) + 8)
        file.write(b"\xff" * 400)
    refused(source, dest, "source.db.*(damaged|malformed)", HarelSchemaError)


def test_utf16_is_refused(tmp_path, dest):
    """A file whose text is UTF-16 orders keys in another way, and is refused."""
    source = tmp_path / "utf16.db"
    edit(source, "PRAGMA encoding = 'UTF-16le'", "CREATE TABLE t (x)")
    refused(source, dest, "UTF-16le", all_tables=True)


def test_a_full_disk_is_seen_before(source, target_file, monkeypatch):
    """A file that its disk has no room for is refused."""
    usage = SimpleNamespace(free=100_000)
    monkeypatch.setattr(preflight.shutil, "disk_usage", lambda _: usage)
    refused(source, target_file, r"needs about 1 MB, and its disk has 0 MB free; free some")
