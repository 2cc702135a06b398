"""A verify finds every difference, and names it."""

from __future__ import annotations

import math
import shutil
import sqlite3
from contextlib import closing

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from harel_schema import rows
from harel_schema.drift import Kind
from harel_schema.errors import NotADatabaseError, TargetError, TransferError
from harel_schema.hrana import Client, Statement
from harel_schema.transfer import copy
from harel_schema.verify import BLIND_SPOT, Cell, RowDifference, verify
from tests.transfer.support import EDGES, edit, fetch, make_source
from tests.transfer.test_rows import ROWS


@pytest.fixture
def pair(tmp_path, dest):
    """Return a file and a copy of it, of either kind."""
    source = make_source(tmp_path / "pair.db", executions=9)
    copy(source, dest)
    return source, dest


def test_a_verify_counts_what_a_copy_counts(tmp_path):
    """Rows, and not the counters of AUTOINCREMENT, which are compared with them."""
    source = make_source(tmp_path / "source.db", executions=4)
    copied = copy(source, tmp_path / "dest.db")
    report = verify(source, tmp_path / "dest.db")
    assert report.compared == copied.rows > 0
    assert sum(table.rows_a for table in report.tables) > copied.rows


def change(database, sql, args=()):
    """Change a file or a server."""
    if str(database).startswith("http"):
        with Client(database) as client:
            client.execute(Statement(sql, args))
    else:
        edit(database, (sql, args))


def cells_of(path):
    """Yield every cell of every table but the version's: table, column, rowid, value."""
    with closing(sqlite3.connect(path)) as connection:
        tables = "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE '%version'"
        for (table,) in connection.execute(tables).fetchall():
            found = connection.execute(f"SELECT rowid, * FROM {table}")
            for row in found:
                for (column, *_), value in zip(found.description[1:], row[1:], strict=True):
                    yield table, column, row[0], value


def other(value):
    """Return the nearest value that is not `value`, of the same class where there is one."""
    match value:
        case None:
            return ""
        case int():
            return value + 1_000_000
        case float():
            return math.nextafter(value, math.inf)
        case str():
            return f"{value} "
        case _:
            return value + b"\0"


def test_every_single_cell_is_found(tmp_path):
    """Whatever cell changes, by as little as there is: it is found, with both values."""
    source = make_source(tmp_path / "source.db", executions=4)
    changed = tmp_path / "changed.db"
    cells = list(cells_of(source))
    assert len(cells) > 100
    for table, column, rowid, value in cells:
        shutil.copy(source, changed)
        new = other(value)
        edit(changed, (f"UPDATE {table} SET {column} = ? WHERE rowid = ?", (new, rowid)))
        report = verify(source, changed)
        (found,) = [each for each in report.tables if not each.equal]
        assert (found.name, report.equal, report.schema) == (table, False, ())
        assert found.digest_a != found.digest_b
        if found.changed:
            assert (found.changed, found.missing, found.extra) == (1, 0, 0)
            (difference,) = report.rows
            wanted = Cell(column, rows.storage_class(value), value, rows.storage_class(new), new)
            assert difference.cells == (wanted,)
        else:
            # A cell of the key: one row is gone, another one came; but for a counter of no table.
            assert (found.missing, found.extra) == (1, table != "sqlite_sequence")
            (gone,) = [each for each in report.rows if each.kind == "missing"]
            assert (column, value) in gone.key


def test_equal_databases_are_falsy(pair):
    """Of equal ones the report is falsy, counts the rows, and the digests agree."""
    report = verify(*pair)
    assert not report
    assert (report.equal, report.schema, report.rows) == (True, (), ())
    assert {table.name: table.rows_a for table in report.tables}["harel_executions"] == 9
    assert all(table.digest_a == table.digest_b for table in report.tables)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (1, 1.0),
        (0.0, -0.0),
        (0.1, math.nextafter(0.1, 1)),
        ("", None),
        ("", b""),
        (b"", None),
        ("1", 1),
        ("é", "e\u0301"),
        (b"blob", b"blub"),
        (2**53, 2**53 + 1),
        (float("inf"), 1.7976931348623157e308),
    ],
)
def test_values_that_look_alike_are_told_apart(tmp_path, dest, old, new):
    """The pairs that other tools confuse are differences, with their storage classes."""
    source = tmp_path / "alike.db"
    edit(source, "CREATE TABLE t (k PRIMARY KEY, x)", ("INSERT INTO t VALUES (1, ?)", (old,)))
    copy(source, dest, all_tables=True)
    change(dest, "UPDATE t SET x = ?", (new,))
    (difference,) = verify(source, dest, all_tables=True).rows
    (cell,) = difference.cells
    assert (cell.class_a, cell.class_b) == (rows.storage_class(old), rows.storage_class(new))
    assert rows.encode((cell.a, cell.b)) == rows.encode((old, new))
    assert str(difference).startswith(f"changed t k=1: x: {cell.class_a} ")


