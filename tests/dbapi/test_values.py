"""Every value arrives as it left: storage class and bytes, through every driver."""

from __future__ import annotations

import math
import struct
from enum import IntEnum, StrEnum

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from harel_schema import dbapi
from tests.support.text import any_text

EDGES = [
    None,
    *(sign * 2**31 + off for sign in (1, -1) for off in (-1, 0, 1)),
    *(sign * 2**53 + off for sign in (1, -1) for off in (-1, 0, 1)),
    2**63 - 1,
    -(2**63),
    0,
    0.0,
    -0.0,
    math.inf,
    -math.inf,
    5e-324,
    -2.225073858507201e-308,
    1.7976931348623157e308,
    1700760962.4449127,
    float(2**53),
    "",
    "a\0b",
    "\0",
    "\N{GRINNING FACE}\U0010ffff",
    "1755900000000",
    "3.0",
    b"",
    b"\0\xff",
    b"text",
    bytes(range(256)),
]

VALUES = st.one_of(
    st.none(),
    st.integers(-(2**63), 2**63 - 1),
    st.sampled_from(EDGES),
    st.floats(allow_nan=False),
    any_text(max_size=20),
    st.binary(max_size=20),
)


def identity(value):
    """Return a value's type and bits."""
    bits = struct.pack(">d", value) if isinstance(value, float) else value
    return type(value), bits


@pytest.mark.parametrize("declared", ["", "INTEGER", "REAL", "TEXT", "BLOB", "NUMERIC"])
def test_edges_match_stdlib_in_every_column(any_connection, oracle, declared):
    """What stdlib stores for a value, typeof and bytes, every driver stores, and reads back."""
    for connection in (any_connection, oracle):
        connection.execute(f"CREATE TABLE t (id INTEGER PRIMARY KEY, v {declared})")
        connection.executemany("INSERT INTO t (v) VALUES (?)", [(edge,) for edge in EDGES])
    query = "SELECT id, typeof(v), hex(v), v FROM t ORDER BY id"
    ours = [list(map(identity, row)) for row in any_connection.execute(query)]
    assert ours == [list(map(identity, row)) for row in oracle.execute(query)]


@settings(max_examples=50, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rows=st.lists(st.tuples(VALUES, VALUES), min_size=1, max_size=20))
def test_any_value_round_trips(any_connection, rows):
    """Any value comes back with its type and bits, by SELECT and by RETURNING."""
    if not any_connection.in_transaction:
        any_connection.begin()
    any_connection.execute("CREATE TABLE IF NOT EXISTS t (id INTEGER PRIMARY KEY, a, b)")
    any_connection.execute("DELETE FROM t")
    for at, row in enumerate(rows):
        back = any_connection.execute(
            "INSERT INTO t VALUES (?, ?, ?) RETURNING a, b AS c", (at, *row)
        )
        assert [*map(identity, back.fetchone())] == [*map(identity, row)]
    found = any_connection.execute("SELECT a, b FROM t ORDER BY id").fetchall()
    assert [[*map(identity, row)] for row in found] == [[*map(identity, row)] for row in rows]


def test_values_in_expressions(any_connection):
    """A value keeps its class anywhere in a statement, repeated, negated, mixed with others."""
    big, row = 2**53 + 1, (2**53 + 1, -(2**40), "a\0b", 7)
    sql = "SELECT ?1 + 0, 1-?2, typeof(?1), ?3 || ?4, ?1, length(?3) WHERE ?1 > ?4"
    found = any_connection.execute(sql, row).fetchall()
    assert found == [(big, 1 + 2**40, "integer", "a\0b7", big, 1)]
    named = any_connection.execute("SELECT :a, :b, :a", {"a": big, "b": "x", "c": 0}).fetchone()
    assert named == (big, "x", big)


def test_comparisons_take_the_affinity_of_a_parameter(any_connection):
    """A large int compares with a TEXT column as a bound parameter does in SQLite."""
    any_connection.execute("CREATE TABLE t (a TEXT)")
    any_connection.execute("INSERT INTO t VALUES (?)", (2**53 + 1,))
    assert any_connection.execute("SELECT a FROM t WHERE a = ?", (2**53 + 1,)).fetchall() == [
        ("9007199254740993",)
    ]


def test_nan_is_null(any_connection):
    """NaN is stored as NULL, as stdlib has it."""
    assert any_connection.execute("SELECT ?, typeof(?)", (math.nan, math.nan)).fetchone() == (
        None,
        "null",
    )


class _Text(StrEnum):
    A = "a"


class _Number(IntEnum):
    A = 2**40


@pytest.mark.parametrize(
    ("given", "stored"),
    [
        (True, 1),
        (bytearray(b"a\0"), b"a\0"),
        (memoryview(b"abcd")[::2], b"ac"),
        (_Text.A, "a"),
        (_Number.A, 2**40),
    ],
)
def test_related_types(any_connection, given, stored):
    """A bool, a buffer and subclasses of the basic types are bound as the basic value."""
    (back,) = any_connection.execute("SELECT ?", (given,)).fetchone()
    assert identity(back) == identity(stored)


@pytest.mark.parametrize(
    ("value", "error"),
    [
        (2**63, dbapi.DataError),
        (-(2**63) - 1, dbapi.DataError),
        ("\ud800", dbapi.DataError),
        (1j, dbapi.ProgrammingError),
        (object(), dbapi.ProgrammingError),
        (["a"], dbapi.ProgrammingError),
    ],
)
def test_values_that_sqlite_has_not(any_connection, value, error):
    """A value that SQLite cannot hold is refused before the driver sees it, and nothing runs."""
    any_connection.execute("CREATE TABLE t (a)")
    with pytest.raises(error):
        any_connection.execute("INSERT INTO t VALUES (?)", (value,))
    assert any_connection.execute("SELECT count(*) FROM t").fetchone() == (0,)


