"""One table, its columns and its constraints, against what was promised."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, TypeVar

from harel_schema.drift.columns import column_differences
from harel_schema.drift.model import Difference, Kind

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from harel_schema.introspect import Check, ForeignKey, Key, Table

__all__ = ["constraint_differences", "describe", "same_but_name"]

_T = TypeVar("_T")


def constraint_differences(expected: Table, found: Table) -> Iterator[Difference]:
    """Differences of a table's options, keys, checks and foreign keys."""
    yield from _options(expected, found)
    yield from _uniques(expected, found)
    yield from _checks(expected, found)
    yield from _foreign_keys(expected, found)


def same_but_name(expected: Table, found: Table) -> bool:
    """Whether two tables differ by nothing but their names, indexes and triggers aside."""
    return len(expected.columns) == len(found.columns) and not any(
        chain(column_differences(expected, found), constraint_differences(expected, found))
    )


def describe(table: Table) -> str:
    """A table's columns in one line."""
    columns = ", ".join(f"{column.name} {column.type}".strip() for column in table.columns)
    return f"({columns})"


def _options(expected: Table, found: Table) -> Iterator[Difference]:
    facts = (
        (Kind.PRIMARY_KEY, _primary(expected), _primary(found)),
        (
            Kind.AUTOINCREMENT,
            _flag("AUTOINCREMENT", on=expected.autoincrement),
            _flag("AUTOINCREMENT", on=found.autoincrement),
        ),
        (
            Kind.WITHOUT_ROWID,
            _flag("WITHOUT ROWID", on=expected.without_rowid),
            _flag("WITHOUT ROWID", on=found.without_rowid),
        ),
        (Kind.STRICT, _flag("STRICT", on=expected.strict), _flag("STRICT", on=found.strict)),
    )
    for kind, want, got in facts:
        if want != got:
            yield Difference(kind=kind, name=found.name, table=found.name, expected=want, found=got)


def _flag(words: str, *, on: bool) -> str:
    return words if on else f"not {words}"


def _primary(table: Table) -> str:
    if table.primary_key is None:
        return "no PRIMARY KEY"
    alias = " (the rowid)" if table.rowid_alias else ""
    return f"PRIMARY KEY {table.primary_key}{alias}"


def _uniques(expected: Table, found: Table) -> Iterator[Difference]:
    lost, new = _apart(expected.uniques, found.uniques)
    for want in list(lost):
        got = next((got for got in new if got.terms == want.terms), None)
        if got is not None:
            lost.remove(want)
            new.remove(got)
            yield _constraint(Kind.UNIQUE_CHANGED, found, _unique(want), _unique(got))
    for want in lost:
        yield _constraint(Kind.UNIQUE_MISSING, found, _unique(want), None)
    for got in new:
        yield _constraint(Kind.UNIQUE_EXTRA, found, None, _unique(got))


def _unique(key: Key) -> str:
    return f"UNIQUE {key}"


def _checks(expected: Table, found: Table) -> Iterator[Difference]:
    lost, new = _apart(expected.checks, found.checks)
    for want in list(lost):
        for kind in (Kind.CHECK_NAME, Kind.CHECK_CHANGED):
            got = next((got for got in new if _related(kind, want, got)), None)
            if got is not None:
                lost.remove(want)
                new.remove(got)
                yield _constraint(kind, found, str(want), str(got))
                break
    for want in lost:
        yield _constraint(Kind.CHECK_MISSING, found, str(want), None)
    for got in new:
        yield _constraint(Kind.CHECK_EXTRA, found, None, str(got))


def _related(kind: Kind, want: Check, got: Check) -> bool:
    if kind is Kind.CHECK_NAME:
        return want.expression == got.expression
    return want.name == got.name


def _foreign_keys(expected: Table, found: Table) -> Iterator[Difference]:
    lost, new = _apart(expected.foreign_keys, found.foreign_keys)
    for want in list(lost):
        got = next((got for got in new if _ends(got) == _ends(want)), None)
        if got is not None:
            lost.remove(want)
            new.remove(got)
            yield _constraint(Kind.FOREIGN_KEY_CHANGED, found, _foreign(want), _foreign(got))
    for want in lost:
        yield _constraint(Kind.FOREIGN_KEY_MISSING, found, _foreign(want), None)
    for got in new:
        yield _constraint(Kind.FOREIGN_KEY_EXTRA, found, None, _foreign(got))


def _ends(key: ForeignKey) -> tuple[object, ...]:
    return (key.columns, key.parent, key.parent_columns)


def _foreign(key: ForeignKey) -> str:
    return f"FOREIGN KEY {key}"


def _apart(expected: Iterable[_T], found: Iterable[_T]) -> tuple[list[_T], list[_T]]:
    """What is only expected, and what is only found; equal ones cancel out one by one."""
    new = list(found)
    lost = []
    for thing in expected:
        if thing in new:
            new.remove(thing)
        else:
            lost.append(thing)
    return lost, new


def _constraint(kind: Kind, table: Table, expected: str | None, found: str | None) -> Difference:
    return Difference(kind=kind, name=table.name, table=table.name, expected=expected, found=found)