def test_swapped_values_are_found(pair):
    """Two rows that changed places are two changed rows."""
    source, dest = pair
    change(
        dest,
        "UPDATE harel_executions SET version = 9007199254741000 - (version - 9007199254740992)"
        " WHERE id IN ('e0003', 'e0005')",
    )
    assert {each.key for each in verify(source, dest).rows} == {
        (("id", "e0003"),),
        (("id", "e0005"),),
    }


def test_a_missing_and_an_extra_row_at_either_end(pair):
    """A row that one side lacks is missing there and extra the other way round."""
    source, dest = pair
    change(dest, "DELETE FROM harel_timers WHERE execution_id = 'e0000'")
    change(dest, "INSERT INTO harel_timers VALUES ('z', 'p', 1.5)")
    there, back = verify(source, dest), verify(dest, source)
    first = (("execution_id", "e0000"), ("path", "a/b"))
    last = (("execution_id", "z"), ("path", "p"))
    assert there.rows == (
        RowDifference("harel_timers", "missing", first),
        RowDifference("harel_timers", "extra", last),
    )
    assert [(each.kind, each.key) for each in back.rows] == [("extra", first), ("missing", last)]


@pytest.mark.parametrize(
    ("sql", "kind"),
    [
        ("DELETE FROM sqlite_sequence WHERE name = 'harel_outbox'", "missing"),
        ("UPDATE sqlite_sequence SET seq = seq - 1 WHERE name = 'harel_outbox'", "changed"),
    ],
)
def test_a_lost_sequence_is_found(pair, sql, kind):
    """A counter of AUTOINCREMENT that is lost or differs is a difference of sqlite_sequence."""
    source, dest = pair
    change(dest, sql)
    (difference,) = verify(source, dest).rows
    assert (difference.table, difference.kind) == ("sqlite_sequence", kind)
    assert difference.key == (("name", "harel_outbox"),)


@pytest.mark.parametrize(
    ("sql", "kind", "name"),
    [
        ("DROP INDEX harel_transport_messages_by_group", Kind.INDEX_MISSING, "by_group"),
        ("DROP TABLE harel_timers", Kind.TABLE_MISSING, "harel_timers"),
        ("ALTER TABLE harel_trace ADD COLUMN x", Kind.COLUMN_EXTRA, "x"),
        ("CREATE TABLE harel_copy_ledger (x)", Kind.TABLE_EXTRA, "harel_copy_ledger"),
        ("DELETE FROM harel_alembic_version", Kind.VERSION_DIFFERENT, "harel_alembic_version"),
    ],
)
def test_a_schema_that_differs_is_named(pair, sql, kind, name):
    """What differs in the schema is named, and the rows of the other tables are compared."""
    source, dest = pair
    change(dest, sql)
    change(dest, "DELETE FROM harel_spawns WHERE seq = 2")
    report = verify(source, dest)
    (difference,) = report.schema
    assert (difference.kind, difference.name.endswith(name)) == (kind, True)
    assert [each.table for each in report.rows] == ["harel_spawns"]


def test_only_as_many_rows_are_shown_as_asked(pair):
    """`show` bounds the rows of a table that are listed, not those that are counted."""
    source, dest = pair
    change(dest, "UPDATE harel_trace SET entry = 'other'")
    change(dest, "DELETE FROM harel_executions")
    report = verify(source, dest, show=2)
    assert [each.table for each in report.rows] == ["harel_executions"] * 2 + ["harel_trace"] * 2
    counts = {each.name: (each.changed, each.missing) for each in report.tables}
    assert (counts["harel_trace"], counts["harel_executions"]) == ((9, 0), (0, 9))
    assert verify(source, dest, show=0).rows == ()


def test_a_long_value_is_cut_around_the_difference(pair):
    """A line shows where long values begin to differ."""
    source, dest = pair
    change(source, "UPDATE harel_executions SET data = ? WHERE id = 'e0001'", ("x" * 900,))
    new = "x" * 500 + "Y" + "x" * 399
    change(dest, "UPDATE harel_executions SET data = ? WHERE id = 'e0001'", (new,))
    (difference,) = verify(source, dest).rows
    before, after = "…" + "x" * 20, "x" * 19 + "…"
    assert str(difference) == (
        f"changed harel_executions id='e0001': data: text {before}x{after} != text {before}Y{after}"
    )


def test_quick_sees_counts_bytes_and_classes(pair):
    """A quick verify finds a missing row and a longer text, one request a table."""
    source, dest = pair
    assert verify(source, dest, quick=True).equal
    change(dest, "DELETE FROM harel_spawns WHERE seq = 2")
    change(dest, "UPDATE harel_trace SET entry = entry || 'x' WHERE idx = 3")
    report = verify(source, dest, quick=True)
    found = {each.name: each.aggregates for each in report.tables if not each.equal}
    assert found.keys() == {"harel_spawns", "harel_trace"}
    assert found["harel_trace"] == ("bytes of entry",)
    assert "count" in found["harel_spawns"]


