"""A copy brings every row over, exactly, once."""

from __future__ import annotations

import sqlite3
import threading
from contextlib import closing

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from harel_schema import drift
from harel_schema.sql import REVISION
from harel_schema.transfer import Limits, copy
from harel_schema.verify import verify
from tests.transfer.support import EDGES, contents, definitions, edit, fetch, fill, make_source
from tests.transfer.test_rows import VALUES

TABLES = {
    "harel_executions",
    "harel_outbox",
    "harel_processed_events",
    "harel_timers",
    "harel_spawns",
    "harel_trace",
    "harel_definitions",
    "harel_transport_messages",
    "harel_transport_groups",
}


def test_there_and_back_is_the_same_to_the_bit(source, sqld_url, target_file):
    """File to server to file: each holds the same cells, sequences and definitions."""
    there, back = copy(source, sqld_url), copy(sqld_url, target_file)
    assert (there.action, back.action) == ("copied", "copied")
    assert contents(source) == contents(sqld_url) == contents(target_file)
    assert definitions(source) == definitions(sqld_url) == definitions(target_file)
    assert verify(source, sqld_url).equal
    assert verify(sqld_url, target_file).equal


def test_between_servers(source, sqld_url, tmp_path):
    """One server's rows come over to another one."""
    from harel_schema.testing import Server  # noqa: PLC0415 - only here are two needed

    copy(source, sqld_url)
    with Server(tmp_path / "second") as second:
        report = copy(sqld_url, second.url)
        assert (report.action, report.snapshots) == ("copied", 1)
        assert contents(second.url) == contents(source)


def test_the_report_counts_every_table(source, dest):
    """Rows, those written and bytes of all nine tables are told, and the revision."""
    report = copy(source, dest)
    assert {table.name for table in report.tables} == TABLES
    for table in report.tables:
        ((count,),) = fetch(source, f"SELECT count(*) FROM {table.name}")
        assert (table.rows, table.written) == (count, count)
        assert table.bytes > count
    assert report.revision == REVISION
    assert (report.source, report.snapshots, report.notes) == ("source.db", 1, ())


def test_the_destination_is_at_the_source_revision(source, dest):
    """The copy has a version row, and no drift or leftover."""
    copy(source, dest)
    found = drift.check(dest)
    assert (found.differences, found.revision) == ((), REVISION)


def test_another_prefix_is_copied_alone(tmp_path, dest):
    """Of a file with two stores, the named one is copied and the other is not."""
    source = make_source(tmp_path / "two.db", prefix="a")
    make_source(source, prefix="a_b")
    copy(source, dest, prefix="a")
    names = {name for _, name, *_ in definitions(dest)}
    assert "a_executions" in names
    assert not {name for name in names if name.startswith("a_b")}


def test_an_empty_source_gives_an_empty_store(tmp_path, dest):
    """Without rows, the schema and the version row come over."""
    copy(make_source(tmp_path / "empty.db", executions=0), dest)
    assert contents(dest)["harel_executions"] == []
    assert not drift.check(dest)


def test_again_changes_nothing(source, dest):
    """A copy of a finished copy writes nothing and says so."""
    copy(source, dest)
    before = contents(dest)
    report = copy(source, dest)
    assert (report.action, report.written) == ("already equal", 0)
    assert report.rows == sum(len(before[name]) for name in TABLES)
    assert contents(dest) == before


def test_again_leaves_a_file_as_it_is(source, target_file):
    """Not a byte of an equal file changes."""
    copy(source, target_file)
    before = target_file.read_bytes()
    copy(source, target_file)
    assert target_file.read_bytes() == before


def test_a_store_made_by_harel_is_filled(source, dest):
    """A destination that has the tables and no rows takes the rows."""
    copy(make_source(source.with_name("empty.db"), executions=0), dest)
    assert copy(source, dest).action == "copied"
    assert contents(dest) == contents(source)


def test_replace_drops_what_was_there(source, dest, tmp_path):
    """With replace, rows, tables of another shape and the sequence are the source's."""
    copy(make_source(tmp_path / "other.db", executions=55), dest)
    report = copy(source, dest, replace=True)
    assert (report.action, report.written) == ("replaced", report.rows)
    assert contents(dest) == contents(source)


def test_replace_mends_a_drifted_destination(source, target_file, tmp_path):
    """With replace, tables that are not the source's become so."""
    copy(make_source(tmp_path / "other.db"), target_file)
    edit(target_file, "ALTER TABLE harel_trace ADD COLUMN x", "DROP TABLE harel_timers")
    copy(source, target_file, replace=True)
    assert definitions(target_file) == definitions(source)
    assert contents(target_file) == contents(source)


