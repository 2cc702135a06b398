"""What SQLite does by a schema, found out from SQLite alone.

An oracle for the comparison of schemas that shares no code with it: the PRAGMAs, and the programs
into which SQLite compiles (EXPLAIN) an insert, an update, a delete and a search of every column.
Checks, defaults, conflict clauses, generated columns, foreign keys, indexes and triggers are
all in those programs.

What it does not see: the text that an unnamed CHECK shows when it fails, and names in another
case of letters, which SQLite holds for the same name.
"""

from __future__ import annotations

import re
import sqlite3
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

# What a program holds besides the work: bookkeeping that repeats the text of the schema.
_NOISE = frozenset({"ParseSchema", "Explain", "Transaction", "Trace"})
_CHECK_FAILED = 275


def make(statements: Iterable[str]) -> sqlite3.Connection:
    """Make a database by statements."""
    connection = sqlite3.connect(":memory:")
    connection.execute("PRAGMA foreign_keys = ON")
    try:
        for statement in statements:
            connection.execute(statement)
    except sqlite3.Error:
        connection.close()
        raise
    return connection


def probes(connection: sqlite3.Connection) -> list[str]:
    """Return statements that touch every column of every table in every way."""
    found: list[str] = []
    for name in _names(connection, "table"):
        rows = connection.execute(f"PRAGMA table_xinfo({name})").fetchall()
        columns = [row[1] for row in rows if row[6] == 0]
        marks = ", ".join("?" * len(columns))
        found += [
            f"INSERT INTO {name} ({', '.join(columns)}) VALUES ({marks})",
            f"INSERT INTO {name} DEFAULT VALUES",
            f"DELETE FROM {name} WHERE 1",
            *(f"UPDATE {name} SET {column} = ?" for column in columns),
            *(f"INSERT INTO {name} ({column}) VALUES (?)" for column in columns),
            *(f"SELECT * FROM {name} WHERE {row[1]} = ? ORDER BY {row[1]}" for row in rows),
        ]
    found += [f"SELECT * FROM {name}" for name in _names(connection, "view")]
    return found


def behaviour(connection: sqlite3.Connection, statements: Iterable[str]) -> list[Any]:
    """Return what SQLite knows of its tables, and what it would do for each statement."""
    facts: list[Any] = [
        _folded(connection, "SELECT type, name, tbl_name FROM sqlite_schema WHERE sql NOT NULL")
    ]
    for name in _names(connection, "table"):
        facts += [
            _folded(
                connection, f"SELECT type, wr, strict FROM pragma_table_list WHERE name = '{name}'"
            ),
            _folded(
                connection,
                'SELECT cid, name, type, "notnull", dflt_value IS NULL, pk, hidden'
                f" FROM pragma_table_xinfo('{name}')",
            ),
            _folded(
                connection,
                "SELECT iif(l.origin = 'c', l.name, ''), l.\"unique\", l.origin, l.partial,"
                f" x.seqno, x.cid, x.name, x.desc, x.coll FROM pragma_index_list('{name}') AS l,"
                " pragma_index_xinfo(l.name) AS x WHERE x.key",
            ),
            _folded(
                connection,
                'SELECT "table", "from", on_update, on_delete'
                f" FROM pragma_foreign_key_list('{name}')",
            ),
        ]
    facts += [_folded(connection, f"SELECT name FROM pragma_table_info('{name}')")
              for name in _names(connection, "view")]  # fmt: skip
    return [*facts, *(list(_program(connection, statement)) for statement in statements)]


def _names(connection: sqlite3.Connection, kind: str) -> list[str]:
    rows = connection.execute(
        "SELECT name FROM sqlite_schema WHERE type = ? AND name NOT LIKE 'sqlite%' ORDER BY rowid",
        (kind,),
    )
    return [row[0] for row in rows.fetchall()]


def _folded(connection: sqlite3.Connection, sql: str) -> list[str]:
    try:
        rows = connection.execute(sql).fetchall()
    except sqlite3.Error as error:
        return [str(error)]
    return sorted(repr(tuple(map(_fold, row))) for row in rows)


def _fold(value: object) -> object:
    return value.lower().replace(" ", "") if isinstance(value, str) else value


def _program(connection: sqlite3.Connection, statement: str) -> Iterator[tuple[object, ...]]:
    try:
        rows = connection.execute(f"EXPLAIN {statement}", [None] * statement.count("?")).fetchall()
    except sqlite3.Error as error:
        yield ("error", _fold(str(error)))
        return
    for _, opcode, p1, p2, p3, p4, p5, _ in rows:
        if opcode in _NOISE:
            continue
        unnamed = opcode == "Halt" and p1 == _CHECK_FAILED and not re.fullmatch(r"\w+", p4 or "")
        yield (opcode, p1, p2, p3, "" if unnamed else _fold(p4), p5)
