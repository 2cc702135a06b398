"""What the destination of a copy holds, and what follows from it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

from harel_schema import drift
from harel_schema.errors import TransferError
from harel_schema.introspect import Schema, fold, quote
from harel_schema.transfer.fulltext import as_tables, full_text
from harel_schema.transfer.layout import Query
from harel_schema.transfer.ledger import Ledger

if TYPE_CHECKING:
    from collections.abc import Iterator

    from harel_schema.introspect import Table
    from harel_schema.target import Target
    from harel_schema.transfer.database import Database
    from harel_schema.transfer.plan import Contents

__all__ = [
    "Found",
    "State",
    "check_fits",
    "check_resumable",
    "differences",
    "identity",
    "inspect",
    "nothing",
]

State: TypeAlias = Literal["empty", "unfinished", "filled"]
_START_OVER = "start over with --replace"


@dataclass(frozen=True, slots=True)
class Found:
    """The destination: its schema, and whether it holds nothing, half a copy, or rows."""

    state: State
    schema: Schema


def identity(target: Target) -> str:
    """Return the one name of a database: its URL, or its path without symbolic links."""
    return target.url or str(target.path and target.path.resolve())


def nothing() -> Found:
    """Return what a file that does not exist holds."""
    return Found("empty", Schema())


def inspect(dest: Database, contents: Contents, prefix: str) -> Found:
    """Look at the tables of the destination that `contents` would fill."""
    schema = dest.schema(prefix)
    schema = as_tables(schema, full_text(dest, schema))
    if Ledger(dest, prefix).exists():
        return Found("unfinished", schema)
    present = [table for table in contents.tables if schema.table(table.name) is not None]
    for table in present:
        found = dest.query(Query(f"SELECT EXISTS (SELECT 1 FROM {quote(table.name)})"))  # noqa: S608
        if found[0][0]:
            return Found("filled", schema)
    return Found("empty", schema)


def check_fits(dest: Database, found: Found, contents: Contents, *, any_version: bool) -> None:
    """Refuse a destination whose tables are not those of the source.

    What is missing is no difference: it will be made. `any_version` allows another revision with
    the same tables. Raises `TransferError`.
    """
    theirs = found.schema.versions or ()
    if theirs and theirs != contents.versions and not any_version:
        raise TransferError(
            f"{dest.target} is at revision {', '.join(map(str, theirs))}, the source at "
            f"{', '.join(map(str, contents.versions)) or 'none'}",
            remedy="bring both to one revision with harel-schema upgrade, or use --replace",
        )
    different = differences(found.schema, contents)
    if any_version:
        # A later revision may have more indexes, which hold no rows of their own.
        different = (each for each in different if each.kind is not drift.Kind.INDEX_EXTRA)
    difference = next(different, None)
    if difference is not None:
        raise TransferError(
            f"{dest.target} has other tables than the source: {difference}", remedy=_START_OVER
        )


def differences(found: Schema, contents: Contents) -> Iterator[drift.Difference]:
    """Yield where the tables of `found` differ from those of `contents` of the same names."""
    there = contents.of(found)
    views = {fold(view.name) for view in there.views}
    virtual = {table.name for table in there.virtual_tables}
    wanted = Schema(
        tables=tuple(
            _with_triggers(table, there)
            for table in contents.tables
            if there.table(table.name) is not None
        ),
        views=tuple(view for view in contents.schema.views if fold(view.name) in views),
        virtual_tables=tuple(each.table for each in contents.full_text if each.name in virtual),
        view_triggers=tuple(t for t in contents.schema.view_triggers if fold(t.table) in views),
    )
    return drift.schema_differences(wanted, there)


def _with_triggers(table: Table, there: Schema) -> Table:
    """Return `table` without the triggers that are not there yet: they are made last."""
    twin = there.table(table.name)
    names = {fold(trigger.name) for trigger in twin.triggers} if twin else set()
    kept = tuple(trigger for trigger in table.triggers if fold(trigger.name) in names)
    return table.model_copy(update={"triggers": kept})


def check_resumable(
    dest: Database, found: Found, contents: Contents, source: str, prefix: str
) -> None:
    """Refuse to go on with a copy that was begun from another source, or for other tables.

    Raises `TransferError`.
    """
    ledger = Ledger(dest, prefix)
    begun = ledger.source()
    if begun != source:
        raise TransferError(
            f"{dest.target} holds an unfinished copy of {begun}",
            remedy=f"finish that one, or {_START_OVER}",
        )
    if ledger.tables() != set(contents.names):
        raise TransferError(
            f"{dest.target} holds an unfinished copy of other tables of {begun}",
            remedy=f"use the same options as before, or {_START_OVER}",
        )
    check_fits(dest, found, contents, any_version=False)
