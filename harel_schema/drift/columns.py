"""The columns of one table against what was promised."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, TypeVar

from harel_schema.drift.model import Difference, Kind
from harel_schema.introspect import Column, Index, Key, Table, fold, quote
from harel_schema.introspect.tokens import Token, canonical, tokenize

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

__all__ = ["as_expected", "column_differences"]

_Keyed = TypeVar("_Keyed", Key, Index)

# A default that needs no parentheses.
_SIMPLE: Final = re.compile(r"[+-]?[0-9][0-9.e+-]*|'(?:[^']|'')*'|x'[0-9a-f]*'|[a-z_]+")
# One that ADD COLUMN takes: no expression, no CURRENT_TIMESTAMP.
_CONSTANT: Final = re.compile(r"[+-]?[0-9][0-9.e+-]*|'(?:[^']|'')*'|x'[0-9a-f]*'|null|true|false")


def column_differences(expected: Table, found: Table) -> Iterator[Difference]:
    """Columns that are missing, extra, renamed, in another order or of another kind."""
    renamed = _renamed(expected, found)
    old = set(renamed.values())
    for want in expected.columns:
        got = found.by_name.get(fold(want.name))
        if got is not None:
            yield from _changes(want, got, found)
        elif fold(want.name) not in old:
            yield _missing(want, expected, found)
    for got in found.columns:
        name = fold(got.name)
        if name in renamed:
            want = expected.by_name[renamed[name]]
            yield Difference(
                kind=Kind.COLUMN_RENAMED,
                name=want.name,
                table=found.name,
                expected=want.name,
                found=got.name,
                fix=f"ALTER TABLE {quote(found.name)} RENAME COLUMN {quote(got.name)}"
                f" TO {quote(want.name)};",
            )
        elif name not in expected.by_name:
            yield _extra(got, found)
    yield from _order(expected, found, renamed)


def as_expected(expected: Table, found: Table) -> Table:
    """`found` with its renamed columns under their old names, so that one rename is one line."""
    renamed = _renamed(expected, found)
    if not renamed:
        return found
    return found.model_copy(
        update={
            "primary_key": found.primary_key and _key(found.primary_key, renamed),
            "uniques": tuple(_key(key, renamed) for key in found.uniques),
            "checks": tuple(
                check.model_copy(update={"expression": _reword(check.expression, renamed)})
                for check in found.checks
            ),
            "foreign_keys": tuple(
                key.model_copy(update={"columns": tuple(renamed.get(c, c) for c in key.columns)})
                for key in found.foreign_keys
            ),
            "indexes": tuple(
                _key(index, renamed).model_copy(
                    update={"where": index.where and _reword(index.where, renamed)}
                )
                for index in found.indexes
            ),
            "triggers": tuple(
                trigger.model_copy(update={"body": _reword(trigger.body, renamed)})
                for trigger in found.triggers
            ),
        }
    )


def _key(key: _Keyed, renamed: Mapping[str, str]) -> _Keyed:
    terms = [term.model_copy(update={"text": _reword(term.text, renamed)}) for term in key.terms]
    return key.model_copy(update={"terms": tuple(terms)})


def _reword(text: str, renamed: Mapping[str, str]) -> str:
    """An expression with other names in it; what stands in a string stays."""
    return canonical(
        [
            Token("quoted", renamed[fold(token.text)], "`")
            if token.kind in ("word", "quoted") and fold(token.text) in renamed
            else token
            for token in tokenize(text)
        ]
    )


def _renamed(expected: Table, found: Table) -> dict[str, str]:
    """The new folded names of columns that differ from an expected one by name and place only."""
    lost = [column for column in expected.columns if fold(column.name) not in found.by_name]
    new = [column for column in found.columns if fold(column.name) not in expected.by_name]
    names: dict[str, str] = {}
    for want in lost:
        for got in new:
            same_place = expected.columns.index(want) == found.columns.index(got)
            if same_place and got.model_copy(update={"name": want.name}) == want:
                names[fold(got.name)] = fold(want.name)
    return names


def _missing(column: Column, expected: Table, found: Table) -> Difference:
    return Difference(
        kind=Kind.COLUMN_MISSING,
        name=column.name,
        table=found.name,
        expected=_definition(column),
        fix=f"ALTER TABLE {quote(found.name)} ADD COLUMN {_definition(column)};"
        if _addable(column, expected)
        else None,
    )


def _extra(column: Column, found: Table) -> Difference:
    return Difference(
        kind=Kind.COLUMN_EXTRA,
        name=column.name,
        table=found.name,
        found=_definition(column),
        fix=None
        if _used(column, found)
        else f"ALTER TABLE {quote(found.name)} DROP COLUMN {quote(column.name)};",
    )


def _addable(column: Column, table: Table) -> bool:
    """Whether ADD COLUMN can make it (https://sqlite.org/lang_altertable.html)."""
    if column.generated is not None and column.generated.stored:
        return False
    if column.default is not None and not _CONSTANT.fullmatch(column.default):
        return False
    return not (column.not_null and column.default is None) and not _used(column, table)


def _used(column: Column, table: Table) -> bool:
    """Whether a constraint or an index of the table, or a trigger on it, may hang on the column."""
    keys: list[Key | Index] = [*table.uniques, *table.indexes]
    if table.primary_key is not None:
        keys.append(table.primary_key)
    texts = [term.text for key in keys for term in key.terms]
    texts += [check.expression for check in table.checks]
    texts += [index.where or "" for index in table.indexes]
    texts += [name for key in table.foreign_keys for name in key.columns]
    texts += [other.generated.expression for other in table.columns if other.generated]
    texts += [trigger.body for trigger in table.triggers]
    name = fold(column.name)
    return any(fold(token.text) == name for text in texts for token in tokenize(text))


def _definition(column: Column) -> str:
    """A column's definition as SQL."""
    parts = [quote(column.name), column.type]
    if column.generated is not None:
        storage = "STORED" if column.generated.stored else "VIRTUAL"
        parts.append(f"AS ({column.generated.expression}) {storage}")
    if column.not_null:
        parts.append(_not_null(column))
    if column.default is not None:
        parts.append(f"DEFAULT {_default(column)}")
    if column.collation != "BINARY":
        parts.append(f"COLLATE {column.collation}")
    return " ".join(filter(None, parts))


def _changes(want: Column, got: Column, table: Table) -> Iterator[Difference]:
    facts = [
        (Kind.COLUMN_NOT_NULL, _nullable(want), _nullable(got)),
        (Kind.COLUMN_DEFAULT, _default(want), _default(got)),
        (Kind.COLUMN_COLLATION, f"COLLATE {want.collation}", f"COLLATE {got.collation}"),
        (Kind.COLUMN_GENERATED, _generated(want), _generated(got)),
    ]
    if want.affinity != got.affinity:
        facts.insert(0, (Kind.COLUMN_AFFINITY, _typed(want), _typed(got)))
    elif want.type != got.type:
        facts.insert(0, (Kind.COLUMN_TYPE, want.type or "no type", got.type or "no type"))
    if want.not_null and got.not_null:
        facts.append((Kind.COLUMN_CONFLICT, _not_null(want), _not_null(got)))
    if want.generated and got.generated:
        facts.append((Kind.COLUMN_STORAGE, _storage(want), _storage(got)))
    for kind, expected, found in facts:
        if expected != found:
            yield Difference(
                kind=kind, name=got.name, table=table.name, expected=expected, found=found
            )


def _typed(column: Column) -> str:
    return f"{column.type or 'no type'} (affinity {column.affinity})"


def _nullable(column: Column) -> str:
    return "NOT NULL" if column.not_null else "NULL allowed"


def _not_null(column: Column) -> str:
    conflict = column.not_null_conflict
    return f"NOT NULL ON CONFLICT {conflict}" if conflict else "NOT NULL"


def _default(column: Column) -> str:
    if column.default is None:
        return "no default"
    return column.default if _SIMPLE.fullmatch(column.default) else f"({column.default})"


def _generated(column: Column) -> str:
    return f"AS ({column.generated.expression})" if column.generated else "not generated"


def _storage(column: Column) -> str:
    return "STORED" if column.generated and column.generated.stored else "VIRTUAL"


def _order(expected: Table, found: Table, renamed: Mapping[str, str]) -> Iterator[Difference]:
    want = [fold(column.name) for column in expected.columns]
    got = [renamed.get(fold(column.name), fold(column.name)) for column in found.columns]
    before = [name for name in want if name in got]
    after = [name for name in got if name in want]
    if before != after:
        yield Difference(
            kind=Kind.COLUMN_ORDER,
            name=found.name,
            table=found.name,
            expected=", ".join(before),
            found=", ".join(after),
        )
