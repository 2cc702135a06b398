"""What is asked of every row, as SQL. Pure.

Every expression is one that SQLite 3.40 and libSQL both take, and none fails on any value:
``json_extract`` is asked only of text that ``json_valid`` took.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from harel_schema.drift.model import Kind
from harel_schema.introspect import Column, Table, fold, quote
from harel_schema.models import Status

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["Probe", "probes"]

_CLASSES: Final = {
    "INTEGER": ("integer",),
    "REAL": ("real",),
    "TEXT": ("text",),
    "NUMERIC": ("integer", "real"),
}
# The column of JSON of each table, and what it must be.
_JSON: Final = {
    "executions": ("data", "a JSON object"),
    "outbox": ("event", "an event"),
    "transport_messages": ("event", "an event"),
    "spawns": ("context", "a JSON object of Python"),
    "trace": ("entry", "a JSON object of Python"),
    "definitions": ("source", "JSON"),
}
_REPEATED: Final = ("id", "definition_id", "version")
_STATUSES: Final = ", ".join(f"'{status}'" for status in Status)
_STRICT: Final = "CASE WHEN json_valid({c}) THEN json_type({c}{path}) END IS '{type}'"
_WHERE_JSON: Final = "CASE WHEN typeof(data) = 'text' AND json_valid(data) THEN {} ELSE 1 END"
# Python's json writes NaN and Infinity, which JSON has not.
_PYTHON: Final = (
    "replace(replace(replace({c}, '-Infinity', 'null'), 'Infinity', 'null'), 'NaN', 'null')"
)


@dataclass(frozen=True, slots=True)
class Probe:
    """A question to every row of a table.

    `right` is a condition that is true for a row that fits; `what` an expression for what is
    there instead, a word; `found` says so for people where the word does not.
    """

    kind: Kind
    column: str
    expected: str
    right: str
    what: str
    found: str | None = None
    fix: str | None = None

    def fix_for(self, whats: set[str]) -> str | None:
        """Return the statement that mends rows that have these instead, None without one."""
        return self.fix if whats == {"blob"} else None


def probes(live: Table, expected: Table, prefix: str) -> tuple[Probe, ...]:
    """Return what is asked of the rows of `live`, a table of harel's; nothing of the version's."""
    name = fold(expected.name).removeprefix(fold(prefix) + "_")
    if name == "alembic_version":
        return ()
    return tuple(_of(live, expected, name))


def _of(live: Table, expected: Table, name: str) -> Iterator[Probe]:
    keys = {term.text for term in expected.primary_key.terms} if expected.primary_key else set()
    for column in expected.columns:
        if fold(column.name) not in live.by_name:
            continue
        key = fold(column.name) in keys
        yield from _class(live, column, key=key)
        if key and live.rowid_alias is None:
            yield _null_key(column)
    json, what = _JSON.get(name, ("", ""))
    if json in live.by_name:
        yield _json(json, what)
        if name == "executions":
            yield _status()
            yield from (_repeated(other) for other in _REPEATED if other in live.by_name)


def _class(live: Table, column: Column, *, key: bool) -> Iterator[Probe]:
    fitting = _CLASSES.get(column.affinity)
    if fitting is None:
        return
    # A NULL in a key has a probe of its own.
    allowed = fitting if column.not_null and not key else (*fitting, "null")
    shown = fitting if column.not_null or key else (*fitting, "null")
    name = quote(column.name)
    listed = ", ".join(f"'{each}'" for each in allowed)
    yield Probe(
        kind=Kind.DATA_STORAGE_CLASS,
        column=column.name,
        expected=" or ".join(shown),
        right=f"typeof({name}) IN ({listed})",
        what=f"typeof({name})",
        fix=f"UPDATE {quote(live.name)} SET {name} = CAST({name} AS TEXT)"  # noqa: S608
        f" WHERE typeof({name}) = 'blob';"
        if column.affinity == "TEXT"
        else None,
    )


def _null_key(column: Column) -> Probe:
    return Probe(
        kind=Kind.DATA_NULL_KEY,
        column=column.name,
        expected="a key",
        right=f"{quote(column.name)} IS NOT NULL",
        what="''",
        found="NULL",
    )


def _json(column: str, what: str) -> Probe:
    c = quote(column)
    right = {
        "JSON": f"json_valid({c})",
        "an event": _STRICT.format(c=c, path=", '$.kind'", type="text"),
        "a JSON object": _STRICT.format(c=c, path="", type="object"),
    }.get(what)
    if right is None:
        strict = _STRICT.format(c=c, path="", type="object")
        lenient = _STRICT.format(c=_PYTHON.format(c=c), path="", type="object")
        right = f"CASE WHEN json_valid({c}) THEN {strict} ELSE {lenient} END"
    return Probe(
        kind=Kind.DATA_JSON,
        column=column,
        expected=what.removesuffix(" of Python"),
        # What is no text has a probe of its own. SQLite reads text up to a NUL.
        right=f"CASE WHEN typeof({c}) <> 'text' THEN 1 WHEN instr({c}, char(0)) THEN 0"
        f" ELSE {right} END",
        what="''",
        found="something else",
    )


def _repeated(column: str) -> Probe:
    return Probe(
        kind=Kind.DATA_JSON_MISMATCH,
        column=column,
        expected=f"the {column} in data",
        right=_WHERE_JSON.format(f"json_extract(data, '$.{column}') IS {quote(column)}"),
        what="''",
        found="another one",
    )


def _status() -> Probe:
    # Of a document that is no object, it is said that it is none.
    known = f"coalesce(json_extract(data, '$.status') IN ({_STATUSES}), 0)"
    return Probe(
        kind=Kind.DATA_STATUS,
        column="data",
        expected="a status that harel knows",
        right=_WHERE_JSON.format(f"json_type(data) <> 'object' OR {known}"),
        what="''",
        found="none or another one",
    )
