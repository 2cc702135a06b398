"""The invariants of a store between its rows, as a question to each row. Pure.

What a row must be by itself (storage classes, JSON, statuses) is asked by `drift.probes`. Each
question is answered within one statement, so that no writer makes it look broken.

What harel itself does is no fault: it leaves the timers of what it cancels, and of a step that
failed, until they are due; it sends events to children that the next pass of its relay creates.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from harel_schema.doctor.kinds import DELETE, INSERT, Kind
from harel_schema.introspect import fold, quote
from harel_schema.models import Status
from harel_schema.sql import field_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from harel_schema.doctor.model import Thresholds
    from harel_schema.introspect import Schema, Table

__all__ = ["FINISHED", "NEWEST", "Rule", "rules"]

_EPOCH: Final = "(julianday({}) - 2440587.5) * 86400.0"
_FINISHED: Final = f"('{Status.DONE}', '{Status.CANCELLED}')"
FINISHED: Final = f"coalesce(sum({field_of('status')} IN {_FINISHED}), 0)"
"""Counts executions that are finished."""
NEWEST: Final = (
    "max(CASE WHEN json_valid(data) THEN CASE WHEN json_type(data, '$.updated_at')"
    " IN ('integer', 'real') THEN json_extract(data, '$.updated_at') END END)"
)
"""The time of the newest commit of executions."""


@dataclass(frozen=True, slots=True)
class Rule:
    """A question to every row of the table that ends in `table`; see `drift.scan.Question`.

    `needs` names the columns that must be there to ask it.
    """

    kind: Kind
    table: str
    needs: tuple[str, ...]
    right: str
    what: str = "''"

    def remedy(self, live: Table, prefix: str) -> str:
        """Return what helps: a statement where there is one."""
        if self.kind.remedy == INSERT:
            groups = quote(f"{prefix}_transport_groups")
            return (
                f"INSERT OR IGNORE INTO {groups} (group_id)"  # noqa: S608
                f" SELECT DISTINCT group_id FROM {quote(live.name)};"
            )
        if not self.kind.remedy.endswith(DELETE):
            return self.kind.remedy
        return f"DELETE FROM {quote(live.name)} WHERE NOT ({self.right});"  # noqa: S608


def rules(
    found: Schema, prefix: str, thresholds: Thresholds, now: float | None
) -> dict[str, list[Rule]]:
    """Return what can be asked of a schema, by the folded names of its tables.

    `now` is the time at which ages are measured; None leaves out what is about age.
    """
    asked: dict[str, list[Rule]] = {}
    names = fold(prefix)
    for rule in _all(prefix, thresholds, now):
        places = (need.split(".") for need in (*rule.needs, f"{rule.table}."))
        tables = [(found.table(f"{prefix}_{table}"), column) for table, column in places]
        if all(t is not None and (not column or column in t.by_name) for t, column in tables):
            asked.setdefault(f"{names}_{rule.table}", []).append(rule)
    return asked


def _all(prefix: str, thresholds: Thresholds, now: float | None) -> Iterator[Rule]:
    yield from _companions(prefix)
    yield from _executions(prefix)
    if thresholds.trace:
        trace = f"{prefix}_trace"
        last = f"(SELECT max(t.idx) FROM {trace} AS t WHERE t.execution_id = {trace}.execution_id)"  # noqa: S608
        needs = ("trace.execution_id", "trace.idx")
        yield Rule(Kind.TRACE_LONG, "trace", needs, f"idx > {last} - {thresholds.trace}")
    if now is not None:
        yield from _ages(prefix, now, now - thresholds.age)


def _companions(prefix: str) -> Iterator[Rule]:
    for kind, table, column in (
        (Kind.TIMER_ORPHAN, "timers", "execution_id"),
        (Kind.TRACE_ORPHAN, "trace", "execution_id"),
        (Kind.PROCESSED_ORPHAN, "processed_events", "execution_id"),
        (Kind.SPAWN_ORPHAN, "spawns", "parent_id"),
    ):
        key = f"{prefix}_{table}.{column}"
        yield Rule(kind, table, ("executions.id", f"{table}.{column}"), _there(prefix, key))
    target = f"{prefix}_outbox.target_id"
    children = f"SELECT child_id FROM {prefix}_spawns"  # noqa: S608
    yield Rule(
        Kind.OUTBOX_ORPHAN,
        "outbox",
        ("executions.id", "outbox.target_id", "spawns.child_id"),
        f"{target} IS NULL OR {_there(prefix, target)} OR {target} IN ({children})",
    )
    group = f"{prefix}_transport_messages.group_id"
    yield Rule(
        Kind.MESSAGE_UNGROUPED,
        "transport_messages",
        ("transport_messages.group_id", "transport_groups.group_id"),
        f"EXISTS (SELECT 1 FROM {prefix}_transport_groups AS g WHERE g.group_id = {group})",  # noqa: S608
    )
    # A state's timer is disarmed when the state is left; only the budget of a machine (@ttl)
    # outlives it.
    status = _of_execution(prefix, field_of("status"), f"{prefix}_timers.execution_id")
    yield Rule(
        Kind.TIMER_FINISHED,
        "timers",
        ("executions.id", "executions.data", "timers.execution_id", "timers.path"),
        f"path = '@ttl' OR {status} IS NOT '{Status.DONE}'",
    )


def _executions(prefix: str) -> Iterator[Rule]:
    data = f"{prefix}_executions.data"
    parent = field_of("parent_id", data)
    needs = ("executions.id", "executions.data")
    there = f"{parent} IS NULL OR {_there(prefix, parent)}"
    yield Rule(Kind.CHILD_ORPHAN, "executions", needs, there)
    published = f"SELECT 1 FROM {prefix}_definitions AS d"  # noqa: S608
    this = f"{published} WHERE d.definition_id = {prefix}_executions.definition_id"
    yield Rule(
        Kind.DEFINITION_UNPUBLISHED,
        "executions",
        (*needs, "executions.definition_id", "definitions.definition_id"),
        f"{parent} IS NOT NULL OR {field_of('status', data)} IN {_FINISHED}"
        f" OR NOT EXISTS ({published}) OR EXISTS ({this})",
    )


def _ages(prefix: str, now: float, oldest: float) -> Iterator[Rule]:
    """Yield what is about age. What commits an entry is updated then, and perhaps again."""
    document = ("executions.id", "executions.data")
    status = _of_execution(prefix, field_of("status"), f"{prefix}_timers.execution_id")
    # Harel leaves those of suspended executions armed.
    waits = f"coalesce({status}, '{Status.SUSPENDED}') = '{Status.SUSPENDED}'"
    yield Rule(
        Kind.TIMER_OVERDUE,
        "timers",
        (*document, "timers.execution_id", "timers.fire_at"),
        f"fire_at >= {oldest!r} OR {waits}",
    )
    updated = field_of("updated_at")
    since = _of_execution(prefix, updated, f"{prefix}_spawns.parent_id")
    young = f"coalesce({{}}, {now!r}) >= {oldest!r}"
    needs: tuple[str, ...] = (*document, "spawns.parent_id")
    yield Rule(Kind.SPAWNS_STALE, "spawns", needs, young.format(since))
    sent = f"CASE WHEN json_valid(event) THEN {_sent(prefix)} END"
    needs = (*document, "outbox.target_id", "outbox.event")
    yield Rule(Kind.OUTBOX_STALE, "outbox", needs, young.format(sent))


def _sent(prefix: str) -> str:
    """Return when an event was put into the outbox at the latest, NULL where nothing tells.

    Harel dates no events, but its own have known senders: a Start and a control plane's Cancel
    the target itself, another Cancel the target's parent, a Finished the child it speaks of.
    """
    updated, target = field_of("updated_at"), f"{prefix}_outbox.target_id"
    own = _of_execution(prefix, updated, target)
    parent = _of_execution(prefix, updated, _of_execution(prefix, field_of("parent_id"), target))
    child = _of_execution(prefix, updated, "json_extract(event, '$.data.child_id')")
    dated = _EPOCH.format("json_extract(event, '$.created_time')")
    return (
        f"coalesce({dated}, CASE json_extract(event, '$.kind') WHEN 'Start' THEN {own}"
        f" WHEN 'Finished' THEN {child} WHEN 'Cancel' THEN max({own}, coalesce({parent}, {own}))"
        " END)"
    )


def _there(prefix: str, key: str) -> str:
    return f"EXISTS (SELECT 1 FROM {prefix}_executions AS e WHERE e.id = {key})"  # noqa: S608


def _of_execution(prefix: str, expression: str, key: str) -> str:
    return f"(SELECT {expression} FROM {prefix}_executions AS e WHERE e.id = {key})"  # noqa: S608
