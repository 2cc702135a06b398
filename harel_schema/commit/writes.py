"""The units of the store's writing methods."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from harel_schema.commit.unit import AlwaysSafe, Check, Outcome, Unit, Unprovable, nothing
from harel_schema.sql import many

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from harel_schema.commit.unit import Effect, Row, Statement
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
    old, new, key = exe.version, exe.version + 1, exe.id
    data = exe.model_copy(update={"version": new}).model_dump_json()
    events = [(target, event.model_dump_json()) for target, event in emits]
    emitting = list(_inserts(sql.emit, events))
    statements = [
        _advance(sql, exe, data, old),
        *emitting,
        *_side_writes(sql, key, processed_event_id, timers, spawns),
    ]
    if trace is not None:
        statements += _trace(sql, key, trace, trace_max)

    def seqs(effects: Sequence[Effect]) -> list[int]:
        return _seqs(effects[1 : 1 + len(emitting)])

    def moved() -> None:
        exe.version = new

    def lost(found: int | None) -> Exception:
        return conflict(key, old, found)

    return Unit(
        tuple(statements),
        seqs,
        Check(sql.guard, (sql.version, (key,)), lost),
        _Written(sql, key, old, data, tuple(events), processed_event_id, lost),
        moved,
        len(data) + sum(len(text) for _, text in events),
    )


def _advance(sql: Statements, exe: Execution, data: str, old: int) -> Statement:
    if old == 0:
        return sql.insert, (data, 1, exe.id, exe.definition_id)
    return sql.update, (data, old + 1, exe.id, old)


def _side_writes(
    sql: Statements,
    key: str,
    processed_event_id: str | None,
    timers: Iterable[TimerOp],
    spawns: Iterable[tuple[str, str, dict[str, Any]]],
) -> Iterable[Statement]:
    if processed_event_id is not None:
        yield sql.mark_processed, (key, processed_event_id)
    yield from _inserts(
        sql.spawn, [(key, child, path, json.dumps(context)) for child, path, context in spawns]
    )
    for op in timers:
        if op.action == "schedule":
            yield sql.schedule_timer, (key, op.path, op.fire_at)
        else:
            yield sql.cancel_timer, (key, op.path)


def _inserts(insert: str, rows: Sequence[tuple[object, ...]]) -> Iterable[Statement]:
    """Insert many rows by few statements."""
    for start in range(0, len(rows), _ROWS):
        some = rows[start : start + _ROWS]
        yield many(insert, len(some)), tuple(value for row in some for value in row)


def _seqs(effects: Iterable[Effect]) -> list[int]:
    # AUTOINCREMENT numbers the rows of one statement in their order, without a gap.
    return [
        (effect.lastrowid or 0) - effect.rowcount + 1 + at
        for effect in effects
        for at in range(effect.rowcount)
    ]


def _trace(sql: Statements, key: str, entry: dict[str, Any], keep: int) -> list[Statement]:
    append = (sql.append_trace, (key, key, json.dumps(entry)))
    return [append, (sql.trim_trace, (key, key, keep))] if keep else [append]


@dataclass(frozen=True, slots=True)
class _Written:
    """Recovery of `write`: the row at the new version with the same bytes is ours.

    Two writers may have made the same bytes. So an event that was to be marked as processed must
    be, and of the events that were emitted one must still be in the outbox. Where none is they
    may have been delivered meanwhile, or be another's; a conflict is right in both cases, because
    whoever loads the execution again finds the event processed.
    """

    sql: Statements
    key: str
    old: int
    data: str
    events: tuple[Emit, ...]
    processed: str | None
    lost: Callable[[int | None], Exception]

    @property
    def questions(self) -> tuple[Statement, ...]:
        targets = json.dumps([target for target, _ in self.events])
        texts = json.dumps([text for _, text in self.events])
        return (
            (self.sql.stored, (self.key,)),
            (self.sql.emitted, (targets, texts)),
            (self.sql.is_processed, (self.key, self.processed)),
        )

    def judge(self, answers: Sequence[Sequence[Row]], lost: Exception) -> Outcome | None:  # noqa: ARG002
        stored, emitted, processed = answers
        version, data = stored[0] if stored else (None, None)
        if (version or 0) == self.old:
            return None
        seqs = recover_seqs(self.events, emitted)
        marked = self.processed is None or bool(processed)
        if (version, data) == (self.old + 1, self.data) and marked and seqs is not None:
            return Outcome(seqs)
        return Outcome(error=self.lost(version))


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
    return Unit(((sql.ack_outbox, (seq,)),), nothing)


def ack_spawn(sql: Statements, seq: int) -> Unit[None]:
    """Remove a spawn whose child exists."""
    return Unit(((sql.ack_spawn, (seq,)),), nothing)


def delete_timer(sql: Statements, execution_id: str, path: str, fire_at: float) -> Unit[None]:
    """Remove a timer if it is still armed for `fire_at`."""
    return Unit(((sql.delete_timer, (execution_id, path, fire_at)),), nothing)


def append_trace(
    sql: Statements, execution_id: str, entry: dict[str, Any], keep: int
) -> Unit[None]:
    """Append one step to a trace. Two equal steps cannot be told from one that came twice."""
    return Unit(tuple(_trace(sql, execution_id, entry, keep)), nothing, recovery=Unprovable())


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
            (sql.purge, (execution_id, expected_version)),
            *((each, (execution_id, execution_id)) for each in companions),
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
        ((sql.publish, row), (sql.definition, row[:2])),
        lambda effects: effects[1].rows[0],
        recovery=AlwaysSafe(),
        size=len(row[3]),
    )
