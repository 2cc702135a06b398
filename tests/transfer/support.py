"""Databases to copy, and what they hold as an independent reader sees it."""

from __future__ import annotations

import sqlite3
import struct
from contextlib import closing, suppress
from itertools import count
from typing import TYPE_CHECKING, Any, TypeAlias

from harel_schema.hrana import Client, Statement
from harel_schema.migrate import schema_sql
from harel_schema.transfer import copy

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from harel_schema.transfer import Progress

Contents: TypeAlias = dict[str, list[tuple[Any, ...]]]

# Every storage class at its edges. SQLite stores no NaN.
EDGES: list[Any] = [
    None,
    *(0, 1, -1, 2**31 - 1, 2**31, -(2**31) - 1, 2**53 - 1, 2**53 + 1, 2**63 - 1, -(2**63)),
    *(0.0, -0.0, 1.0, 0.1, 1700760962.4449127, 5e-324, 1.7976931348623157e308, 2.0**63),
    *(float("inf"), float("-inf")),
    *("", "1", "1.0", "a\0b", "\0", "Straße 𝄞 \U0010ffff", "\ufeff", "'\"`", "x" * 70_000),
    *(b"", b"\0", b"1", bytes(range(256)), "é".encode(), b"\xff" * 70_000),
]


def edit(path: Path | str, *statements: str | tuple[str, tuple[Any, ...]]) -> None:
    """Run statements on a file, and commit."""
    with closing(sqlite3.connect(path)) as connection, connection:
        for each in statements:
            sql, args = (each, ()) if isinstance(each, str) else each
            connection.execute(sql, args)


def make_source(path: Path, *, executions: int = 30, prefix: str = "harel") -> Path:
    """Write a file at head with rows in every table."""
    with closing(sqlite3.connect(path)) as connection, connection:
        for statement in schema_sql(prefix):
            connection.execute(statement)
        for number in range(executions):
            fill(connection, prefix, number)
        # What was delivered is gone; the sequences stay ahead of the rows.
        for table in ("outbox", "spawns"):
            connection.execute(f"DELETE FROM {prefix}_{table} WHERE seq > ?", (executions - 5,))
    return path


def fill(connection: sqlite3.Connection, prefix: str, number: int) -> None:
    """Write one execution's rows into every table."""
    execution = f"e{number:04}"
    edge = EDGES[number % len(EDGES)]
    text = edge if isinstance(edge, str) else f'{{"n": {number}}}'
    rows = {
        "executions": (execution, "order@1", text, number + 2**53),
        "outbox": (None, edge if edge is None else execution, text),
        "processed_events": (execution, f"event-{number}"),
        "timers": (execution, "a/b", 1_700_000_000 + number / 7),
        "spawns": (None, execution, f"{execution}/x", "root", "{}"),
        "trace": (execution, number, text),
        "definitions": ("order", number, "d" * 40, text, None if number % 2 else 1e9 + number / 3),
        "transport_messages": (None, f"g{number % 3}", text, None, number / 11),
        "transport_groups": (f"g{number}", number / 13, -number),
    }
    for table, row in rows.items():
        marks = ", ".join("?" * len(row))
        connection.execute(f"INSERT INTO {prefix}_{table} VALUES ({marks})", row)


def fetch(database: Path | str, sql: str) -> list[tuple[Any, ...]]:
    """Return the rows of a query on a file or a server."""
    if str(database).startswith("http"):
        with Client(str(database)) as client:
            return list(client.rows(Statement(sql)))
    with closing(sqlite3.connect(database)) as connection:
        return connection.execute(sql).fetchall()


def contents(database: Path | str) -> Contents:
    """Return every cell of every table: what `typeof` says, and its bytes or the bits of a float.

    Independent of what is tested.
    """
    names = fetch(database, "SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name")
    found: Contents = {}
    for (name,) in names:
        text = "'" + name.replace("'", "''") + "'"
        columns = fetch(database, f"SELECT name FROM pragma_table_xinfo({text}) WHERE hidden <> 1")
        cells = []
        for (column,) in columns:
            cell = '"' + column.replace('"', '""') + '"'
            cells += (f"typeof({cell})", cell)
        table = '"' + name.replace('"', '""') + '"'
        rows = fetch(database, f"SELECT {', '.join(cells)} FROM {table}")
        found[name] = sorted(tuple(map(_bits, row)) for row in rows)
    return found


def _bits(cell: Any) -> Any:
    if isinstance(cell, float):
        return struct.pack(">d", cell).hex()
    return repr(cell)


def definitions(database: Path | str) -> list[tuple[Any, ...]]:
    """Return the text of everything in the schema."""
    sql = "SELECT type, name, tbl_name, sql FROM sqlite_schema WHERE sql <> '' ORDER BY type, name"
    return fetch(database, sql)


def stopping_copy(source: Path | str, dest: Path | str, **options: Any) -> int:
    """Copy, stopped after one batch more each time until it is not; return how often it ran."""
    for number in count(1):
        left = iter(range(number))

        def stop(progress: Progress, left: Iterator[int] = left) -> None:
            if progress.phase == "copy" and next(left, None) is None:
                raise KeyboardInterrupt

        with suppress(KeyboardInterrupt):
            copy(source, dest, progress=stop, **options)
            return number
    raise AssertionError
