"""What a doctor can find, how bad it is, and what helps."""

from __future__ import annotations

from enum import StrEnum
from typing import Final, Literal, Self, TypeAlias

__all__ = ["DELETE", "INSERT", "Kind", "Severity"]

Severity: TypeAlias = Literal["error", "warning", "note"]

DELETE: Final = "SQL that deletes these rows is printed"
INSERT: Final = "SQL that adds what is missing is printed"
_RELAY: Final = "run a worker, or recover() of a runner of these definitions"


class Kind(StrEnum):
    """What can be found. The values are stable: reports and users' rules name them.

    `severity` is ``error`` for what is damaged or lost, ``warning`` for what somebody should look
    at, ``note`` for what is only worth knowing. `summary` says in a sentence what it is, `remedy`
    what helps.
    """

    severity: Severity
    summary: str
    remedy: str

    def __new__(cls, value: str, severity: Severity, summary: str, remedy: str) -> Self:
        """Keep the rest beside the value."""
        kind = str.__new__(cls, value)
        kind._value_ = value
        kind.severity = severity
        kind.summary = summary
        kind.remedy = remedy
        return kind

    INTEGRITY = (
        "integrity",
        "error",
        "The file is damaged; its rows are not read then.",
        "restore it from a backup, or try sqlite3's .recover",
    )
    FOREIGN_KEY = (
        "foreign-key",
        "warning",
        "Rows refer to rows that are not there. harel's tables have no foreign keys: others' do.",
        "PRAGMA foreign_key_check names the rows",
    )
    SCHEMA_DRIFT = (
        "schema-drift",
        "error",
        "The tables are not what their revision promises; what is there of them is examined.",
        "harel-schema check TARGET",
    )
    SEQUENCE_BEHIND = (
        "sequence-behind",
        "error",
        "The counter of AUTOINCREMENT is behind its table: a number may be given out twice.",
        "SQL that sets the counter is printed",
    )
    CHILD_ORPHAN = (
        "child-orphan",
        "error",
        "An execution's parent is not there: nobody will learn of its end.",
        "restore the parent from a backup, or purge the child with a store's purge()",
    )
    SPAWN_ORPHAN = (
        "spawn-orphan",
        "error",
        "A child waits to be created whose parent is not there.",
        DELETE,
    )
    TIMER_ORPHAN = ("timer-orphan", "warning", "A timer's execution is not there.", DELETE)
    TRACE_ORPHAN = ("trace-orphan", "warning", "A trace's execution is not there.", DELETE)
    PROCESSED_ORPHAN = (
        "processed-orphan",
        "warning",
        "A processed event's execution is not there; a new one of that id would pass it over.",
        DELETE,
    )
    OUTBOX_ORPHAN = (
        "outbox-orphan",
        "warning",
        "An event is addressed to an execution that is neither there nor about to be created.",
        DELETE,
    )
    MESSAGE_UNGROUPED = (
        "message-ungrouped",
        "warning",
        "A message of the transport has no row of its group: no worker claims it.",
        INSERT,
    )
    TIMER_FINISHED = (
        "timer-finished",
        "note",
        "A state's timer is armed, and its execution is DONE: it does nothing when it is due.",
        DELETE,
    )
    TIMER_OVERDUE = (
        "timer-overdue",
        "warning",
        "A timer of an execution that is not suspended was due long ago, and commits went on.",
        "run a worker that fires due timers",
    )
    TRACE_LONG = (
        "trace-long",
        "warning",
        "Steps of a trace that its ring should have dropped.",
        f"--trace-max if the workers keep more; else {DELETE}",
    )
    OUTBOX_STALE = ("outbox-stale", "warning", "An event has waited for too long.", _RELAY)
    OUTBOX_LONG = ("outbox-long", "warning", "Too many events wait.", _RELAY)
    SPAWNS_STALE = ("spawns-stale", "warning", "A child has waited for too long.", _RELAY)
    SPAWNS_LONG = ("spawns-long", "warning", "Too many children wait.", _RELAY)
    DEFINITION_UNPUBLISHED = (
        "definition-unpublished",
        "note",
        "A live root runs a definition that is not published, in a database where others are.",
        "publish_definition() of a store, if its readers need it",
    )