def test_quick_says_what_it_cannot_see(pair):
    """A change that keeps all sums is not seen, which the report's blind spot admits."""
    source, dest = pair
    change(dest, "UPDATE harel_trace SET entry = '{\"n\": 9}' WHERE idx = 0")
    assert verify(source, dest, quick=True).equal
    assert not verify(source, dest).equal
    assert "not seen" in BLIND_SPOT


def test_nothing_is_written(pair, tmp_path):
    """Neither file changes by a byte, and none appears."""
    source, dest = pair
    before = {path: path.read_bytes() for path in tmp_path.iterdir() if path.is_file()}
    verify(source, dest)
    verify(source, dest, quick=True)
    assert {path: path.read_bytes() for path in tmp_path.iterdir() if path.is_file()} == before


def test_rowids_count_where_there_is_no_key(tmp_path, dest):
    """In a table without a key, a row under another rowid is another row."""
    source = tmp_path / "bare.db"
    edit(source, "CREATE TABLE t (x)", "INSERT INTO t (rowid, x) VALUES (5, 'a'), (9, 'b')")
    copy(source, dest, all_tables=True)
    assert verify(source, dest, all_tables=True).equal
    change(dest, "UPDATE t SET rowid = 6 WHERE rowid = 5")
    kinds = [(each.kind, each.key) for each in verify(source, dest, all_tables=True).rows]
    assert kinds == [("missing", (("rowid", 5),)), ("extra", (("rowid", 6),))]


def test_bad_text_is_compared_by_its_bytes(pair):
    """Text that is not UTF-8 on either side is a value like any other."""
    source, dest = pair
    for database in pair:
        change(database, "UPDATE harel_trace SET entry = CAST(x'41ff' AS TEXT) WHERE idx > 4")
    assert verify(source, dest).equal
    change(dest, "UPDATE harel_trace SET entry = CAST(x'41fe' AS TEXT) WHERE idx = 7")
    change(dest, "UPDATE harel_trace SET execution_id = CAST(x'ff' AS TEXT) WHERE idx = 8")
    changed, missing, extra = verify(source, dest).rows
    assert changed.cells[0].a == rows.RawText(b"A\xff")
    assert changed.cells[0].b == rows.RawText(b"A\xfe")
    assert (missing.kind, extra.kind) == ("missing", "extra")
    assert extra.key[0] == ("execution_id", rows.RawText(b"\xff"))


@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(ROWS.map(lambda row: (*row, None, None)[:2]), max_size=15),
    st.lists(ROWS.map(lambda row: (*row, None, None)[:2]), max_size=15),
    st.sampled_from(["BINARY", "NOCASE", "RTRIM"]),
)
def test_any_two_tables(tmp_path_factory, left, right, collation):
    """The rows that are found missing and extra are those of the one set without the other's."""
    folder = tmp_path_factory.mktemp("two")
    held = []
    for name, found in (("a.db", left), ("b.db", right)):
        table = f"CREATE TABLE t (k COLLATE {collation}, x, PRIMARY KEY (k, x)) WITHOUT ROWID"
        edit(folder / name, table)
        insert = "INSERT OR IGNORE INTO t SELECT ?1, ?2 WHERE ?1 NOT NULL AND ?2 NOT NULL"
        edit(folder / name, *((insert, row) for row in found))
        held.append({rows.encode(row) for row in fetch(folder / name, "SELECT * FROM t")})
    report = verify(folder / "a.db", folder / "b.db", all_tables=True, show=1000)
    (table,) = report.tables
    assert (table.rows_a, table.rows_b) == (len(held[0]), len(held[1]))
    assert table.missing + table.changed == len(held[0] - held[1])
    assert table.extra + table.changed == len(held[1] - held[0])
    assert report.equal == (held[0] == held[1])


def test_every_edge_equals_only_itself(tmp_path):
    """Of all values at the edges, each differs from every other as a key and as a value."""
    a, b = tmp_path / "a.db", tmp_path / "b.db"
    for path, values in ((a, EDGES), (b, EDGES[1:] + EDGES[:1])):
        edit(path, "CREATE TABLE t (k INTEGER PRIMARY KEY, x)")
        edit(path, *(("INSERT INTO t (x) VALUES (?)", (value,)) for value in values))
    (table,) = verify(a, b, all_tables=True).tables
    assert table.changed == len(EDGES)


@pytest.mark.parametrize(
    ("name", "error"), [("missing.db", TargetError), ("text.txt", NotADatabaseError)]
)
def test_bad_targets_are_refused(source, tmp_path, name, error):
    """A missing file and a file that is no database are one line, at either end."""
    (tmp_path / "text.txt").write_text("this is no database, whatever it may seem")
    for ends in ((source, name), (name, source)):
        with pytest.raises(error):
            verify(*ends)
    assert not (tmp_path / "missing.db").exists()


def test_databases_without_such_tables_are_refused(tmp_path):
    """Two databases without any table of harel are not equal stores."""
    for name in ("a.db", "b.db"):
        edit(tmp_path / name, "CREATE TABLE app (x)")
    with pytest.raises(TransferError, match=r"neither a\.db nor b\.db holds tables"):
        verify("a.db", "b.db")
    assert verify("a.db", "b.db", all_tables=True).equal
