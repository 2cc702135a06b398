"""The indexes of one table against what was promised."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harel_schema.drift.model import Difference, Kind
from harel_schema.drift.pairs import pairs
from harel_schema.introspect import Index, Table, Term, quote

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["index_differences"]


def index_differences(expected: Table, found: Table) -> Iterator[Difference]:
    """Every difference of the indexes that CREATE INDEX made."""
    matched = pairs(expected.indexes, found.indexes, _same)
    for want, got in matched.both:
        yield from _changes(want, got, own=_own(want, expected) == _own(got, found))
    for want, got in matched.renamed:
        yield _difference(
            Kind.INDEX_RENAMED, want, want.name, got.name, f"{_drop(got)} {want.sql};"
        )
    for want in matched.missing:
        yield _difference(Kind.INDEX_MISSING, want, _describe(want), None, f"{want.sql};")
    for got in matched.extra:
        yield _difference(Kind.INDEX_EXTRA, got, None, _describe(got), _drop(got))


def _changes(want: Index, got: Index, *, own: bool) -> Iterator[Difference]:
    """Differences of one index; `own`: its collations are those of its columns as expected."""
    fix = f"{_drop(got)} {want.sql};"
    if want.unique != got.unique:
        yield _difference(Kind.INDEX_UNIQUE, want, _unique(want), _unique(got), fix)
    if [term.text for term in want.terms] != [term.text for term in got.terms]:
        yield _difference(Kind.INDEX_TERMS, want, _terms(want), _terms(got), fix)
    elif _each(want, _order) != _each(got, _order):
        yield _difference(Kind.INDEX_ORDER, want, _terms(want), _terms(got), fix)
    # What a column's own collation does to its indexes is told with the column.
    collations = not own and _each(want, _collation) != _each(got, _collation)
    if collations and len(want.terms) == len(got.terms):
        yield _difference(Kind.INDEX_COLLATION, want, _terms(want), _terms(got), fix)
    if want.where != got.where:
        yield _difference(Kind.INDEX_WHERE, want, _where(want), _where(got), fix)


def _difference(
    kind: Kind, index: Index, expected: str | None, found: str | None, fix: str
) -> Difference:
    return Difference(
        kind=kind, name=index.name, table=index.table, expected=expected, found=found, fix=fix
    )


def _same(want: Index, got: Index) -> bool:
    return _describe(want) == _describe(got)


def _drop(index: Index) -> str:
    return f"DROP INDEX {quote(index.name)};"


def _order(term: Term) -> bool:
    return term.desc


def _collation(term: Term) -> str:
    return term.collation


def _own(index: Index, table: Table) -> list[str | None]:
    """The collation of each term, None where it is that of the column."""
    columns = (table.by_name.get(term.text) for term in index.terms)
    return [
        None if column is not None and term.collation == column.collation else term.collation
        for term, column in zip(index.terms, columns, strict=True)
    ]


def _each(index: Index, fact: Callable[[Term], object]) -> list[object]:
    return [fact(term) for term in index.terms]


def _unique(index: Index) -> str:
    return "UNIQUE" if index.unique else "not UNIQUE"


def _terms(index: Index) -> str:
    return f"({', '.join(map(str, index.terms))})"


def _where(index: Index) -> str:
    return "no WHERE" if index.where is None else f"WHERE {index.where}"


def _describe(index: Index) -> str:
    unique = "UNIQUE " if index.unique else ""
    where = "" if index.where is None else f" WHERE {index.where}"
    return f"{unique}{_terms(index)}{where}"
