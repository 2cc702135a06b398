"""Two schemas to their differences. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from harel_schema.drift.columns import as_expected, column_differences
from harel_schema.drift.indexes import index_differences
from harel_schema.drift.model import Difference, Kind
from harel_schema.drift.ours import internal_tables
from harel_schema.drift.pairs import pairs
from harel_schema.drift.tables import constraint_differences, describe, same_but_name
from harel_schema.introspect import Schema, Table, Trigger, View, VirtualTable, quote

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = ["schema_differences"]

_Text = TypeVar("_Text", Trigger, View, VirtualTable)

_TRIGGER = (Kind.TRIGGER_MISSING, Kind.TRIGGER_EXTRA, Kind.TRIGGER_RENAMED, Kind.TRIGGER_CHANGED)
_VIEW = (Kind.VIEW_MISSING, Kind.VIEW_EXTRA, Kind.VIEW_RENAMED, Kind.VIEW_CHANGED)
_VIRTUAL = (
    Kind.VIRTUAL_TABLE_MISSING,
    Kind.VIRTUAL_TABLE_EXTRA,
    Kind.VIRTUAL_TABLE_RENAMED,
    Kind.VIRTUAL_TABLE_CHANGED,
)


def schema_differences(expected: Schema, found: Schema) -> Iterator[Difference]:
    """Every difference between two schemas but that of their version rows.

    What SQLite, libSQL and virtual tables keep for themselves is passed over.
    """
    matched = pairs(_tables(expected), _tables(found), same_but_name)
    for want, live in matched.both:
        yield from column_differences(want, live)
        got = as_expected(want, live)
        yield from constraint_differences(want, got)
        yield from index_differences(want, got)
        yield from _texts(want.triggers, got.triggers, _TRIGGER, "TRIGGER", table=got.name)
    for want, got in matched.renamed:
        yield Difference(
            kind=Kind.TABLE_RENAMED,
            name=want.name,
            expected=want.name,
            found=got.name,
            fix=f"ALTER TABLE {quote(got.name)} RENAME TO {quote(want.name)};",
        )
    for want in matched.missing:
        parts = [want.sql, *(index.sql for index in want.indexes)]
        parts += [trigger.sql for trigger in want.triggers]
        yield Difference(
            kind=Kind.TABLE_MISSING,
            name=want.name,
            expected=describe(want),
            fix=" ".join(f"{part};" for part in parts),
        )
    for got in matched.extra:
        yield Difference(
            kind=Kind.TABLE_EXTRA,
            name=got.name,
            found=describe(got),
            fix=f"DROP TABLE {quote(got.name)};",
        )
    yield from _texts(expected.views, found.views, _VIEW, "VIEW")
    yield from _texts(expected.view_triggers, found.view_triggers, _TRIGGER, "TRIGGER")
    yield from _texts(expected.virtual_tables, found.virtual_tables, _VIRTUAL, "TABLE")


def _tables(schema: Schema) -> list[Table]:
    known = internal_tables(schema)
    return [table for table in schema.tables if not known(table)]


def _texts(
    expected: Sequence[_Text],
    found: Sequence[_Text],
    kinds: tuple[Kind, Kind, Kind, Kind],
    noun: str,
    *,
    table: str | None = None,
) -> Iterator[Difference]:
    """Compare what is kept as text: triggers, views, virtual tables."""
    missing, extra, renamed, changed = kinds
    matched = pairs(expected, found, lambda want, got: want.body == got.body)
    for want, got in matched.both:
        if want.body != got.body:
            yield Difference(
                kind=changed,
                name=got.name,
                table=table,
                expected=want.body,
                found=got.body,
                fix=None if changed in _VIRTUAL else f"{_drop(noun, got)} {want.sql};",
            )
    for want, got in matched.renamed:
        yield Difference(
            kind=renamed,
            name=want.name,
            table=table,
            expected=want.name,
            found=got.name,
            fix=f"ALTER TABLE {quote(got.name)} RENAME TO {quote(want.name)};"
            if renamed in _VIRTUAL
            else f"{_drop(noun, got)} {want.sql};",
        )
    for want in matched.missing:
        yield Difference(
            kind=missing, name=want.name, table=table, expected=want.body, fix=f"{want.sql};"
        )
    for got in matched.extra:
        yield Difference(
            kind=extra, name=got.name, table=table, found=got.body, fix=_drop(noun, got)
        )


def _drop(noun: str, thing: Trigger | View | VirtualTable) -> str:
    return f"DROP {noun} {quote(thing.name)};"
