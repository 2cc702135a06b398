"""The values of Hrana 3: statements, batches, conditions, requests and their results.

Names and meaning follow the specification (`HRANA_3_SPEC.md` of libSQL). All are immutable.
"""

from __future__ import annotations

from collections import abc
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from harel_schema.errors import Error

Value: TypeAlias = int | float | str | bytes | None
"""A SQLite value. On the way in, bool, bytearray and memoryview are accepted too."""

Row: TypeAlias = tuple[Value, ...]

Args: TypeAlias = abc.Sequence[object] | abc.Mapping[str, object]
"""A sequence for ``?``, a mapping for ``:name`` (the key may leave out the prefix sign)."""


@dataclass(frozen=True, slots=True)
class Statement:
    """One SQL statement and its parameters.

    `want_rows=False` tells the server that rows are not needed; sqld 0.24 sends them anyway. With
    a `replication_index` a replica server runs a read once it has come as far.
    """

    sql: str
    args: Args = ()
    want_rows: bool = True
    replication_index: int | None = None


@dataclass(frozen=True, slots=True)
class Encoded:
    """A statement that was encoded before it is sent, by `encode_statement`: for a large one."""

    parts: abc.Sequence[bytes] = field(repr=False)


@dataclass(frozen=True, slots=True)
class Ok:
    """True when the step at index `step` (from 0) ran and succeeded."""

    step: int


@dataclass(frozen=True, slots=True)
class Err:
    """True when the step at index `step` (from 0) ran and failed."""

    step: int


@dataclass(frozen=True, slots=True)
class Not:
    """The negation of `condition`."""

    condition: Condition


@dataclass(frozen=True, slots=True)
class And:
    """True when all `conditions` are; true when there are none."""

    conditions: abc.Sequence[Condition]


@dataclass(frozen=True, slots=True)
class Or:
    """True when any of `conditions` is; false when there are none."""

    conditions: abc.Sequence[Condition]


@dataclass(frozen=True, slots=True)
class IsAutocommit:
    """True when no transaction is open on the stream."""


Condition: TypeAlias = Ok | Err | Not | And | Or | IsAutocommit


@dataclass(frozen=True, slots=True)
class Step:
    """A statement of a batch, skipped when its `condition` is false."""

    statement: Statement | Encoded
    condition: Condition | None = None


@dataclass(frozen=True, slots=True)
class Batch:
    """Steps that the server runs in order. A failed step stops nothing by itself.

    `replication_index` is that of `Statement`, for all of them.
    """

    steps: abc.Sequence[Step]
    replication_index: int | None = None


@dataclass(frozen=True, slots=True)
class Execute:
    """Run one statement; the result is a `StatementResult`."""

    statement: Statement


@dataclass(frozen=True, slots=True)
class RunBatch:
    """Run a batch; the result is a `BatchResult`."""

    batch: Batch


@dataclass(frozen=True, slots=True)
class Sequence:
    """Run statements separated by semicolons until one fails; the result is None."""

    sql: str


@dataclass(frozen=True, slots=True)
class Describe:
    """Prepare a statement without running it; the result is a `Description`."""

    sql: str


@dataclass(frozen=True, slots=True)
class GetAutocommit:
    """Ask whether no transaction is open; the result is a bool."""


@dataclass(frozen=True, slots=True)
class Close:
    """Close the stream, rolling back what is open; the result is None."""


Request: TypeAlias = Execute | RunBatch | Sequence | Describe | GetAutocommit | Close


class StatementResult(NamedTuple):
    """What a statement gave. `last_insert_rowid` is None unless it inserted a row.

    `replication_index` is how far the database had come, None where the server does not say.
    """

    columns: tuple[str, ...]
    decltypes: tuple[str | None, ...]
    rows: list[Row]
    affected_row_count: int
    last_insert_rowid: int | None
    replication_index: int | None = None


class BatchResult(NamedTuple):
    """One slot a step in both: None where the step did not run, or did not fail.

    `replication_index` is that of `StatementResult`, where it was asked for.
    """

    results: tuple[StatementResult | None, ...]
    errors: tuple[Error | None, ...]
    replication_index: int | None = None


class Description(NamedTuple):
    """A prepared statement. `parameters` holds the names with their sign, None for ``?``."""

    parameters: tuple[str | None, ...]
    columns: tuple[str, ...]
    decltypes: tuple[str | None, ...]
    is_explain: bool
    is_readonly: bool


Result: TypeAlias = "StatementResult | BatchResult | Description | bool | Error | None"
"""What a request gave; an error is returned in its slot, not raised."""


class Pipeline(NamedTuple):
    """The answer to a pipeline, one result a request.

    `baton` names the stream for the next request, None when it is closed. `base_url` is where
    that request must go, None for the same place as before.
    """

    baton: str | None
    base_url: str | None
    results: tuple[Result, ...]


class StepBegin(NamedTuple):
    """A step of a streamed batch started."""

    step: int
    columns: tuple[str, ...]
    decltypes: tuple[str | None, ...]


class Rows(NamedTuple):
    """Rows of the step that began last, as many as arrived together (at least one)."""

    rows: list[Row]


class StepEnd(NamedTuple):
    """The step that began last succeeded."""

    affected_row_count: int
    last_insert_rowid: int | None


class StepError(NamedTuple):
    """Step `step` failed, perhaps after some of its rows were sent."""

    step: int
    error: Error


CursorEntry: TypeAlias = StepBegin | Rows | StepEnd | StepError
