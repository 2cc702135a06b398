"""What a revision promises: the schema that its migrations give."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from functools import cache
from typing import TYPE_CHECKING

from harel_schema import introspect
from harel_schema.drift.ours import transport_sql

if TYPE_CHECKING:
    from harel_schema.introspect import Schema

__all__ = ["chain", "expected", "transport"]


@cache
def expected(revision: str, prefix: str) -> Schema:
    """The schema of `revision`, version table included. Made once a process.

    Raises `MigrationError` for a revision that this version of the tool does not know.
    """
    # Alembic takes 300 ms to import, and migrate imports introspect.
    from harel_schema.migrate import schema_sql  # noqa: PLC0415

    return _made(schema_sql(prefix, revision), prefix)


@cache
def transport(prefix: str) -> Schema:
    """The transport's two tables with their indexes, as harel makes them itself."""
    return _made(transport_sql(prefix), None)


@cache
def chain() -> tuple[str, ...]:
    """All known revisions, from the first to head."""
    from harel_schema.migrate import history  # noqa: PLC0415 - as above

    return tuple(step.revision for step in sorted(history(), key=lambda step: step.revision))


def _made(statements: tuple[str, ...], prefix: str | None) -> Schema:
    with closing(sqlite3.connect(":memory:")) as connection:
        for statement in statements:
            connection.execute(statement)
        made = introspect.read(connection, prefix=prefix)
    # AUTOINCREMENT makes a table of SQLite's own beside ours.
    tables = tuple(table for table in made.tables if not table.name.startswith("sqlite_"))
    return made.model_copy(update={"tables": tables})
