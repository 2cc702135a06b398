"""What a database already has of the revisions that its row does not account for.

A revision is asked about by what it adds: tables, and indexes on tables that were there before.
What is there in exactly the revision's shape is taken over; in another shape it is refused. So is
a version row that says more than there is, and a name that something else has.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import sqlalchemy as sa

from harel_schema import introspect
from harel_schema.drift import made, schema_differences
from harel_schema.drift.ours import without_move
from harel_schema.drift.promise import transport
from harel_schema.errors import MigrationError, SchemaMismatch
from harel_schema.frozen import chain
from harel_schema.introspect import Schema, Table, fold
from harel_schema.migrate.connect import raw
from harel_schema.names import version_table
from harel_schema.revisions import identifiers, statements
from harel_schema.tables import shared_metadata

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from alembic.script import ScriptDirectory

    from harel_schema.introspect import Index

__all__ = ["Shapes"]

# Differences that an error names, and characters of each.
_SHOWN, _LONG = 3, 120


@dataclass(frozen=True)
class _Added:
    """The folded names of what a revision adds."""

    tables: frozenset[str]
    indexes: frozenset[str]


class Shapes:
    """The shapes of a chain's revisions under one prefix."""

    def __init__(self, script: ScriptDirectory, prefix: str) -> None:
        self._script = script
        self._prefix = prefix
        self._chain = identifiers(script)
        self._known: dict[str, Schema] = {}
        self._owned = frozenset(fold(name) for name in shared_metadata(prefix).tables)

    def there(self, connection: sa.Connection, revision: str | None) -> tuple[str, ...]:
        """Return the later revisions whose additions the database has, though its row says less.

        When the whole shape is that of a later revision, all up to it. Raises `SchemaMismatch`
        when something that a later revision adds is there in another shape than it gives.
        """
        live = introspect.read(raw(connection))
        found, known = self._only_owned(live), self._of(revision)
        if found.by_name.keys() <= known.by_name.keys() and _indexes(found) <= _indexes(known):
            return ()
        later = self._chain[self._chain.index(revision) + 1 if revision else 0 :]
        additions = {name: self._added(name) for name in later}
        present = [name for name in later if _has(live, additions[name])]
        if not present:
            return ()
        for name in reversed(present):
            if not _lines(self._of(name), found):
                return later[: later.index(name) + 1]
        wrong = [
            lines
            for name in present
            if (lines := self._nearest(name, additions[name], later, live))
        ]
        if wrong:
            lines = tuple(line for each in wrong for line in each)
            raise SchemaMismatch(
                f"the tables of the prefix {self._prefix} have the shape of no revision: "
                f"{_first(lines)}",
                differences=lines,
                remedy="mend what `harel-schema check` names, or move the tables away",
            )
        return tuple(present)

    def present(self, connection: sa.Connection) -> tuple[str, ...]:
        """Return the names of our tables that the database has."""
        found = self._only_owned(introspect.read(raw(connection)))
        return tuple(table.name for table in found.tables)

    def indexes_of(self, revision: str) -> tuple[Index, ...]:
        """Return the indexes that `revision` adds to tables which were there before it."""
        added = self._added(revision).indexes
        found = (index for table in self._of(revision).tables for index in table.indexes)
        return tuple(index for index in found if fold(index.name) in added)

    def dropped(
        self, connection: sa.Connection, before: str | None, after: str | None
    ) -> tuple[str, ...]:
        """Return the tables, each with its rows, and the indexes that a downgrade drops."""
        counts = self._rows_that_go(connection, before, after)
        kept = [t for t in self._of(before).tables if fold(t.name) not in counts]
        indexes = _indexes(Schema(tables=tuple(kept))) - _indexes(self._of(after))
        return (*(_with_rows(name, rows) for name, rows in counts.items()), *sorted(indexes))

    def refuse_loss(self, connection: sa.Connection, before: str | None, after: str | None) -> None:
        """Raise `MigrationError` if a table that goes between two revisions holds rows."""
        counts = self._rows_that_go(connection, before, after)
        full = [_with_rows(name, rows) for name, rows in counts.items() if rows]
        if full:
            raise MigrationError(
                f"a downgrade to {after or 'base'} drops tables that hold rows: {', '.join(full)}",
                remedy="copy them first, or drop them with --force (alembic: -x force=true)",
            )

    def refuse_stamp(self, connection: sa.Connection, revision: str | None) -> None:
        """Raise `SchemaMismatch` if the tables are not what `revision` promises."""
        lines = self.differences(connection, revision)
        if lines:
            raise SchemaMismatch(
                f"the tables have not the shape of {revision or 'base'}: {_first(lines)}",
                differences=lines,
                remedy="stamp another revision, or --force it (alembic: -x force=true)",
            )

    def refuse_lie(self, connection: sa.Connection, revision: str | None, *, down: bool) -> None:
        """Raise `SchemaMismatch` if what a version row promises is not there.

        These are the tables and columns, on which later revisions build, and for a downgrade the
        indexes, which it drops.
        """
        live, want = introspect.read(raw(connection)), self._of(revision)
        missing = [name for table in want.tables for name in _missing(table, live)]
        if down:
            missing += sorted(_indexes(want) - _indexes(live))
        if missing:
            raise SchemaMismatch(
                f"{version_table(self._prefix)} says {revision}, "
                f"but there is no {_first(missing, ', ')}",
                differences=tuple(missing),
                remedy="mend what `harel-schema check` names, "
                "or `harel-schema stamp` the revision that is true",
            )

    def refuse_taken(self, connection: sa.Connection, revisions: Iterable[str]) -> None:
        """Raise `SchemaMismatch` if something else has a name that `revisions` are to make."""
        live = introspect.read(raw(connection))
        taken = {fold(table.name): "a table" for table in live.tables}
        # Where it is a table, that is what it should be.
        taken.pop(fold(version_table(self._prefix)), None)
        taken |= {fold(view.name): "a view" for view in live.views}
        taken |= {fold(virtual.name): "a virtual table" for virtual in live.virtual_tables}
        taken |= {
            fold(index.name): f"an index on {table.name}"
            for table in live.tables
            for index in table.indexes
        }
        # A revision of somebody else's is not run to learn what it would make.
        known = set(chain()).intersection(revisions)
        needed = {fold(version_table(self._prefix))}.union(*map(self._made, known))
        lines = tuple(f"{name} is {taken[name]}" for name in sorted(needed & taken.keys()))
        if lines:
            raise SchemaMismatch(
                f"a name that the upgrade needs is taken: {_first(lines)}",
                differences=lines,
                remedy="rename or drop what has the name, or use another --prefix",
            )

    def differences(self, connection: sa.Connection, revision: str | None) -> tuple[str, ...]:
        """Return how our tables in the database differ from a revision's, as `check` counts it."""
        live = introspect.read(raw(connection))
        if revision is None:
            return _lines(Schema(), self._only_owned(live))
        want, found = self._of(revision), self._only_owned(live)
        # Before the revision that makes them, harel's own are allowed.
        optional = {fold(t.name): t for t in transport(self._prefix).tables}
        if want.by_name.keys().isdisjoint(optional) and optional.keys() & found.by_name.keys():
            want = Schema(tables=(*want.tables, *optional.values()))
        return _lines(want, without_move(found, self._prefix))

    def _rows_that_go(
        self, connection: sa.Connection, before: str | None, after: str | None
    ) -> dict[str, int]:
        gone = self._of(before).by_name.keys() - self._of(after).by_name.keys()
        return {name: _count(connection, name) for name in sorted(gone)}

    def _nearest(
        self, name: str, added: _Added, later: Sequence[str], live: Schema
    ) -> tuple[str, ...]:
        """Return how the additions of `name` differ from the revision they are nearest to."""
        found = _part(live, added)
        tried = (_lines(_part(self._of(each), added), found) for each in later[later.index(name) :])
        return min(tried, key=len)

    def _added(self, name: str) -> _Added:
        at = self._chain.index(name)
        before, after = self._of(self._chain[at - 1] if at else None), self._of(name)
        tables = after.by_name.keys() - before.by_name.keys()
        old = [table for table in after.tables if fold(table.name) not in tables]
        return _Added(
            tables=frozenset(tables),
            indexes=frozenset(_indexes(Schema(tables=tuple(old))) - _indexes(before)),
        )

    def _made(self, name: str) -> set[str]:
        added = self._added(name)
        new = (table for table in self._of(name).tables if fold(table.name) in added.tables)
        return {*added.tables, *added.indexes, *_indexes(Schema(tables=tuple(new)))}

    def _of(self, revision: str | None) -> Schema:
        if revision is None:
            return Schema()
        if revision not in self._known:
            replayed = made(statements(self._script, self._prefix, revision))
            self._known[revision] = self._only_owned(replayed)
        return self._known[revision]

    def _only_owned(self, schema: Schema) -> Schema:
        return Schema(tables=tuple(t for t in schema.tables if fold(t.name) in self._owned))


