"""What "the same row" means."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harel_schema import rows
from tests.support.text import any_text
from tests.transfer.support import EDGES

VALUES = (
    st.none()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False)
    | any_text()
    | st.binary()
    | st.sampled_from([edge for edge in EDGES if len(repr(edge)) < 2_000])
)
ROWS = st.lists(VALUES, max_size=5).map(tuple)


def same(a, b):
    """Return whether two values are stored alike, said in another way than the encoding's."""
    return type(a) is type(b) and repr(a) == repr(b)


@given(ROWS, ROWS)
def test_rows_are_equal_exactly_when_their_bytes_are(a, b):
    """No two rows share an encoding, whatever their cells."""
    alike = len(a) == len(b) and all(map(same, a, b))
    assert (rows.encode(a) == rows.encode(b)) == alike


@given(st.lists(ROWS, max_size=4), st.lists(ROWS, max_size=4))
def test_digests_tell_rows_from_rows(a, b):
    """Rows that are cut in another place have another digest."""
    alike = len(a) == len(b) and all(
        rows.encode(x) == rows.encode(y) for x, y in zip(a, b, strict=True)
    )
    assert (rows.digest(map(rows.encode, a)) == rows.digest(map(rows.encode, b))) == alike


@given(ROWS)
def test_a_row_comes_back_from_its_bytes(row):
    """Decoding gives the row that was encoded, to the bit."""
    again = rows.decode(rows.encode(row))
    assert len(again) == len(row)
    assert all(map(same, again, row))


def test_edges_differ():
    """NULL, '', x'', 0, 0.0, -0.0, '1', 1 and 1.0 are all different."""
    assert len({rows.encode((value,)) for value in EDGES}) == len(EDGES)


def test_text_that_is_not_utf8_differs_from_its_blob():
    """Bad text is neither the blob of its bytes nor another bad text."""
    bad = [rows.RawText(b"\xff"), rows.RawText(b"\xfe"), b"\xff"]
    assert len({rows.encode((value,)) for value in bad}) == 3
    assert rows.decode(rows.encode((bad[0],))) == (bad[0],)
    assert rows.storage_class(bad[0]) == "text"


@pytest.mark.parametrize("data", [b"", b"\0", b"\0\1", b"\0\1X", b"\0\1T\0\0\0\5ab", b"\0\0N"])
def test_other_bytes_are_refused(data):
    """What no row encodes to is a `ValueError`."""
    with pytest.raises(ValueError, match="encoded"):
        rows.decode(data)


@pytest.mark.parametrize("value", [True, bytearray(b"x"), object()])
def test_other_values_are_refused(value):
    """A value that no cell holds is a `TypeError`, not another value."""
    with pytest.raises(TypeError, match="holds no"):
        rows.encode((value,))


@given(st.lists(VALUES, max_size=30), st.sampled_from(["BINARY", "NOCASE", "RTRIM"]))
def test_keys_are_ordered_as_sqlite_orders_them(values, collation):
    """Sort keys rank values as ORDER BY does, and tie where SQLite ties."""
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.execute("CREATE TABLE t (x)")
        connection.executemany("INSERT INTO t VALUES (?)", ((value,) for value in values))
        sql = f"SELECT x, dense_rank() OVER (ORDER BY x COLLATE {collation}) FROM t"
        ranked = connection.execute(sql).fetchall()
    keys = [rows.sort_key((value,), (collation,)) for value, _ in ranked]
    order = sorted(set(keys))
    assert [order.index(key) + 1 for key in keys] == [rank for _, rank in ranked]


@given(st.lists(st.sampled_from(["a", "A", "ab", "a ", "a\0b", "a\0c", "A\0b", "a\0", ""])))
def test_keys_with_a_nul_are_ordered_as_sqlite_orders_them(values):
    """NOCASE stops at a NUL and then looks at the length."""
    test_keys_are_ordered_as_sqlite_orders_them.hypothesis.inner_test(values, "NOCASE")


@given(ROWS)
def test_the_record_size_is_what_sqlite_limits(row):
    """SQLite takes a row under a length limit of its record size, and not one byte less."""
    row = ("x" * 100, *row)
    size = rows.record_size(row)
    with closing(sqlite3.connect(":memory:")) as connection:
        names = ", ".join(f"c{number}" for number in range(len(row)))
        connection.execute(f"CREATE TABLE t ({names})")
        marks = ", ".join("?" * len(row))
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, size)
        connection.execute(f"INSERT INTO t VALUES ({marks})", row)
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, size - 1)
        with pytest.raises(sqlite3.Error, match="too big"):
            connection.execute(f"INSERT INTO t VALUES ({marks})", row)