def test_merge_adds_what_is_missing(source, dest, tmp_path):
    """With merge, rows of both are there, and the sequence is the higher one."""
    other = make_source(tmp_path / "other.db", executions=0)
    with closing(sqlite3.connect(other)) as connection, connection:
        connection.execute("UPDATE sqlite_sequence SET seq = 900 WHERE name = 'harel_spawns'")
        connection.execute("INSERT INTO harel_spawns VALUES (901, 'p', 'c', 'r', '{}')")
        connection.execute("INSERT INTO harel_executions VALUES ('kept', 'd', '{}', 1)")
    shared = fetch(source, "SELECT * FROM harel_executions WHERE id = 'e0007'")[0]
    edit(other, ("INSERT INTO harel_executions VALUES (?, ?, ?, ?)", shared))
    copy(other, dest)
    report = copy(source, dest, merge=True)
    assert report.action == "merged"
    assert report.written == report.rows - 1
    held, wanted = contents(dest), contents(source)
    for name in TABLES:
        assert set(held[name]) == set(wanted[name]) | set(contents(other)[name])
    sequences = dict(fetch(dest, "SELECT * FROM sqlite_sequence"))
    assert sequences == {"harel_outbox": 30, "harel_spawns": 901, "harel_transport_messages": 30}
    assert copy(source, dest, merge=True).written == 0


def test_rows_larger_than_a_batch(tmp_path, dest):
    """A row over the batch limit is a batch of its own."""
    source = make_source(tmp_path / "big.db", executions=0)
    big = [(f"e{n}", "d", chr(65 + n) * 3_000_000, 1) for n in range(4)]
    edit(source, *(("INSERT INTO harel_executions VALUES (?, ?, ?, ?)", row) for row in big))
    copy(source, dest, limits=Limits(size=1_000_000))
    assert contents(dest) == contents(source)


def test_the_largest_row_of_a_server(tmp_path, sqld_url):
    """A record of exactly 5,000,000 bytes passes."""
    source = make_source(tmp_path / "big.db", executions=0)
    text = "x" * (5_000_000 - 11)
    edit(source, ("INSERT INTO harel_executions VALUES ('e', 'd', ?, 1)", (text,)))
    copy(source, sqld_url)
    assert contents(sqld_url) == contents(source)


def test_keys_that_are_null_are_rows_too(source, dest):
    """SQLite lets a TEXT PRIMARY KEY hold NULL, several times; then rowids are kept."""
    for number in (500, 300, 400):
        row = (number, None, "d", f"null {number}", 1)
        sql = "INSERT INTO harel_executions (rowid, id, definition_id, data, version) VALUES "
        edit(source, (f"{sql} (?, ?, ?, ?, ?)", row))
    copy(source, dest, limits=Limits(rows=4))
    sql = "SELECT rowid, * FROM harel_executions ORDER BY rowid"
    assert fetch(dest, sql) == fetch(source, sql)


def test_writers_go_on_and_are_not_seen(source, dest):
    """A file in WAL mode is read in one snapshot: what commits meanwhile is not in the copy."""
    edit(source, "PRAGMA journal_mode = WAL")
    before = contents(source)

    def write(progress):
        if progress.phase == "copy":
            with closing(sqlite3.connect(source, timeout=0)) as connection, connection:
                fill(connection, "harel", 1000 + progress.rows_done)
                connection.execute("DELETE FROM harel_trace WHERE idx < 10")

    copy(source, dest, limits=Limits(rows=7), progress=write)
    assert contents(dest) == before
    assert contents(source) != before


def test_writers_of_a_server_are_not_seen(source, sqld_url, target_file):
    """A server is read in one snapshot too."""
    copy(source, sqld_url)
    before = contents(sqld_url)
    writes = ["INSERT INTO harel_executions VALUES ('0', 'd', '', 1)", "DELETE FROM harel_trace"]

    def write(progress):
        if progress.phase == "copy" and progress.rows_done and writes:
            fetch(sqld_url, writes.pop())

    report = copy(sqld_url, target_file, limits=Limits(rows=7), progress=write)
    assert report.snapshots == 1
    assert contents(target_file) == before
    assert contents(sqld_url) != before


def test_progress_counts_up_to_the_rows(source, dest):
    """Progress tells phases in their order, and ends a copy at all its rows."""
    seen = []
    report = copy(source, dest, limits=Limits(rows=5), progress=seen.append)
    assert list(dict.fromkeys(each.phase for each in seen)) == ["check", "copy", "finish"]
    copied = [each for each in seen if each.phase == "copy"]
    assert copied[-1].rows_done == copied[-1].rows_total == report.rows + 3
    assert [each.rows_done for each in copied] == sorted(each.rows_done for each in copied)
    assert {each.table for each in copied} - {""} == TABLES | {"sqlite_sequence"}