def _has(live: Schema, added: _Added) -> bool:
    return not (added.tables.isdisjoint(live.by_name) and added.indexes.isdisjoint(_indexes(live)))


def _missing(table: Table, live: Schema) -> list[str]:
    """The table where a database does not have it, else those of its columns that are not there."""
    found = live.table(table.name)
    if found is None:
        return [table.name]
    return [f"{table.name}.{c.name}" for c in table.columns if fold(c.name) not in found.by_name]


def _part(schema: Schema, added: _Added) -> Schema:
    """The added tables whole, and of other tables nothing but the added indexes."""
    tables = []
    for table in schema.tables:
        if fold(table.name) in added.tables:
            tables.append(table)
            continue
        indexes = tuple(index for index in table.indexes if fold(index.name) in added.indexes)
        if indexes:
            tables.append(Table(name=table.name, columns=(), indexes=indexes))
    return Schema(tables=tuple(tables))


def _indexes(schema: Schema) -> set[str]:
    return {fold(index.name) for table in schema.tables for index in table.indexes}


def _lines(want: Schema, found: Schema) -> tuple[str, ...]:
    return tuple(map(str, schema_differences(want, found)))


def _first(lines: Sequence[str], between: str = "; ") -> str:
    """Return the first of many lines, as far as one line takes them, and how many more there are.

    All of them are in `SchemaMismatch.differences`.
    """
    shown = [line if len(line) <= _LONG else f"{line[:_LONG]}…" for line in lines[:_SHOWN]]
    more = len(lines) - len(shown)
    return between.join(shown) + (f" (and {more} more)" if more else "")


def _with_rows(table: str, rows: int) -> str:
    return f"{table} ({rows:,} {'row' if rows == 1 else 'rows'})"


def _count(connection: sa.Connection, table: str) -> int:
    return connection.execute(sa.select(sa.func.count()).select_from(sa.table(table))).scalar_one()
