"""What is to be copied: which tables of the source, in which form, and what follows them. Pure."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from harel_schema import drift
from harel_schema.drift.ours import internal_tables, without_move
from harel_schema.drift.unfinished import Unfinished, unfinished
from harel_schema.errors import SchemaMismatch, TransferError
from harel_schema.introspect import Schema, fold, quote
from harel_schema.names import change_log, ledger_name, move_table, version_table
from harel_schema.transfer.fulltext import as_tables, check_copyable, full_text
from harel_schema.transfer.layout import Query

if TYPE_CHECKING:
    from collections.abc import Iterable

    from harel_schema.introspect import Table, Trigger
    from harel_schema.transfer.database import Database
    from harel_schema.transfer.fulltext import FullText

__all__ = ["Contents", "all_contents", "all_names", "own_contents", "own_names", "part"]


@dataclass(frozen=True, slots=True)
class Contents:
    """A part of a database: its tables, and the views and triggers that belong to them.

    `versions` are the rows of the `version_table`, which is copied last, so that a destination
    has a revision only when it is complete. `revision` is None where the source has none.
    `full_text` are the full-text indexes; those with rows of their own are among `tables` too.
    """

    tables: tuple[Table, ...]
    schema: Schema
    version_table: Table | None
    versions: tuple[str | None, ...]
    revision: str | None
    full_text: tuple[FullText, ...] = ()

    def create(self, missing_from: Schema) -> list[Query]:
        """Make the tables that `missing_from` lacks, with their indexes, without rows."""
        tables = [*self.tables, *([self.version_table] if self.version_table else [])]
        lacking = [table for table in tables if missing_from.table(table.name) is None]
        sql = [table.sql for table in lacking]
        sql += [index.sql for table in lacking for index in table.indexes]
        there = {fold(virtual.name) for virtual in missing_from.virtual_tables}
        external = (each for each in self.full_text if each.external)
        sql += [each.table.sql for each in external if fold(each.name) not in there]
        return list(map(Query, sql))

    def finish(self, missing_from: Schema) -> list[Query]:
        """Make the triggers and views, which no copied row may meet, and the version row.

        Also build the full-text indexes that have no rows of their own.
        """
        there = {fold(view.name) for view in missing_from.views}
        there |= {fold(trigger.name) for trigger in _triggers(missing_from)}
        made = [(view.name, view.sql) for view in self.schema.views]
        made += [(trigger.name, trigger.sql) for trigger in _triggers(self.schema)]
        work = [Query(sql) for name, sql in made if fold(name) not in there]
        work += [query for each in self.full_text for query in each.complete()]
        work += self.unversion()
        if self.version_table is not None:
            name = quote(self.version_table.name)
            insert = f"INSERT INTO {name} (version_num) VALUES (?)"  # noqa: S608
            work += [Query(insert, (version,)) for version in self.versions]
        return work

    def unversion(self) -> list[Query]:
        """Empty the version table."""
        table = self.version_table
        return [] if table is None else [Query(f"DELETE FROM {quote(table.name)}")]  # noqa: S608

    def clear(self, found: Schema, prefix: str) -> list[Query]:
        """Drop what `found` has of the same names, and of harel's tables of any revision."""
        names = {fold(name) for name in (*self.names, *own_names(prefix), *_marks(prefix))}
        if self.version_table is not None:
            names.add(fold(version_table(prefix)))
        views = {fold(view.name) for view in self.schema.views}
        drop = [("VIEW", view.name) for view in found.views if fold(view.name) in views]
        # The tables of a virtual table go with it.
        names |= {fold(each.name) for each in self.full_text}
        virtual = [table.name for table in found.virtual_tables if fold(table.name) in names]
        drop += [("TABLE", name) for name in virtual]
        internal = internal_tables(found)
        drop += [
            ("TABLE", table.name)
            for table in found.tables
            if fold(table.name) in names and not internal(table)
        ]
        return [Query(f"DROP {kind} {quote(name)}") for kind, name in drop]

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the tables."""
        return tuple(table.name for table in self.tables)

    def of(self, found: Schema) -> Schema:
        """Return the part of another database that has the same names."""
        names = [*self.names, *(each.name for each in self.full_text)]
        return part(found, names, [view.name for view in self.schema.views])


def part(schema: Schema, tables: Iterable[str], views: Iterable[str]) -> Schema:
    """Return the tables and views of those names, as far as `schema` has them."""
    names, view_names = set(map(fold, tables)), set(map(fold, views))
    return Schema(
        tables=tuple(table for table in schema.tables if fold(table.name) in names),
        views=tuple(view for view in schema.views if fold(view.name) in view_names),
        virtual_tables=tuple(t for t in schema.virtual_tables if fold(t.name) in names),
        view_triggers=tuple(t for t in schema.view_triggers if fold(t.table) in view_names),
    )


def own_contents(source: Database, schema: Schema, prefix: str) -> Contents:
    """Return harel's tables, the transport's among them, of a database at a known revision.

    Raises `TransferError` for one that is half a copy, and `SchemaMismatch` when its tables are
    not what their revision promises.
    """
    said = _whole(source, schema, prefix)
    found = drift.check_schema(schema, prefix=prefix, said=said)
    target = source.target
    if not any(schema.table(name) for name in own_names(prefix)):
        raise TransferError(
            f"{target} holds no tables of the prefix {prefix!r}", remedy="check --prefix"
        )
    if found:
        counted = [str(each) for each in found if each.counts]
        more = f" (and {len(counted) - 1} more)" if len(counted) > 1 else ""
        fix = next((each.fix for each in found if each.counts), None)
        command = fix == "harel-schema upgrade"
        raise SchemaMismatch(
            f"{target}: {counted[0]}{more}",
            differences=tuple(counted),
            remedy=f"run {fix} {target}" if command else f"see harel-schema check {target}",
        )
    return _contents(schema, own_names(prefix), prefix, views=False)


def _whole(source: Database, schema: Schema, prefix: str) -> Unfinished:
    """Return what a source says of other copies and moves; refuse half of one."""
    said = unfinished(lambda sql: source.query(Query(sql)), schema, prefix)
    said.refuse_half(source.target, prefix, TransferError)
    return said


def own_names(prefix: str) -> list[str]:
    """Return the names of all tables of harel that any revision has."""
    known = drift.expected("head", prefix).tables
    return [table.name for table in known if table.name != version_table(prefix)]


def all_contents(source: Database, schema: Schema, prefix: str) -> Contents:
    """Return everything in a database that is not its own bookkeeping.

    What a move has added to it is left out. Raises `TransferError` for half a copy, and for a
    virtual table whose rows no INSERT brings back.
    """
    _whole(source, schema, prefix)
    schema = without_move(schema, prefix)
    indexes = full_text(source, schema)
    check_copyable(source.target, schema, indexes)
    schema = as_tables(schema, indexes)
    found = _contents(schema, all_names(schema, prefix), prefix, views=True)
    return replace(found, full_text=indexes)


def all_names(schema: Schema, prefix: str) -> list[str]:
    """Return the names of all tables whose rows are copied with `all_tables`."""
    internal = internal_tables(schema)
    apart = {fold(version_table(prefix)), *map(fold, _marks(prefix))}
    virtual = {fold(table.name) for table in schema.virtual_tables}
    return [
        table.name
        for table in schema.tables
        if (fold(table.name) in virtual or not internal(table)) and fold(table.name) not in apart
    ]


def _marks(prefix: str) -> tuple[str, ...]:
    """Return the names of the tables that a copy or a move keeps while it runs."""
    return ledger_name(prefix), move_table(prefix), change_log(prefix)


def _triggers(schema: Schema) -> list[Trigger]:
    return [*(t for table in schema.tables for t in table.triggers), *schema.view_triggers]


def _contents(schema: Schema, names: Iterable[str], prefix: str, *, views: bool) -> Contents:
    tables = tuple(table for name in names if (table := schema.table(name)) is not None)
    versions = schema.versions or ()
    return Contents(
        tables=tables,
        schema=schema if views else Schema(tables=tables),
        version_table=schema.table(version_table(prefix)),
        versions=versions,
        revision=versions[0] if len(versions) == 1 else None,
    )
