"""The SQL of a move: the change log of a source, the mark of either end, the fence. Pure.

A change log notes the table and the key of every row that anybody inserts, updates or deletes,
by triggers. It holds keys, not rows: what the row is by now is read when the change is carried
over, so entries may be carried over twice, late or in any order. REPLACE deletes a row without
firing a delete trigger, but the row that takes its place has the same key, which is noted.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from harel_schema.errors import TransferError
from harel_schema.introspect import fold, quote
from harel_schema.names import (
    change_log,
    fence_trigger,
    guard_text,
    log_trigger,
    move_table,
    moved_text,
)
from harel_schema.transfer.layout import Query

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from harel_schema.introspect import Schema
    from harel_schema.target import Target
    from harel_schema.transfer.layout import Layout

__all__ = ["ChangeLog", "Mark", "drop_triggers", "fence", "guard", "made_by_move"]

_EVENTS = ("insert", "update", "delete")


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


@dataclass(frozen=True, slots=True)
class ChangeLog:
    """The change log of the tables of `layouts`, which all have a key that is never NULL."""

    prefix: str
    layouts: tuple[Layout, ...]

    @property
    def _name(self) -> str:
        return quote(change_log(self.prefix))

    @property
    def _width(self) -> int:
        return max((len(layout.key) for layout in self.layouts), default=1)

    def create(self) -> list[Query]:
        """Make the log and the triggers that write it."""
        # No type: a key is stored just as the row has it.
        keys = "".join(f", {name}" for name in self._keys(self._width))
        table = f"CREATE TABLE {self._name} (seq INTEGER PRIMARY KEY, tbl TEXT NOT NULL{keys})"
        return [Query(table), *(Query(sql) for each in self.layouts for sql in self._log(each))]

    @property
    def triggers(self) -> list[str]:
        """The names of its triggers."""
        names = (layout.name for layout in self.layouts)
        return [log_trigger(self.prefix, event, name) for name in names for event in _EVENTS]

    @staticmethod
    def _keys(width: int) -> list[str]:
        return [f"k{position}" for position in range(width)]

    def _log(self, layout: Layout) -> Iterator[str]:
        columns = [quote(layout.columns[position]) for position in layout.key]
        names = ", ".join(["tbl", *self._keys(len(columns))])

        def note(row: str) -> str:
            cells = ", ".join([_text(layout.name), *(f"{row}.{column}" for column in columns)])
            return f"INSERT INTO {self._name} ({names}) SELECT {cells}"

        moved = " OR ".join(f"OLD.{column} IS NOT NEW.{column}" for column in columns)
        bodies = (note("NEW"), f"{note('NEW')}; {note('OLD')} WHERE {moved}", note("OLD"))
        for event, body in zip(_EVENTS, bodies, strict=True):
            name = quote(log_trigger(self.prefix, event, layout.name))
            head = f"CREATE TRIGGER {name} AFTER {event.upper()} ON {quote(layout.name)}"
            yield f"{head} BEGIN {body}; END"

    def pending(self, most: int) -> Query:
        """Ask for the number of the oldest entries, `most` at most, and their last `seq`."""
        oldest = f"SELECT seq FROM {self._name} ORDER BY seq LIMIT ?"  # noqa: S608
        return Query(f"SELECT count(*), max(seq) FROM ({oldest})", (most,))  # noqa: S608

    def backlog(self) -> Query:
        """Ask about how many entries there are; cheap."""
        return Query(f"SELECT coalesce(max(seq) - min(seq) + 1, 0) FROM {self._name}")  # noqa: S608

    def changes(self, upper: int | None = None) -> Query:
        """Read what the entries up to `upper` speak of, as it is now: each key once.

        A row has the position of its layout, whether the row is there, its key, and its cells.
        """
        width = max((len(layout.columns) for layout in self.layouts), default=0)
        arms, args = [], []
        for position, layout in enumerate(self.layouts):
            keys = self._keys(len(layout.key))
            listed = ", ".join(keys)
            where = f"tbl = {_text(layout.name)}"
            if upper is not None:
                where += " AND seq <= ?"
                args.append(upper)
            changed = f"SELECT DISTINCT {listed} FROM {self._name} WHERE {where}"  # noqa: S608
            terms = [quote(layout.columns[at]) for at in layout.key]
            pairs = zip(terms, keys, strict=True)
            join = " AND ".join(f"t.{term} = l.{key}" for term, key in pairs)
            cells = [f"l.{key}" for key in keys] + ["NULL"] * (self._width - len(keys))
            cells += [f"t.{quote(column)}" for column in layout.columns]
            cells += ["NULL"] * (width - len(layout.columns))
            arms.append(
                f"SELECT {position}, t.{terms[0]} IS NOT NULL, {', '.join(cells)}"  # noqa: S608
                f" FROM ({changed}) AS l LEFT JOIN {quote(layout.name)} AS t ON {join}"
            )
        return Query(" UNION ALL ".join(arms), tuple(args))

    def split(self, cells: Sequence[object], layout: Layout) -> tuple[tuple[object, ...], ...]:
        """Return the key and the cells of a row of `changes` that is of `layout`."""
        start = 2 + self._width
        key = tuple(cells[2 : 2 + len(layout.key)])
        return key, tuple(cells[start : start + len(layout.columns)])

    def note(self, layout: Layout) -> str:
        """Return the INSERT of an entry: the table's name, then the key."""
        names = ", ".join(["tbl", *self._keys(len(layout.key))])
        marks = ", ".join("?" * (1 + len(layout.key)))
        return f"INSERT INTO {self._name} ({names}) VALUES ({marks})"  # noqa: S608

    def trim(self, upper: int, run: bytes) -> Query:
        """Drop the entries up to `upper`, unless another run has taken the move over."""
        mine = f"EXISTS (SELECT 1 FROM {quote(move_table(self.prefix))} WHERE run = ?)"  # noqa: S608
        return Query(f"DELETE FROM {self._name} WHERE seq <= ? AND {mine}", (upper, run))  # noqa: S608


