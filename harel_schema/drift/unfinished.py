"""What a copy or a move has left in a database: its tables, its triggers, its fence.

These are dozens, and no statement mends them: dropping them one by one would make half a copy look
whole, and open a database that was moved. So each copy or move is told in one line, with the
command that goes on with it or gives it up.
"""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from harel_schema.dbapi.reads import is_missing_table
from harel_schema.drift.model import Difference, Kind
from harel_schema.errors import DatabaseError
from harel_schema.introspect import fold, quote
from harel_schema.names import (
    fence_trigger,
    guarded_source,
    ledger_name,
    move_table,
    moved_address,
    one_line,
    prefix_argument,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from harel_schema.errors import HarelSchemaError
    from harel_schema.introspect import Schema
    from harel_schema.target import Target

__all__ = ["Unfinished", "fence_address", "told", "unfinished"]

_RAISED = "RAISE(ABORT, '"


@dataclass(frozen=True, slots=True)
class Unfinished:
    """The other ends of the copies and moves that a database speaks of; None where it does not.

    `moved_to` is where a fence points, whether or not that move is finished.
    """

    copied_from: str | None = None
    moved_from: str | None = None
    moving_to: str | None = None
    moved_to: str | None = None

    @property
    def half(self) -> str | None:
        """What the database is while it does not hold all of its rows yet, else None."""
        if self.moved_from is not None:
            return f"the destination of an unfinished move from {self.moved_from}"
        if self.copied_from is not None:
            return f"half a copy of {self.copied_from}"
        return None

    def refuse_half(self, target: Target, prefix: str, error: type[HarelSchemaError]) -> None:
        """Raise `error` for a `half`, which is at `target`."""
        if self.half is not None:
            finish = self.finish(shlex.quote(str(target))) + prefix_argument(prefix)
            raise error(f"{target} is {self.half}", remedy=f"finish that: {finish}")

    def finish(self, target: str) -> str:
        """Return the command that makes a `half` whole, which is in the database `target`."""
        copied = self.moved_from is None
        verb, source = ("copy", self.copied_from) if copied else ("move", self.moved_from)
        return f"harel-schema {verb} {shlex.quote(source or '')} {target}"


def unfinished(
    ask: Callable[[str], Sequence[Sequence[Any]]] | None, found: Schema, prefix: str
) -> Unfinished:
    """Return what a database with the schema `found` says; `ask` runs a query on it.

    Without `ask` only what triggers say is known.
    """
    said = {"moved_to": fence_address(found, prefix), "moved_from": _guarded_from(found, prefix)}
    if ask is not None:
        mark, ledger = move_table(prefix), ledger_name(prefix)
        for role, peer in _rows(ask, found, mark, ("role", "peer")):
            said["moving_to" if role == "source" else "moved_from"] = one_line(str(peer))
        for table, source in _rows(ask, found, ledger, ("tbl", "source")):
            if table == "":
                said["copied_from"] = str(source)
    return Unfinished(**said)


def _rows(
    ask: Callable[[str], Sequence[Sequence[Any]]], found: Schema, name: str, columns: Sequence[str]
) -> Sequence[Sequence[Any]]:
    table = found.table(name)
    if table is None or not set(columns) <= table.by_name.keys():
        return ()
    try:
        return ask(f"SELECT {', '.join(columns)} FROM {quote(table.name)}")  # noqa: S608
    except DatabaseError as exc:
        # A server has no snapshot for both looks: it was finished meanwhile.
        if not is_missing_table(exc):
            raise
        return ()


def fence_address(found: Schema, prefix: str) -> str | None:
    """Return where a database was moved to; None when it has no fence."""
    return next(filter(None, map(moved_address, _raised(found, prefix))), None)


def _guarded_from(found: Schema, prefix: str) -> str | None:
    return next(filter(None, map(guarded_source, _raised(found, prefix))), None)


def _raised(found: Schema, prefix: str) -> Iterator[str]:
    """Yield what the triggers that stop writers answer."""
    begin = fold(fence_trigger(prefix))
    for table in found.tables:
        for trigger in table.triggers:
            if fold(trigger.name).startswith(begin):
                _, _, literal = trigger.sql.partition(_RAISED)
                yield literal.rpartition("')")[0].replace("''", "'")


def told(leftovers: Iterable[Difference], said: Unfinished, prefix: str) -> Iterator[Difference]:
    """Yield one difference for each copy or move in `said`, and the leftovers of no such."""
    named = set[Kind]()
    if said.moved_to is not None:
        named.add(Kind.LEFTOVER_FENCE)
        what = (
            f"a fence: moved to {said.moved_to}; `harel-schema move` again finishes that, "
            "`harel-schema unfence` reopens this database"
        )
        yield Difference(kind=Kind.LEFTOVER_FENCE, name=fence_trigger(prefix) + "*", found=what)
    if said.moving_to is not None:
        named.add(Kind.LEFTOVER_MOVE)
        yield Difference(
            kind=Kind.LEFTOVER_MOVE,
            name=move_table(prefix),
            found=f"an unfinished move to {said.moving_to}: run it again, or give it up",
            fix=f"harel-schema move TARGET {shlex.quote(said.moving_to)} --abort",
        )
    if said.half is not None:
        named |= {Kind.LEFTOVER_FENCE, Kind.LEFTOVER_MOVE, Kind.LEFTOVER_LEDGER}
        copied = said.moved_from is None
        yield Difference(
            kind=Kind.LEFTOVER_LEDGER if copied else Kind.LEFTOVER_MOVE,
            name=ledger_name(prefix) if copied else move_table(prefix),
            found=said.half,
            fix=said.finish("TARGET"),
        )
    yield from (each for each in leftovers if each.kind not in named)
