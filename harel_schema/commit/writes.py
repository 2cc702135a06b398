"""The units of the store's writing methods."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from harel_schema.commit.unit import AlwaysSafe, Check, Outcome, Unit, Unprovable, nothing

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from harel_schema.commit.unit import Change, Effect, Row, Statement
    from harel_schema.models import Event, Execution, TimerOp
    from harel_schema.sql import Statements

__all__ = [
    "ack_outbox",
    "ack_spawn",
    "append_trace",
    "delete_timer",
    "publish",
    "purge",
    "recover_seqs",
    "write",
]

_ROWS = 100

Emit: TypeAlias = tuple[str | None, str]
"""The target and the JSON of an event."""

Conflict: TypeAlias = Callable[[str, int, int | None], Exception]
"""Makes the error of a lost version check: execution, expected version, stored version."""


def write(  # noqa: PLR0913 - the parts of a commit
    sql: Statements,
    exe: Execution,
    conflict: Conflict,
    *,
    emits: Iterable[tuple[str | None, Event]] = (),
    processed_event_id: str | None = None,
    timers: Iterable[TimerOp] = (),
    spawns: Iterable[tuple[str, str, dict[str, Any]]] = (),
    trace: dict[str, Any] | None = None,
    trace_max: int = 0,
) -> Unit[list[int]]:
    """Advance `exe` by one version, with everything that belongs to the step.

    Its value is the list of the seqs of `emits`. All JSON is made here, so what the caller does
    to its objects later changes nothing; `exe` itself changes only when the unit is durable.
    """
    old, key = exe.version, exe.id
    copy = exe.model_copy()
    copy.version = old + 1
    data = copy.model_dump_json()
    events = [(target, event.model_dump_json()) for target, event in emits]
    changes = [_advance(sql, exe, data, old)]
    _insert(changes, sql.emit, events)
    written = _Written(sql, exe, key, old, data, events, len(changes), processed_event_id, conflict)
    if processed_event_id is not None:
        changes.append((sql.mark_processed, ((key, processed_event_id),)))
    children = [(key, child, path, json.dumps(context)) for child, path, context in spawns]
    _insert(changes, sql.spawn, children)
    # The last word on each path, so that no two changes of a unit are about one timer: units that
    # share statements make all schedules at once, and all cancels.
    changes += [_timer(sql, key, op) for op in {op.path: op for op in timers}.values()]
    if trace is not None:
        changes += _trace(sql, key, trace, trace_max)
    size = len(data) + sum([len(text) for _, text in events])
    check = Check(sql.guard, (sql.version, (key,)), written.conflict)
    return Unit(changes, written.seqs, check, written, written.move, size, key, sql.together)


def _advance(sql: Statements, exe: Execution, data: str, old: int) -> Change:
    if old == 0:
        return sql.insert, ((data, 1, exe.id, exe.definition_id),)
    return sql.update, ((data, old + 1, exe.id, old),)


def _timer(sql: Statements, key: str, op: TimerOp) -> Change:
    if op.action == "schedule":
        return sql.schedule_timer, ((key, op.path, op.fire_at),)
    return sql.cancel_timer, ((key, op.path),)


def _insert(changes: list[Change], insert: str, rows: Sequence[Row]) -> None:
    """Add the changes that insert `rows`: few, for many rows."""
    changes += [(insert, rows[at : at + _ROWS]) for at in range(0, len(rows), _ROWS)]


def _trace(sql: Statements, key: str, entry: dict[str, Any], keep: int) -> list[Change]:
    if not isinstance(entry, dict):
        # Stored, it would make every later `read_trace` fail.
        raise TypeError(f"a step of a trace is a dict, not {type(entry).__name__}")
    append = (sql.append_trace, ((key, key, json.dumps(entry)),))
    return [append, (sql.trim_trace, ((key, key, keep),))] if keep else [append]


@dataclass(slots=True)
class _Written:
    """What `write` knows of its unit, for when it is decided, and when its answer is lost.

    Then the row at the new version with the same bytes is ours.
    Two writers may have made the same bytes. So an event that was to be marked as processed must
    be, and of the events that were emitted one must still be in the outbox. Where none is they
    may have been delivered meanwhile, or be another's; a conflict is right in both cases, because
    whoever loads the execution again finds the event processed.
    """

    sql: Statements
    exe: Execution
    key: str
    old: int
    data: str
    events: list[Emit]
    after_emits: int
    """The place of the first change after those that insert `events`."""
    processed: str | None
    make_conflict: Conflict

    def seqs(self, effects: Sequence[Effect]) -> list[int]:
        """Return the seqs of the events."""
        # AUTOINCREMENT numbers the rows of one change in their order, without a gap.
        return [
            (effect.lastrowid or 0) - effect.rowcount + 1 + at
            for effect in effects[1 : self.after_emits]
            for at in range(effect.rowcount)
        ]

    def move(self) -> None:
        """Move the version of the caller's object."""
        self.exe.version = self.old + 1

    def conflict(self, found: int | None) -> Exception:
        """Return the error of a lost version check."""
        return self.make_conflict(self.key, self.old, found)

    @property
    def questions(self) -> tuple[Statement, ...]:
        """The stored row, the outbox entries with the events' texts, and the dedupe marker."""
        targets = json.dumps([target for target, _ in self.events])
        texts = json.dumps([text for _, text in self.events])
        return (
            (self.sql.stored, (self.key,)),
            (self.sql.emitted, (targets, texts)),
            (self.sql.is_processed, (self.key, self.processed)),
        )

    def judge(self, answers: Sequence[Sequence[Row]], lost: Exception) -> Outcome | None:  # noqa: ARG002
        """Decide what became of the unit; see `Recovery`."""
        stored, emitted, processed = answers
        version, data = stored[0] if stored else (None, None)
        if (version or 0) == self.old:
            return None
        seqs = recover_seqs(self.events, emitted)
        marked = self.processed is None or bool(processed)
        if (version, data) == (self.old + 1, self.data) and marked and seqs is not None:
            return Outcome(seqs)
        return Outcome(error=self.conflict(version))


