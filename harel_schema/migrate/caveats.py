"""What no change of the schema can mend: the executions that earlier releases left in a state.

Two things differ in the JSON that releases wrote, and later engines act by them:

- harel 0.2.0 and older numbered the children of a fan-out without the entry's own number. A later
  engine does not find them: at the next event it starts all children of that fan-out again.
- harel before 0.4 noted no `finished_at`. `harel purge` skips such executions, unless it is told
  ``--include-undated``.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from harel_schema.introspect import quote

if TYPE_CHECKING:
    from collections.abc import Iterator

    from harel_schema import dbapi

__all__ = ["NAMED", "Caveat", "Kind", "read"]

Kind: TypeAlias = Literal["fan-out", "undated"]

# How many executions a caveat names.
NAMED = 100

# Data that is no JSON is somebody's damage, and no reason to fail.
_UNDATED = """
    SELECT id FROM {table} WHERE CASE WHEN json_valid(data) THEN
        json_extract(data, '$.status') IN ('DONE', 'CANCELLED')
        AND json_extract(data, '$.finished_at') IS NULL
    END ORDER BY id
"""
_WAITING = """
    SELECT id, json_extract(data, '$.active_path'), json_extract(data, '$.children'),
        json_extract(data, '$.context')
    FROM {table} WHERE CASE WHEN json_valid(data) THEN
        json_extract(data, '$.status') NOT IN ('DONE', 'CANCELLED')
        AND json_type(data, '$.children') = 'object' AND json_type(data, '$.context') = 'object'
        AND json_extract(data, '$.children') <> '{{}}'
    END ORDER BY id
"""


@dataclass(frozen=True, slots=True)
class Caveat:
    """Something to know about `total` executions, of which the first `NAMED` are named."""

    kind: Kind
    total: int
    executions: tuple[str, ...]


def read(connection: dbapi.Connection, table: str) -> tuple[Caveat, ...]:
    """Return what there is to know about the executions in `table`; changes nothing."""
    fan_outs = _caveat("fan-out", _fan_outs(connection, table))
    undated = connection.execute(_UNDATED.format(table=quote(table)))
    found = (fan_outs, _caveat("undated", (row[0] for row in undated)))
    return tuple(each for each in found if each.total)


def _caveat(kind: Kind, executions: Iterator[object]) -> Caveat:
    named: list[str] = []
    total = 0
    for execution in executions:
        total += 1
        if total <= NAMED:
            named.append(execution if isinstance(execution, str) else repr(execution))
    return Caveat(kind, total, tuple(named))


def _fan_outs(connection: dbapi.Connection, table: str) -> Iterator[object]:
    for execution, path, children, context in connection.execute(
        _WAITING.format(table=quote(table))
    ):
        if path and _waits(f"{execution}:{path}:", json.loads(children), json.loads(context)):
            yield execution


def _waits(prefix: str, children: dict[str, Any], context: dict[str, Any]) -> bool:
    """Whether children of an old fan-out, ``{id}:{path}:{number}``, are waited for.

    A lone invoked machine is numbered in the same way. What is waited for alone counts only if
    harel 0.2.0 or older wrote it (it has no `key`) and the context has a collection of one.
    """
    old = [
        child
        for name, child in children.items()
        if isinstance(child, dict)
        and child.get("submachine")
        and not child.get("key")
        and name.startswith(prefix)
        and name.removeprefix(prefix).isdecimal()
    ]
    if len(old) == 1:
        return "key" not in old[0] and any(map(_is_one, context.values()))
    return len(old) > 1


def _is_one(value: object) -> bool:
    return isinstance(value, list | dict | str) and len(value) == 1
