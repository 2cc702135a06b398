"""Which revision a database's tables have the shape of, and what a downgrade would drop."""

from __future__ import annotations

from typing import TYPE_CHECKING

import sqlalchemy as sa

from harel_schema import introspect
from harel_schema.drift import made, schema_differences
from harel_schema.errors import MigrationError, SchemaMismatch
from harel_schema.introspect import Schema, fold
from harel_schema.migrate.connect import raw
from harel_schema.revisions import identifiers, statements
from harel_schema.tables import metadata

if TYPE_CHECKING:
    from alembic.script import ScriptDirectory

__all__ = ["Shapes"]


class Shapes:
    """The shapes of a chain's revisions under one prefix."""

    def __init__(self, script: ScriptDirectory, prefix: str) -> None:
        self._script = script
        self._prefix = prefix
        self._owned = frozenset(fold(name) for name in metadata(prefix).tables)

    def adoptable(self, connection: sa.Connection, revision: str | None) -> str | None:
        """Return the later revision whose shape the database has, though its row says `revision`.

        None when no table is there that `revision` does not account for. Raises `SchemaMismatch`
        when there is one and the shape is that of no revision.
        """
        found = self._only_owned(introspect.read(raw(connection)))
        if found.by_name.keys() <= self._of(revision).by_name.keys():
            return None
        chain = identifiers(self._script)
        later = chain[chain.index(revision) + 1 if revision else 0 :]
        differences = {
            name: tuple(map(str, schema_differences(self._of(name), found)))
            for name in reversed(later)
        }
        matching = next((name for name, lines in differences.items() if not lines), None)
        if matching is None and differences:
            raise _mismatch(self._prefix, *min(differences.items(), key=lambda item: len(item[1])))
        return matching

    def refuse_loss(self, connection: sa.Connection, before: str | None, after: str | None) -> None:
        """Raise `MigrationError` if a table that goes between two revisions holds rows."""
        gone = self._of(before).by_name.keys() - self._of(after).by_name.keys()
        counts = {name: _count(connection, name) for name in sorted(gone)}
        full = [f"{name} ({rows})" for name, rows in counts.items() if rows]
        if full:
            raise MigrationError(
                f"a downgrade to {after or 'base'} drops tables that hold rows: {', '.join(full)}",
                remedy="copy them first, or drop them with --force (alembic: -x force=true)",
            )

    def _of(self, revision: str | None) -> Schema:
        if revision is None:
            return Schema()
        return self._only_owned(made(statements(self._script, self._prefix, revision)))

    def _only_owned(self, schema: Schema) -> Schema:
        return Schema(tables=tuple(t for t in schema.tables if fold(t.name) in self._owned))


def _mismatch(prefix: str, revision: str, lines: tuple[str, ...]) -> SchemaMismatch:
    return SchemaMismatch(
        f"the tables of the prefix {prefix} have the shape of no revision; "
        f"against {revision}: {'; '.join(lines)}",
        differences=lines,
        remedy="mend them, or move them away, and run it again",
    )


def _count(connection: sa.Connection, table: str) -> int:
    return connection.execute(sa.select(sa.func.count()).select_from(sa.table(table))).scalar_one()