@pytest.mark.parametrize(
    ("sql", "parameters"),
    [
        ("SELECT ?, ?", (1,)),
        ("SELECT ?", (1, 2)),
        ("SELECT 1", (1,)),
        ("SELECT ?", {"a": 1}),
        ("SELECT :a", (1,)),
        ("SELECT :a", {"b": 1}),
        ("SELECT :a, ?", {"a": 1}),
        ("SELECT ?", "a"),
        ("SELECT ?", 1),
        ("SELECT ?", {1}),
    ],
)
def test_parameters_that_do_not_fit(any_connection, sql, parameters):
    """A wrong number or kind of parameters is refused."""
    with pytest.raises(dbapi.ProgrammingError):
        any_connection.execute(sql, parameters)


def test_text_that_is_not_utf8(any_connection):
    """Text that is not UTF-8 is an `OperationalError`, its bytes can be had, and no panic."""
    any_connection.execute("CREATE TABLE t (a TEXT)")
    any_connection.execute("INSERT INTO t VALUES (CAST(x'ff61' AS TEXT))")
    with pytest.raises(dbapi.OperationalError, match=r"UTF-8"):
        any_connection.execute("SELECT a FROM t").fetchall()
    assert any_connection.execute("SELECT CAST(a AS BLOB) FROM t").fetchall() == [(b"\xffa",)]


def test_text_of_a_utf16_database(open_local):
    """A database whose text is UTF-16 is read as well, NUL included."""
    connection = open_local(isolation_level=None)
    connection.execute("PRAGMA encoding = 'UTF-16le'")
    connection.execute("CREATE TABLE t (a)")
    connection.execute("INSERT INTO t VALUES (?)", ("a\0\N{GRINNING FACE}",))
    assert connection.execute("SELECT a FROM t").fetchall() == [("a\0\N{GRINNING FACE}",)]


def test_uneven_statements_stay_exact(any_connection):
    """Stars, duplicate names, compound and recursive queries give names and rows unchanged."""
    any_connection.execute('CREATE TABLE t (a, "b c", a2)')
    any_connection.execute("INSERT INTO t VALUES (?, 2, x'00')", ("x\0",))
    cases = {
        "SELECT *, a AS a, t.* FROM t": ["a", "b c", "a2", "a", "a", "b c", "a2"],
        "SELECT a FROM t UNION ALL SELECT 1 ORDER BY 1": ["a"],
        "VALUES ('a', 1)": ["column1", "column2"],
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION SELECT i+1 FROM n LIMIT 3) SELECT i FROM n": ["i"],
        "SELECT 1 + 1, count(*), 'x' FROM t -- end": ["1 + 1", "count(*)", "'x'"],
    }
    for sql, names in cases.items():
        assert [column[0] for column in any_connection.execute(sql).description] == names
    assert any_connection.execute("SELECT *, a FROM t").fetchall() == [
        ("x\0", 2, b"\0", "x\0"),
    ]


def test_a_star_follows_the_schema(open_any):
    """A `SELECT *` that ran before has the new columns after another connection's ALTER."""
    one, two = open_any(isolation_level=None), open_any(isolation_level=None)
    one.execute("CREATE TABLE t (a)")
    one.execute("INSERT INTO t VALUES (1)")
    assert one.execute("SELECT * FROM t").fetchall() == [(1,)]
    two.execute("ALTER TABLE t ADD COLUMN b DEFAULT 2")
    cursor = one.execute("SELECT * FROM t")
    assert ([column[0] for column in cursor.description], cursor.fetchall()) == (
        ["a", "b"],
        [(1, 2)],
    )


RETURNING = [
    "*",
    "id, a",
    't.a, "a", A',
    'a AS x, a y, a "z z"',
    "upper(a) || 'x', a IS NULL, a ISNULL, CAST(a AS TEXT) end_",
    "*, id, *",
    "CASE WHEN a = 'q' THEN a ELSE id END, (SELECT count(*) FROM u), x'00' AS b",
    "a COLLATE nocase, a NOT NULL, -id",
    "?, ?",
]


@pytest.mark.parametrize("items", RETURNING)
def test_returning_matches_stdlib(any_connection, oracle, items):
    """RETURNING gives stdlib's names and rows, in every form, for every verb."""
    answers = []
    extra = ("p\0", 2**40) if "?" in items else ()
    for connection in (any_connection, oracle):
        connection.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, a)")
        connection.execute("CREATE TABLE u (a)")
        found = []
        for sql, values in (
            ("INSERT INTO t (a) VALUES (?), (?)", ("q\0r", 2**53 + 1)),
            ("REPLACE INTO main.t VALUES (1, ?)", ("q",)),
            ("UPDATE OR IGNORE t SET a = a || ? WHERE id < 3", ("\0",)),
            ("WITH k AS (SELECT ? AS id) DELETE FROM t WHERE id IN (SELECT id FROM k)", (1,)),
        ):
            cursor = connection.execute(f"{sql} RETURNING {items}", (*values, *extra))
            rows = cursor.fetchall()
            found.append(([column[0] for column in cursor.description], rows))
        answers.append(found)
    assert answers[0] == answers[1]