class Mark:
    """The statements of the mark: one row that says that a database is an end of a move.

    `role` is ``source`` or ``dest``, `peer` the name of the other end, `run` the process that is
    at work on it, `step` the number of its transactions, `state` how far the destination is.
    """

    def __init__(self, prefix: str) -> None:
        self.table = move_table(prefix)
        self._name = quote(self.table)

    def create(self, role: str, peer: str, run: bytes, state: str) -> list[Query]:
        """Make the mark, or take it over from another run."""
        return [
            Query(
                f"CREATE TABLE IF NOT EXISTS {self._name} (role TEXT NOT NULL, peer TEXT NOT NULL,"
                " run BLOB NOT NULL, step INTEGER NOT NULL, state TEXT NOT NULL, writing INTEGER)"
            ),
            Query(f"DELETE FROM {self._name}"),  # noqa: S608
            Query(f"INSERT INTO {self._name} VALUES (?, ?, ?, 0, ?, 0)", (role, peer, run, state)),  # noqa: S608
        ]

    def read(self) -> Query:
        """Read role, peer, run, step and state."""
        return Query(f"SELECT role, peer, run, step, state FROM {self._name}")  # noqa: S608

    def understood(
        self, rows: Sequence[Sequence[object]], target: Target
    ) -> tuple[str, str, bytes, int, str]:
        """Return what `read` has found; `TransferError` for what no move has written."""
        match rows:
            case [["source" | "dest" as role, str(peer), bytes(run), int(step), str(state)]] if (
                peer.isprintable()
            ):
                return role, peer, run, step, state
        raise TransferError(
            f"{target}: {self.table} does not hold what a move writes there",
            remedy=f"when no move is at work, drop that table; harel-schema check {target} names "
            "what else is left",
        )

    def claim(self, run: bytes, step: int, state: str) -> list[Query]:
        """Begin transaction number `step` of `run`; fails when it is not its turn."""
        return [
            Query(
                f"UPDATE {self._name} SET step = step + 1, state = ?, writing = 1"  # noqa: S608
                " WHERE run = ? AND step = ?",
                (state, run, step),
            ),
            # NOT NULL fails when the statement before changed no row.
            Query(f"INSERT INTO {self._name} (role) SELECT NULL WHERE changes() = 0"),
        ]

    def release(self) -> Query:
        """End the transaction that `claim` began."""
        return Query(f"UPDATE {self._name} SET writing = 0")  # noqa: S608

    def drop(self) -> Query:
        """Drop the mark."""
        return Query(f"DROP TABLE IF EXISTS {self._name}")


def fence(prefix: str, tables: Iterable[str], address: str) -> list[Query]:
    """Refuse every write to `tables`, naming the address that they were moved to."""
    answer = _text(moved_text(address))
    return list(_stops(prefix, tables, f"BEGIN SELECT RAISE(ABORT, {answer}); END"))


def guard(prefix: str, tables: Iterable[str], source: str) -> list[Query]:
    """Refuse every write to `tables` that is not the move's own, while it is not finished."""
    answer = _text(guard_text(source))
    mark = quote(move_table(prefix))
    ours = f"EXISTS (SELECT 1 FROM {mark} WHERE writing = 1)"  # noqa: S608
    body = f"WHEN NOT {ours} BEGIN SELECT RAISE(ABORT, {answer}); END"
    return list(_stops(prefix, tables, body))


def _stops(prefix: str, tables: Iterable[str], body: str) -> Iterator[Query]:
    for table in tables:
        for event in _EVENTS:
            name = quote(fence_trigger(prefix, event, table))
            head = f"CREATE TRIGGER IF NOT EXISTS {name} BEFORE {event.upper()} ON {quote(table)}"
            yield Query(f"{head} {body}")


def made_by_move(schema: Schema, prefix: str, *, fences: bool) -> list[str]:
    """Return the names of the triggers of a fence, or those of a change log."""
    begin = fold(fence_trigger(prefix) if fences else log_trigger(prefix))
    triggers = (trigger for table in schema.tables for trigger in table.triggers)
    return [each.name for each in triggers if fold(each.name).startswith(begin)]


def drop_triggers(names: Iterable[str]) -> list[Query]:
    """Drop triggers."""
    return [Query(f"DROP TRIGGER IF EXISTS {quote(name)}") for name in names]
