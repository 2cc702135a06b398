"""The tables of harel before 0.7, which have no prefix: known by their shapes, not their names."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Literal, TypeAlias

from harel_schema.drift.compare import schema_differences
from harel_schema.drift.promise import expected, transport
from harel_schema.introspect import Schema, fold
from harel_schema.names import version_table

if TYPE_CHECKING:
    from harel_schema.introspect import Table

__all__ = ["Found", "Kind", "Pair", "Part", "find", "parts"]

Kind: TypeAlias = Literal["store", "transport"]


@dataclass(frozen=True, slots=True)
class Pair:
    """One table in both generations: as harel 0.1 to 0.6 made it, and as 0.7 to 0.9 do."""

    old: Table
    new: Table


@dataclass(frozen=True, slots=True)
class Part:
    """Tables that belong together, of which a database has all or none."""

    kind: Kind
    pairs: tuple[Pair, ...]


@dataclass(frozen=True, slots=True)
class Found:
    """A part that a database has without a prefix.

    `tables` holds the live old tables; only the transport's groups may be missing, which harel
    0.1 did not have. `wrong` says how the tables differ from every release's, a line a
    difference: nothing, unless somebody changed them.
    """

    part: Part
    tables: tuple[Table, ...]
    wrong: tuple[str, ...] = ()

    @property
    def pairs(self) -> tuple[tuple[Table, Table], ...]:
        """The live old tables, each with what it becomes."""
        live = {fold(table.name): table for table in self.tables}
        pairs = ((live.get(fold(pair.old.name)), pair.new) for pair in self.part.pairs)
        return tuple((old, new) for old, new in pairs if old is not None)


@cache
def parts(prefix: str) -> tuple[Part, Part]:
    """The store's and the transport's tables, under their old names and under `prefix`."""
    store = expected("0001", prefix)
    version = fold(version_table(prefix))
    tables = tuple(table for table in store.tables if fold(table.name) != version)
    return (
        Part("store", tuple(_pair(table, f"{prefix}_") for table in tables)),
        Part(
            "transport",
            tuple(_pair(table, f"{prefix}_transport_") for table in transport(prefix).tables),
        ),
    )


def find(schema: Schema, prefix: str) -> tuple[Found, ...]:
    """The parts that a schema has without a prefix; `prefix` is what they would get.

    A table counts by its columns. One that only has a name in common with harel's is somebody
    else's, and so are a few that look like harel's without the rest of them.
    """
    store, messages = parts(prefix)
    found = (_store(schema, store), _transport(schema, messages))
    return tuple(each for each in found if each is not None)


def _store(schema: Schema, part: Part) -> Found | None:
    tables = _kin(schema, part)
    if len(tables) * 2 <= len(part.pairs):
        return None
    return Found(part, tables, _wrong(part, tables))


def _transport(schema: Schema, part: Part) -> Found | None:
    tables = _kin(schema, part)
    if not any(fold(table.name) == "messages" for table in tables):
        return None
    # Somebody else's table called groups is none of ours.
    present = Part(part.kind, tuple(p for p in part.pairs if _named(tables, p.old.name)))
    return Found(part, tables, _wrong(present, tables))


def _kin(schema: Schema, part: Part) -> tuple[Table, ...]:
    """The tables with a name of the part that have all the columns that harel gave it."""
    live = ((pair.old, schema.table(pair.old.name)) for pair in part.pairs)
    return tuple(
        table
        for old, table in live
        if table is not None and old.by_name.keys() <= table.by_name.keys()
    )


def _wrong(part: Part, tables: tuple[Table, ...]) -> tuple[str, ...]:
    """How live tables differ from a part; an index that is not there yet is no difference."""
    indexes = {fold(index.name) for table in tables for index in table.indexes}
    want = tuple(
        pair.old.model_copy(
            update={"indexes": tuple(i for i in pair.old.indexes if fold(i.name) in indexes)}
        )
        for pair in part.pairs
    )
    lines = map(str, schema_differences(Schema(tables=want), Schema(tables=tables)))
    return tuple(lines)


def _named(tables: tuple[Table, ...], name: str) -> bool:
    return any(fold(table.name) == fold(name) for table in tables)


def _pair(table: Table, prefix: str) -> Pair:
    name = table.name.removeprefix(prefix)
    indexes = tuple(
        index.model_copy(update={"name": index.name.removeprefix(prefix), "table": name})
        for index in table.indexes
    )
    return Pair(old=table.model_copy(update={"name": name, "indexes": indexes}), new=table)
