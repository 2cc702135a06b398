"""How long an upgrade will keep writers waiting, judged by a sample of the rows it must read."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from harel_schema.introspect import quote

if TYPE_CHECKING:
    from collections.abc import Iterable

    import sqlalchemy as sa

    from harel_schema.introspect import Index

__all__ = ["Wait", "large_tables", "wait_for"]

# Rows. Fewer are indexed in no time, and not worth a sample.
_MANY = 50_000
_SAMPLE = 20_000
# What sorting a row's entry and writing it costs more than reading the row (measured: 0.1 to 0.5).
_SECONDS_TO_WRITE = 0.5e-6


@dataclass(frozen=True, slots=True)
class Wait:
    """How long a revision takes, and with it how long every writer waits, roughly.

    `rows` counts those of its largest table; both are 0 where there are few.
    """

    seconds: float = 0.0
    rows: int = 0


def large_tables(connection: sa.Connection, tables: Iterable[str]) -> dict[str, int]:
    """Return the tables, of those that are there, with so many rows that an index takes time.

    The number of rows is too high where many were deleted.
    """
    counts = {table: _scalar(connection, f"SELECT max(rowid) FROM {quote(table)}")  # noqa: S608
              for table in tables}  # fmt: skip
    return {table: rows for table, rows in counts.items() if rows >= _MANY}


def wait_for(connection: sa.Connection, indexes: Iterable[Index], large: dict[str, int]) -> Wait:
    """Return how long it takes to make `indexes`; reads samples of the `large` tables."""
    seconds, most = 0.0, 0
    answer = _seconds(connection, "SELECT 1")
    for index in indexes:
        rows = large.get(index.table, 0)
        if rows:
            most = max(most, rows)
            read = max(_seconds(connection, _sample(index)) - answer, 0.0) / _SAMPLE
            seconds += rows * (read + _SECONDS_TO_WRITE)
    return Wait(seconds, most)


def _sample(index: Index) -> str:
    """Return a query that works out the index's entries for some rows."""
    terms = ", ".join(f"sum(length({term.text}))" for term in index.terms)
    where = f" WHERE {index.where}" if index.where else ""
    source = f"(SELECT * FROM {quote(index.table)} LIMIT {_SAMPLE})"  # noqa: S608
    return f"SELECT {terms} FROM {source}{where}"  # noqa: S608


def _scalar(connection: sa.Connection, query: str) -> int:
    return connection.exec_driver_sql(query).scalar() or 0


def _seconds(connection: sa.Connection, query: str) -> float:
    started = time.perf_counter()
    connection.exec_driver_sql(query).fetchall()
    return time.perf_counter() - started
