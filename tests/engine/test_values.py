"""Values go through SQLAlchemy's types and come back the same, in the storage class they have."""

from __future__ import annotations

import math
import struct
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import (
    JSON,
    BigInteger,
    Column,
    Float,
    Integer,
    LargeBinary,
    MetaData,
    Table,
    Text,
    event,
    func,
    insert,
    select,
)
from sqlalchemy.exc import DBAPIError

from tests.support.text import any_text

if TYPE_CHECKING:
    from sqlalchemy import Engine

METADATA = MetaData()
CELLS = Table(
    "cells",
    METADATA,
    Column("id", Integer, primary_key=True),
    Column("number", BigInteger),
    Column("real", Float),
    Column("text", Text),
    Column("blob", LargeBinary),
    Column("document", JSON),
)

EDGES = {
    "number": [2**31, -(2**31) - 1, 2**53 + 1, -(2**53) - 1, 2**63 - 1, -(2**63)],
    "real": [0.1, math.inf, -math.inf, 5e-324, 1.7976931348623157e308, 1784563200.123456],
    "text": ["", "a\x00b", "\U0001f600", "\N{COMBINING ACUTE ACCENT}"],
    "blob": [b"", b"\x00\xff", bytes(range(256))],
    "document": [{"k": [1, None, 2.5, "\U0001f600"]}, [], "text", True],
}
STORAGE = {"number": "integer", "real": "real", "text": "text", "blob": "blob", "document": "text"}


@pytest.fixture
def cells(engine: Engine) -> Engine:
    """Return an engine over a database with the table."""
    METADATA.create_all(engine)
    return engine


def _without_sign_of_zero(number: float) -> float:
    # SQLite stores a REAL column's whole numbers as integers, which have no -0.
    return number + 0.0


def _write_and_read(engine: Engine, column: str, values: list[Any]) -> list[tuple[Any, str]]:
    with engine.begin() as connection:
        connection.execute(CELLS.delete())
        connection.execute(insert(CELLS), [{column: value} for value in values])
        query = select(CELLS.c[column], func.typeof(CELLS.c[column])).order_by(CELLS.c.id)
        return [(row[0], row[1]) for row in connection.execute(query)]


def _exact(value: Any) -> Any:
    return struct.pack("<d", value) if isinstance(value, float) else value


@pytest.mark.parametrize("column", EDGES)
def test_an_edge_value_comes_back(cells: Engine, column: str) -> None:
    """Every edge of a type is read as it was written, and stored in the type's storage class."""
    found = _write_and_read(cells, column, EDGES[column])
    assert [_exact(value) for value, _ in found] == [_exact(value) for value in EDGES[column]]
    assert {storage for _, storage in found} == {STORAGE[column]}


@settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    numbers=st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=20),
    reals=st.lists(st.floats(allow_nan=False).map(_without_sign_of_zero), min_size=1, max_size=20),
    texts=st.lists(any_text(), min_size=1, max_size=20),
    blobs=st.lists(st.binary(), min_size=1, max_size=20),
)
def test_any_value_comes_back(
    cells: Engine, numbers: list[int], reals: list[float], texts: list[str], blobs: list[bytes]
) -> None:
    """Integers, reals, texts and blobs of any value survive the way through the dialect."""
    for column, values in (
        ("number", numbers),
        ("real", reals),
        ("text", texts),
        ("blob", blobs),
    ):
        found = [value for value, _ in _write_and_read(cells, column, values)]
        assert [_exact(value) for value in found] == [_exact(value) for value in values]


def test_an_integer_beyond_64_bits_is_refused(cells: Engine) -> None:
    """An integer that SQLite cannot hold is an error, not another number."""
    with pytest.raises(DBAPIError), cells.begin() as connection:
        connection.execute(insert(CELLS), {"number": 2**63})


def test_many_inserted_rows_are_few_statements(cells: Engine) -> None:
    """INSERT of many rows with RETURNING sends them by the thousand, and returns every row."""
    statements: list[object] = []
    event.listen(cells, "before_cursor_execute", lambda *arguments: statements.append(arguments))
    with cells.begin() as connection:
        inserted = insert(CELLS).returning(CELLS.c.number)
        returned = connection.scalars(inserted, [{"number": n} for n in range(2500)]).all()
    assert sorted(returned) == list(range(2500))
    assert len(statements) <= 4


def test_inserted_rows_are_returned_in_order(cells: Engine) -> None:
    """`sort_by_parameter_order` gives each row its key, in the order of the rows."""
    inserted = insert(CELLS).returning(CELLS.c.id, CELLS.c.number, sort_by_parameter_order=True)
    with cells.begin() as connection:
        returned = connection.execute(inserted, [{"number": n} for n in range(20)]).all()
    assert returned == [(n + 1, n) for n in range(20)]


def test_counts_of_changed_rows_are_those_of_the_statement(cells: Engine) -> None:
    """`rowcount` is what one statement changed, and the sum for a statement run many times."""
    with cells.begin() as connection:
        inserted = connection.execute(insert(CELLS), {"number": 1})
        assert inserted.inserted_primary_key == (1,)
        connection.execute(insert(CELLS), [{"number": 1}, {"number": 2}])
        update = CELLS.update().where(CELLS.c.number == 1).values(text="x")
        assert connection.execute(update).rowcount == 2
        assert connection.execute(update.where(CELLS.c.id == 99)).rowcount == 0
