"""Short names for what the tests of drift do all the time."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

from harel_schema import introspect
from harel_schema.drift import Difference, Drift, check_schema, schema_differences

if TYPE_CHECKING:
    from collections.abc import Iterable

    from harel_schema.introspect import Schema


def checked(
    connection: sqlite3.Connection, *, prefix: str = "harel", strict: bool = False
) -> Drift:
    """Compare an open database with what its revision promises."""
    return check_schema(introspect.read(connection, prefix=prefix), prefix=prefix, strict=strict)


def schema(*statements: str) -> Schema:
    """Read the schema that the statements make."""
    with closing(sqlite3.connect(":memory:")) as connection:
        for statement in statements:
            connection.execute(statement)
        return introspect.read(connection)


def differences(before: Iterable[str], after: Iterable[str]) -> list[Difference]:
    """Compare what two lists of statements make."""
    return list(schema_differences(schema(*before), schema(*after)))


def redefine(connection: sqlite3.Connection, table: str, old: str, new: str) -> None:
    """Make a table again with other text in its definition, and its indexes with it."""
    rows = connection.execute(
        "SELECT sql FROM sqlite_schema WHERE tbl_name = ? AND sql IS NOT NULL"
        " ORDER BY type = 'index'",
        (table,),
    ).fetchall()
    connection.execute(f"DROP TABLE {table}")
    definition, *indexes = (row[0] for row in rows)
    assert old in definition, definition
    for statement in (definition.replace(old, new, 1), *indexes):
        connection.execute(statement)
