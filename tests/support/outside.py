"""A database as it is seen from outside of what is tested."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass
from typing import Any

from harel_schema import dbapi, introspect


@dataclass(frozen=True)
class Outside:
    """A database, and what tests do to it from outside."""

    target: str

    def rows(self, *statements: str) -> list[Any]:
        """Run statements in one transaction; return the rows of the last one."""
        with closing(dbapi.connect(self.target)) as connection, connection:
            return [connection.execute(each).fetchall() for each in statements][-1]

    def schema(self) -> introspect.Schema:
        """Read the whole schema."""
        with closing(dbapi.connect(self.target)) as connection:
            return introspect.read(connection)

    def made(self) -> list[Any]:
        """Return the kind, name, table and text of everything in the schema."""
        return self.rows(
            "SELECT type, name, tbl_name, sql FROM sqlite_schema "
            "WHERE name NOT LIKE 'sqlite_%' ORDER BY 1, 2"
        )