def test_a_copy_needs_no_more_requests_than_batches(source, proxy):
    """A batch is one request: 30 rows of a table in batches of 10 are three."""
    copy(source, proxy.url, limits=Limits(rows=10))
    few = len(proxy.requests)
    copy(source, proxy.url, limits=Limits(rows=5), replace=True)
    many = len(proxy.requests) - few
    assert many - few == 3 * len(TABLES) - 1


def test_an_upgrade_follows_the_rows(tmp_path, dest):
    """With upgrade, a source at 0001 becomes a destination at head; again changes nothing."""
    from harel_schema import migrate  # noqa: PLC0415 - Alembic is slow to import

    source = tmp_path / "old.db"
    migrate.upgrade(source, "0001")
    edit(source, "INSERT INTO harel_executions VALUES ('e', 'd', '{}', 1)")
    report = copy(source, dest, upgrade=True)
    assert (report.revision, drift.check(dest).revision) == ("0001", REVISION)
    assert fetch(dest, "SELECT id FROM harel_executions") == [("e",)]
    assert copy(source, dest, upgrade=True).action == "already equal"


def test_a_dry_run_writes_nothing(source, target_file):
    """A dry run tells what a copy would do, and makes no file."""
    report = copy(source, target_file, dry_run=True)
    assert (report.action, report.dry_run, report.written) == ("copied", True, 0)
    assert report.rows == copy(source, target_file).written
    assert copy(source, target_file, dry_run=True).action == "already equal"


def test_a_dry_run_tells_size_and_time(source, dest, target_file):
    """A dry run tells how large the source is, how long it may take, and what is free there."""
    edit(source, "UPDATE harel_executions SET version = 'one' WHERE id = 'e0007'")
    report = copy(source, dest, dry_run=True)
    assert report.estimate.bytes == source.stat().st_size
    assert 0 < report.estimate.seconds < 5
    assert (report.estimate.free is None) == (dest != target_file)
    assert all(table.bytes for table in report.tables)
    assert any("harel_executions.version" in note for note in report.notes)
    assert all(note.endswith("; copied as it is") for note in report.notes)
    assert copy(source, dest).estimate is None


def test_a_dry_run_on_a_server_writes_nothing(source, sqld_url):
    """A dry run leaves a server as empty as it was."""
    assert copy(source, sqld_url, dry_run=True).action == "copied"
    assert definitions(sqld_url) == []


def test_the_source_is_left_alone(source, target_file):
    """Neither a byte of the source nor a file beside it is changed."""
    before = source.read_bytes()
    copy(source, target_file)
    assert source.read_bytes() == before
    assert sorted(path.name for path in source.parent.iterdir()) == ["source.db", "target.db"]


@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(VALUES, VALUES, VALUES), max_size=20), st.integers(1, 8))
def test_any_rows_of_any_class(tmp_path_factory, sqld_url, rows, size):
    """Rows of every storage class come through a server, whatever the columns' affinity."""
    folder = tmp_path_factory.mktemp("any")
    source, back = folder / "source.db", folder / "back.db"
    edit(source, "CREATE TABLE t (a, b NUMERIC, c TEXT, d REAL, e INTEGER)")
    edit(source, *(("INSERT INTO t VALUES (?, ?, ?, ?, ?)", (*row, *row[1:])) for row in rows))
    copy(source, sqld_url, all_tables=True, replace=True, limits=Limits(rows=size))
    copy(sqld_url, back, all_tables=True)
    assert contents(back) == contents(sqld_url) == contents(source)
    assert verify(source, sqld_url, all_tables=True).equal


def test_every_edge_in_every_column(tmp_path, dest):
    """The edges of all storage classes survive in every affinity."""
    source = tmp_path / "edges.db"
    edit(source, "CREATE TABLE t (a, b NUMERIC, c TEXT, d REAL, e INTEGER, f BLOB)")
    edit(source, *(("INSERT INTO t VALUES (?1, ?1, ?1, ?1, ?1, ?1)", (edge,)) for edge in EDGES))
    copy(source, dest, all_tables=True)
    assert contents(dest) == contents(source)


def test_two_copies_at_once_end_in_one(source, sqld_url):
    """Of two copies of one source that run at once, neither harms the other."""
    results = []
    barrier = threading.Barrier(2)

    def run():
        barrier.wait()
        try:
            results.append(copy(source, sqld_url, limits=Limits(rows=3)).action)
        except Exception as error:  # noqa: BLE001 - whatever it is, it is looked at below
            results.append(error)

    threads = [threading.Thread(target=run) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert any(isinstance(result, str) for result in results), results
    copy(source, sqld_url)
    assert contents(sqld_url) == contents(source)
    assert not drift.check(sqld_url)