def recover_seqs(events: Sequence[Emit], rows: Sequence[Row]) -> list[int] | None:
    """Return the seqs of `events`, in their order, by the outbox rows that hold their texts.

    `rows` are (seq, target, text) by ascending seq. Equal events are told apart by the order
    they were written in; of more rows than events the newest are meant. One transaction numbers
    its rows without a gap, so the seq of an event that was delivered meanwhile follows from its
    neighbour's. None when there are events, and none of them is there.
    """
    free, found = list(rows), {}
    for at in reversed(range(len(events))):
        row = next((r for r in reversed(free) if (r[1], r[2]) == events[at]), None)
        if row is not None:
            found[at] = row[0]
            free.remove(row)
    if not found:
        return None if events else []
    near, seq = next(iter(found.items()))
    return [found.get(at, seq + at - near) for at in range(len(events))]


def ack_outbox(sql: Statements, seq: int) -> Unit[None]:
    """Remove a delivered outbox entry."""
    return Unit(((sql.ack_outbox, ((seq,),)),), nothing, together=sql.together)


def ack_spawn(sql: Statements, seq: int) -> Unit[None]:
    """Remove a spawn whose child exists."""
    return Unit(((sql.ack_spawn, ((seq,),)),), nothing, together=sql.together)


def delete_timer(sql: Statements, execution_id: str, path: str, fire_at: float) -> Unit[None]:
    """Remove a timer if it is still armed for `fire_at`."""
    row = (execution_id, path, fire_at)
    return Unit(((sql.delete_timer, (row,)),), nothing, key=execution_id)


def append_trace(
    sql: Statements, execution_id: str, entry: dict[str, Any], keep: int
) -> Unit[None]:
    """Append one step to a trace. Two equal steps cannot be told from one that came twice."""
    return Unit(
        _trace(sql, execution_id, entry, keep),
        nothing,
        recovery=Unprovable(),
        key=execution_id,
        together=sql.together,
    )


def purge(sql: Statements, execution_id: str, expected_version: int) -> Unit[bool]:
    """Delete an execution and what is keyed by it; its value tells whether the row was there."""
    companions = (
        sql.purge_processed,
        sql.purge_trace,
        sql.purge_timers,
        sql.purge_outbox,
        sql.purge_spawns,
    )
    return Unit(
        (
            (sql.purge, ((execution_id, expected_version),)),
            *((each, ((execution_id, execution_id),)) for each in companions),
        ),
        lambda effects: effects[0].rowcount > 0,
        recovery=_Purged(sql, execution_id, expected_version),
    )


@dataclass(frozen=True, slots=True)
class _Purged:
    """Recovery of `purge`: what was asked for is that the row be gone."""

    sql: Statements
    key: str
    expected: int

    @property
    def questions(self) -> tuple[Statement, ...]:
        return ((self.sql.version, (self.key,)),)

    def judge(self, answers: Sequence[Sequence[Row]], lost: Exception) -> Outcome | None:  # noqa: ARG002
        if not answers[0]:
            return Outcome(value=True)
        return None if answers[0][0][0] == self.expected else Outcome(value=False)


def publish(sql: Statements, row: tuple[str, int, str, str, float | None]) -> Unit[Row]:
    """Store a definition unless its version is taken; its value is the row that is stored."""
    return Unit(
        ((sql.publish, (row,)), (sql.definition, (row[:2],))),
        lambda effects: effects[1].rows[0],
        recovery=AlwaysSafe(),
        size=len(row[3]),
    )
