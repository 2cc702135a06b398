"""The values that the store takes and gives, as harel 0.9.0 shapes them.

Field for field and byte for byte the JSON of harel's own models (`harel.engine.execution`,
`harel.spec.states`, `harel.engine.store.base`), without needing harel. A field that this
version does not know is kept, so a row that a newer engine wrote loses nothing here.
"""

from __future__ import annotations

import datetime as dt  # noqa: TC003 - pydantic reads it at run time
import uuid
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

__all__ = [
    "DEFAULT_TRACE_MAX",
    "ChildState",
    "Definition",
    "Event",
    "Execution",
    "ExecutionPage",
    "ExecutionSummary",
    "OutboxEntry",
    "SpawnEntry",
    "Status",
    "Step",
    "TimerOp",
]

DEFAULT_TRACE_MAX = 200
"""Steps of trace that are kept for one execution."""


def _new_id() -> str:
    return uuid.uuid4().hex


class _Model(BaseModel):
    model_config = ConfigDict(extra="allow")


class Status(StrEnum):
    """Where an execution is in its life."""

    PENDING = "PENDING"
    RUNNING = "RUNNING"
    DONE = "DONE"
    CANCELLED = "CANCELLED"
    SUSPENDED = "SUSPENDED"
    CANCELLING = "CANCELLING"
    FAILED = "FAILED"


class Event(_Model):
    """A stimulus of a state machine; `id` makes its effect once under repeated delivery."""

    id: str = Field(default_factory=_new_id)
    kind: str
    created_time: dt.datetime | None = None
    received_time: dt.datetime | None = None
    data: dict[Any, Any] = {}


class ChildState(_Model):
    """A child of an execution: an orthogonal region or an invoked machine."""

    root_path: str
    finished: bool = False
    outcome: str | None = None
    result: dict[Any, Any] = {}
    submachine: bool = False
    key: str = ""


class Execution(_Model):
    """A running instance of a definition.

    `version` is the version of the stored row it was loaded from, 0 before the first save. The
    store alone moves it, and only once a commit is durable. Times are seconds since the epoch.
    """

    id: str = Field(default_factory=_new_id)
    definition_id: str
    definition_fqn: str | None = None
    root_path: str = ""
    status: Status = Status.PENDING
    outcome: str | None = None
    error: str | None = None
    active_path: str | None = None
    history: dict[Any, Any] = {}
    context: dict[Any, Any] = {}
    processed_events: int = 0
    version: int = 0
    priority: int = Field(default=0, ge=0, le=4)
    parent_id: str | None = None
    child_id: str | None = None
    deferred: list[Event] = []
    children: dict[str, ChildState] = {}
    invoke_seq: dict[str, int] = {}
    created_at: float | None = None
    updated_at: float | None = None
    finished_at: float | None = None
    expires_at: float | None = None


class ExecutionSummary(BaseModel):
    """What a list shows of an execution, without its context and history."""

    id: str
    definition_id: str
    status: Status
    outcome: str | None = None
    active_path: str | None = None
    version: int = 0
    parent_id: str | None = None
    finished_at: float | None = None


class ExecutionPage(BaseModel):
    """Up to `limit` summaries, and the cursor of the next page (None: there is no more)."""

    items: list[ExecutionSummary] = []
    next_cursor: str | None = None


@dataclass
class OutboxEntry:
    """An event that waits for delivery to `target_id` (None: to nobody); `seq` acknowledges it."""

    seq: int
    target_id: str | None
    event: Event


@dataclass
class SpawnEntry:
    """A child execution that waits to be created; `seq` acknowledges it."""

    seq: int
    parent_id: str
    child_id: str
    root_path: str
    context: dict[str, Any]


@dataclass
class TimerOp:
    """A change of the timer `path`: armed for `fire_at` (epoch seconds), or cancelled."""

    action: Literal["schedule", "cancel"]
    path: str
    fire_at: float = 0.0


@dataclass(frozen=True)
class Step:
    """What caused a commit and how the execution moved, for an observer. It is not stored."""

    cause: str
    from_status: Status
    to_status: Status
    from_path: str | None = None
    to_path: str | None = None
    event_kind: str | None = None
    event_id: str | None = None
    actions: tuple[str, ...] = ()
    command: str | None = None


@dataclass(frozen=True)
class Definition:
    """A published version of a machine. `source` is its record as JSON; `digest` names it.

    `published_at` is in epoch seconds, None when it is not known.
    """

    definition_id: str
    version: int
    digest: str
    source: str
    published_at: float | None = None
