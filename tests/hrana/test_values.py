"""Every value arrives bit by bit, in both directions."""

from __future__ import annotations

import math
import random
import sqlite3
import struct
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from harel_schema.errors import DataError, OperationalError, ProgrammingError
from harel_schema.hrana import Statement
from tests.support.text import any_text

if TYPE_CHECKING:
    from harel_schema.hrana import Client

EDGES = [
    None,
    *(
        sign * (2**bits) + step
        for bits in (6, 7, 14, 31, 53)
        for sign in (1, -1)
        for step in (-1, 0, 1)
    ),
    2**63 - 1,
    -(2**63),
    0.0,
    -0.0,
    5e-324,
    2.2250738585072014e-308,
    1.7976931348623157e308,
    math.inf,
    -math.inf,
    1700760962.4449127,
    "",
    "nul\0inside",
    "\0",
    "astral 😀 and \u0301",
    *("x" * length for length in (125, 126, 127, 128, 16_382, 16_383, 16_384)),
    b"",
    b"\x00\xff",
    *(b"y" * length for length in (125, 126, 127, 128, 16_383, 16_384)),
]

values = (
    st.none()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False)
    | any_text()
    | st.binary()
)


def same(sent: object, got: object) -> bool:
    """Return whether two values are equal in type and bits."""
    if isinstance(sent, float) and isinstance(got, float):
        return struct.pack("d", sent) == struct.pack("d", got)
    return type(sent) is type(got) and sent == got


def echo(client: Client, sent: list[object]) -> tuple[object, ...]:
    """Return `sent` as the server gives it back."""
    return client.execute(Statement(f"SELECT {','.join('?' * len(sent))}", sent)).rows[0]


def test_edges_survive(client: Client) -> None:
    """The edges of every storage class come back with their type and their bits."""
    got = echo(client, EDGES)
    assert [pair for pair in zip(EDGES, got, strict=True) if not same(*pair)] == []


def test_timestamps_survive(client: Client) -> None:
    """Random timestamps keep their last bit, which sqld's JSON parser would change."""
    rng = random.Random(1)
    sent = [1.7e9 + rng.random() * 1e6 for _ in range(2000)]
    assert list(echo(client, sent)) == sent


@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(sent=st.lists(values, min_size=1, max_size=50))
def test_any_value_survives(client: Client, sent: list[object]) -> None:
    """Whatever SQLite can hold comes back with its type and its bits."""
    assert all(same(*pair) for pair in zip(sent, echo(client, sent), strict=True))


def test_storage_classes_are_those_of_sqlite(client: Client) -> None:
    """A parameter has the storage class that stdlib sqlite3 gives it."""
    sql = f"SELECT {','.join(['typeof(?)'] * len(EDGES))}"
    oracle = sqlite3.connect(":memory:")
    assert client.execute(Statement(sql, EDGES)).rows == oracle.execute(sql, EDGES).fetchall()
    oracle.close()


def test_stored_values_survive(client: Client) -> None:
    """Values come back the same from a table without affinity."""
    client.execute(Statement("CREATE TABLE t(i INTEGER PRIMARY KEY, v)"))
    args = [item for pair in enumerate(EDGES) for item in pair]
    marks = ",".join(["(?,?)"] * len(EDGES))
    assert client.execute(
        Statement(f"INSERT INTO t VALUES {marks}", args)
    ).affected_row_count == len(EDGES)
    rows = list(client.rows(Statement("SELECT v FROM t ORDER BY i")))
    assert all(same(sent, got) for sent, (got,) in zip(EDGES, rows, strict=True))


def test_bool_bytearray_and_memoryview_are_accepted(client: Client) -> None:
    """A bool is an integer, every buffer is a blob."""
    assert echo(client, [True, False, bytearray(b"a"), memoryview(b"b")]) == (1, 0, b"a", b"b")


@pytest.mark.parametrize("value", [math.nan, 2**63, -(2**63) - 1, 10**400, "\ud800"])
def test_what_sqlite_cannot_hold_is_refused_before_sending(client: Client, value: object) -> None:
    """NaN, wide integers and lone surrogates are DataError, and nothing is sent."""
    with pytest.raises(DataError):
        client.execute(Statement("SELECT ?", (value,)))
    assert client.requests_sent == 0


def test_other_types_are_refused_before_sending(client: Client) -> None:
    """A parameter of another type is ProgrammingError, and nothing is sent."""
    with pytest.raises(ProgrammingError, match="type object"):
        client.execute(Statement("SELECT ?", (object(),)))
    assert client.requests_sent == 0


def test_named_parameters(client: Client) -> None:
    """A mapping binds by name, with or without the sign."""
    result = client.execute(Statement("SELECT :a, @b, $c", {"a": 1, "@b": "x", "c": None}))
    assert result.rows == [(1, "x", None)]


def test_text_that_is_not_utf8_is_an_error_with_a_way_out(client: Client) -> None:
    """A TEXT that no string can hold is OperationalError; as a blob it can be read."""
    with pytest.raises(OperationalError, match="CAST"):
        client.execute(Statement("SELECT CAST(x'ff' AS TEXT)"))
    read = Statement("SELECT CAST(CAST(x'ff' AS TEXT) AS BLOB)")
    assert client.execute(read).rows == [(b"\xff",)]
