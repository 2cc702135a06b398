"""What a revision promises: the schema that its migrations give."""

from __future__ import annotations

from contextlib import closing
from functools import cache

from harel_schema import dbapi, introspect
from harel_schema.frozen import chain, schema_sql
from harel_schema.introspect import Schema

__all__ = ["chain", "expected", "made", "transport"]


@cache
def expected(revision: str, prefix: str) -> Schema:
    """The schema of `revision`, version table included. Made once a process.

    Raises `MigrationError` for a revision that this version of the tool does not know.
    """
    return made(schema_sql(prefix, revision), prefix)


@cache
def transport(prefix: str) -> Schema:
    """The transport's two tables with their indexes, as harel makes them itself."""
    before = expected("0002", prefix)
    added = (t for t in expected("0003", prefix).tables if before.table(t.name) is None)
    return Schema(tables=tuple(added))


@cache
def made(statements: tuple[str, ...], prefix: str | None = None) -> Schema:
    """The schema that statements make in an empty database; `prefix` is as in `introspect.read`."""
    with closing(dbapi.connect(":memory:")) as connection:
        for statement in statements:
            connection.execute(statement)
        made = introspect.read(connection, prefix=prefix)
    # AUTOINCREMENT makes a table of SQLite's own beside ours.
    tables = tuple(table for table in made.tables if not table.name.startswith("sqlite_"))
    return made.model_copy(update={"tables": tables})
