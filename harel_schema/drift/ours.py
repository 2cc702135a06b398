"""Which tables of a database are harel's, which belong to the database itself, which to others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from harel_schema.drift.model import Difference, Kind
from harel_schema.drift.tables import same_but_name
from harel_schema.introspect import Schema, Table, Trigger, fold, quote
from harel_schema.names import change_log, fence_trigger, ledger_name, log_trigger, move_table

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["Split", "internal_tables", "ledger_name", "split", "without_move"]

_INTERNAL = ("sqlite_", "libsql_")
_ALEMBIC_TMP = "_alembic_tmp_"
_VECTOR_INDEX = "libsql_vector_idx("


@dataclass(frozen=True, slots=True)
class Split:
    """A live schema in parts: harel's tables, what a tool left behind, the names of the rest."""

    ours: Schema
    leftovers: tuple[Difference, ...]
    others: tuple[str, ...]
    strangers: Schema


def split(found: Schema, expected: Schema, prefix: str) -> Split:
    """Tell apart what `expected` speaks of, leftovers, the database's own tables, and the rest.

    A table that has an expected one's shape under another name counts as harel's: it was renamed.
    """
    names = {fold(table.name) for table in expected.tables} | _moved(found, expected, prefix)
    own = [table for table in found.tables if fold(table.name) in names]
    left = {
        table.name: leftover
        for table in found.tables
        if fold(table.name) not in names and (leftover := _leftover(table, expected, prefix))
    }
    known = internal_tables(found)
    strangers = [
        table
        for table in found.tables
        if fold(table.name) not in names and table.name not in left and not known(table)
    ]
    rest = found.model_copy(update={"tables": tuple(strangers)})
    others = [table.name for table in strangers]
    others += [view.name for view in rest.views]
    others += [virtual.name for virtual in rest.virtual_tables]
    return Split(
        ours=Schema(tables=tuple(_without_triggers(table, prefix) for table in own)),
        leftovers=(*left.values(), *(each for table in own for each in _triggers(table, prefix))),
        others=tuple(sorted(others, key=fold)),
        strangers=rest,
    )


def _moved(found: Schema, expected: Schema, prefix: str) -> set[str]:
    """The folded names of tables that are a missing table in all but name."""
    moved: set[str] = set()
    for want in expected.tables:
        if found.table(want.name) is not None:
            continue
        # The same table of another prefix, or of a harel without prefixes, is no renamed one.
        twin = fold(want.name).removeprefix(fold(prefix) + "_")
        for got in found.tables:
            name = fold(got.name)
            free = name not in expected.by_name and name not in moved and not name.endswith(twin)
            free = free and not twin.endswith(f"_{name}")
            if free and same_but_name(want, got):
                moved.add(name)
                break
    return moved


def _leftover(table: Table, expected: Schema, prefix: str) -> Difference | None:
    name = fold(table.name)
    if name == fold(ledger_name(prefix)):
        kind, what = Kind.LEFTOVER_LEDGER, "the ledger of a copy that was not finished"
    elif name in (fold(move_table(prefix)), fold(change_log(prefix))):
        kind, what = Kind.LEFTOVER_MOVE, "a table of a move that is not finished"
    elif name.startswith(_ALEMBIC_TMP) and name.removeprefix(_ALEMBIC_TMP) in expected.by_name:
        kind, what = Kind.LEFTOVER_ALEMBIC, "a table of an Alembic batch that was not finished"
    else:
        return None
    return Difference(
        kind=kind, name=table.name, found=what, fix=f"DROP TABLE {quote(table.name)};"
    )


def _triggers(table: Table, prefix: str) -> Iterator[Difference]:
    for trigger in table.triggers:
        kind = _made_by_move(trigger, prefix)
        if kind is not None:
            yield Difference(
                kind=kind,
                name=trigger.name,
                table=table.name,
                found=trigger.body,
                fix=f"DROP TRIGGER {quote(trigger.name)};",
            )


def _made_by_move(trigger: Trigger, prefix: str) -> Kind | None:
    name = fold(trigger.name)
    if name.startswith(fold(fence_trigger(prefix))):
        return Kind.LEFTOVER_FENCE
    return Kind.LEFTOVER_MOVE if name.startswith(fold(log_trigger(prefix))) else None


def _without_triggers(table: Table, prefix: str) -> Table:
    triggers = tuple(t for t in table.triggers if _made_by_move(t, prefix) is None)
    return table.model_copy(update={"triggers": triggers})


def without_move(found: Schema, prefix: str) -> Schema:
    """Return a schema as it was before a move added its tables, triggers and fences to it."""
    added = {fold(move_table(prefix)), fold(change_log(prefix))}
    kept = (table for table in found.tables if fold(table.name) not in added)
    tables = tuple(_without_triggers(table, prefix) for table in kept)
    return found.model_copy(update={"tables": tables})


def internal_tables(found: Schema) -> Callable[[Table], bool]:
    """Tell the tables that SQLite, libSQL and virtual tables keep for themselves."""
    indexes = (index for table in found.tables for index in table.indexes)
    vectors = {
        fold(index.name) + "_shadow"
        for index in indexes
        if index.terms and index.terms[0].text.startswith(_VECTOR_INDEX)
    }
    # SQLite tells a shadow table only where the module of its virtual table is compiled in.
    shadows = tuple(fold(virtual.name) + "_" for virtual in found.virtual_tables)

    def known(table: Table) -> bool:
        name = fold(table.name)
        return table.shadow or name in vectors or name.startswith((*_INTERNAL, *shadows))

    return known
