"""What brings the tables of harel before 0.7 to the names that it has used since. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from harel_schema.drift import expected, legacy, schema_differences
from harel_schema.errors import SchemaMismatch
from harel_schema.introspect import Schema, fold, quote
from harel_schema.names import version_table
from harel_schema.revisions import history, schema_sql

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from harel_schema.drift.legacy import Found
    from harel_schema.introspect import Table

__all__ = ["Adoption", "Contents", "involved", "plan"]


@dataclass(frozen=True, slots=True)
class Contents:
    """What a table holds: whether it has rows, and the last number that AUTOINCREMENT gave."""

    rows: bool
    sequence: int


@dataclass(frozen=True, slots=True)
class Adoption:
    """The change, as SQL for one transaction; without `sql` there is nothing to do.

    `renamed` holds pairs of names, `created` and `dropped` the names of tables. `notes` tell
    what is left as it is, `conflicts` why nothing can be done, a line each.
    """

    renamed: tuple[tuple[str, str], ...] = ()
    created: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    conflicts: tuple[str, ...] = ()
    sql: tuple[str, ...] = ()


def involved(schema: Schema, prefix: str) -> tuple[str, ...]:
    """Return the names of the tables whose contents `plan` asks about: none, nothing to adopt."""
    found = legacy.find(schema, prefix)
    old = [table.name for each in found for table in each.tables]
    new = [table.name for each in found for table in _later(schema, each, prefix)]
    return (*old, *new)


def plan(schema: Schema, contents: Mapping[str, Contents], prefix: str) -> Adoption:
    """Return what adopts the tables of a schema, which was read with the prefix.

    Raises `SchemaMismatch` when tables of either generation are not as harel makes them.
    """
    notes, conflicts, moving = [], [], []
    for found in legacy.find(schema, prefix):
        later = _later(schema, found, prefix)
        full = [table.name for table in found.tables if contents[table.name].rows]
        full_later = [table.name for table in later if contents[table.name].rows]
        used = bool(full_later) or any(contents[table.name].sequence for table in later)
        if full and full_later:
            conflicts.append(_conflict(found, full, full_later))
        elif used and not full:
            notes.append(
                f"{_names(found.tables)} (harel before 0.7) hold no rows, and {prefix}_… is in "
                "use: left as they are"
            )
        else:
            _refuse_changed(found, later, prefix)
            moving.append(found)
    if conflicts:
        return Adoption(conflicts=tuple(conflicts))
    return _adoption(schema, moving, notes, prefix)


def _conflict(found: Found, full: list[str], full_later: list[str]) -> str:
    return (
        f"both generations of the {found.part.kind}'s tables hold rows: {', '.join(full)} (harel "
        f"before 0.7) and {', '.join(full_later)} (since 0.7)"
    )


def _later(schema: Schema, found: Found, prefix: str) -> tuple[Table, ...]:
    """The tables of the later generation that would make room for a part."""
    transport = {fold(pair.new.name) for pair in legacy.parts(prefix)[1].pairs}
    if found.part.kind == "transport":
        names = transport
    else:
        head = expected(history()[-1].revision, prefix)
        names = head.by_name.keys() - transport - {fold(version_table(prefix))}
    return tuple(table for table in schema.tables if fold(table.name) in names)


def _refuse_changed(found: Found, later: tuple[Table, ...], prefix: str) -> None:
    if found.wrong:
        raise SchemaMismatch(
            f"the {found.part.kind}'s tables without a prefix are not as a release of harel made "
            f"them: {'; '.join(found.wrong)}",
            differences=found.wrong,
            remedy="mend them, or move them away, and run `harel-schema adopt` again",
        )
    strange = tuple(table.name for table in later if not _is_ours(table, prefix))
    if strange:
        raise SchemaMismatch(
            f"{', '.join(strange)} stands in the way of harel's own, in another shape",
            differences=strange,
            remedy="move it away, or adopt into another --prefix",
        )


def _is_ours(table: Table, prefix: str) -> bool:
    """Whether a table has the shape that some revision, or harel itself, gives it."""
    own = (expected(each.revision, prefix).table(table.name) for each in history())
    found = Schema(tables=(table,))
    return any(
        want is not None and not any(schema_differences(Schema(tables=(want,)), found))
        for want in own
    )


def _adoption(schema: Schema, moving: list[Found], notes: list[str], prefix: str) -> Adoption:
    dropped = [table for found in moving for table in _later(schema, found, prefix)]
    renamed = [pair for found in moving for pair in found.pairs]
    created = [table for found in moving for table in _lacking(found)]
    indexes = [index for found in moving for table in found.tables for index in table.indexes]
    sql = [f"DROP INDEX {quote(index.name)}" for index in indexes]
    sql += [f"DROP TABLE {quote(table.name)}" for table in dropped]
    sql += [f"ALTER TABLE {quote(old.name)} RENAME TO {quote(new.name)}" for old, new in renamed]
    sql += [table.sql for table in created]
    sql += [each for found in moving for each in _completed(found)]
    if any(found.part.kind == "store" for found in moving):
        sql += _stamp(schema, prefix)
    return Adoption(
        renamed=tuple((old.name, new.name) for old, new in renamed),
        created=tuple(table.name for table in created),
        dropped=tuple(table.name for table in dropped),
        notes=(*notes, *_left(schema, moving)),
        sql=tuple(sql),
    )


def _lacking(found: Found) -> Iterator[Table]:
    live = {fold(table.name) for table in found.tables}
    return (pair.new for pair in found.part.pairs if fold(pair.old.name) not in live)


def _completed(found: Found) -> list[str]:
    """What harel 0.2 to 0.6 do at every open, and the indexes as 0.7 names them."""
    tables = {fold(pair.old.name): pair.new for pair in found.part.pairs}
    indexes = [index.sql for table in tables.values() for index in table.indexes]
    if found.part.kind == "store":
        return indexes
    # A message without its group would never be claimed.
    backfill = (
        f"INSERT OR IGNORE INTO {quote(tables['groups'].name)} (group_id) "  # noqa: S608
        f"SELECT DISTINCT group_id FROM {quote(tables['messages'].name)}"
    )
    return [backfill, *indexes]


def _stamp(schema: Schema, prefix: str) -> list[str]:
    """Make the version row say 0001, which is what the renamed tables are."""
    create, *_, insert = schema_sql(prefix, "0001")
    if schema.versions is None:
        return [create, insert]
    return [f"DELETE FROM {quote(version_table(prefix))}", insert]  # noqa: S608


def _left(schema: Schema, moving: list[Found]) -> Iterator[str]:
    """Name the tables that have a name of harel's and are somebody else's."""
    for found in moving:
        live = {fold(table.name) for table in found.tables}
        for pair in found.part.pairs:
            table = schema.table(pair.old.name)
            if table is not None and fold(table.name) not in live:
                yield f"{table.name} is not harel's: left as it is"


def _names(tables: tuple[Table, ...]) -> str:
    return ", ".join(table.name for table in tables)
