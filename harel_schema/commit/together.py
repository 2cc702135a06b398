"""Units that share their statements: one for the same change of many executions.

A statement costs more to get started than a row does to change, above all with libsql, which
prepares each anew. Units of different executions change different rows, and so do the changes of
one unit, but for a trace's, of which the append always comes first. So changes may be made in any
order, and those of the same kind at once. Only the order of what a table numbers matters, and
that is kept. (An ack is of a row that was committed before: nobody knows its number earlier.)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harel_schema.commit.unit import Effect, flat
from harel_schema.sql import many

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from harel_schema.commit.unit import Change, Outcome, Row, Statement, Unit
    from harel_schema.dbapi import Connection

__all__ = ["run", "runs", "statements"]

# Rows that a statement has at most. They are dealt out by powers of two, so that there are few
# different texts, and the drivers know them.
_MOST = 128


def runs(units: Sequence[Unit[Any]]) -> Iterator[list[Unit[Any]]]:
    """Yield the units in their order, those that may share statements together."""
    found: list[Unit[Any]] = []
    keys: set[str] = set()
    for unit in units:
        if found and (unit.together is None or unit.key in keys):
            yield found
            found, keys = [], set()
        if unit.together is None:
            yield [unit]
            continue
        found.append(unit)
        if unit.key is not None:
            keys.add(unit.key)
    if found:
        yield found


def run(connection: Connection, units: Sequence[Unit[Any]]) -> list[Outcome] | None:
    """Run `units`, a list of `runs`; return the outcome of each, all of them successes.

    None when a version check was lost, which leaves the transaction to be rolled back. To a unit
    an effect tells the number of its last row, if it inserts; how many it found is not known.
    """
    rows: dict[str, list[Row]] = {}
    checked = set()
    for unit in units:
        for at, (text, some) in enumerate(_texts(unit)):
            rows.setdefault(text, []).extend(some)
            if at == 0 and unit.check is not None:
                checked.add(text)
    last: dict[str, list[int]] = {}
    for text, found in rows.items():
        texts = list(statements(text, found))
        effects = connection.execute_all(texts)
        if text in checked and sum(effect.rowcount for effect in effects) < len(found):
            return None
        last[text] = [
            (effect.lastrowid or 0) - at
            for (_, values), effect in zip(texts, effects, strict=True)
            for at in reversed(range(len(values) // len(found[0])))
        ]
    dealt = dict.fromkeys(rows, 0)
    outcomes = []
    for unit in units:
        effects = []
        for text, some in _texts(unit):
            dealt[text] += len(some)
            effects.append(Effect(len(some), last[text][dealt[text] - 1]))
        outcomes.append(unit.succeed(effects))
    return outcomes


def _texts(unit: Unit[Any]) -> list[Change]:
    together = unit.together or {}
    return [(together[sql], rows) for sql, rows in unit.changes]


def statements(text: str, rows: Sequence[Row]) -> Iterator[Statement]:
    """Yield what makes one change, whose text for many rows is `text`, for all `rows`."""
    start = 0
    while start < len(rows):
        count = min(_MOST, 1 << ((len(rows) - start).bit_length() - 1))
        some = rows[start : start + count]
        yield many(text, len(some[0]), count), flat(some)
        start += count
