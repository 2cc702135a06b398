"""The store's methods without I/O: a read and how to parse it, or the unit of a change.

`store` and `aio` carry them out, so both have one implementation.
"""

from __future__ import annotations

import json
import os
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Generic, NoReturn, TypeVar

from harel_schema import models, paging
from harel_schema.commit import writes
from harel_schema.errors import DatabaseError, IntegrityError, StoreConflict, StoreError, StoreMoved
from harel_schema.names import moved_address
from harel_schema.opening import prepare, upgrade_command
from harel_schema.sql import Statements, statements

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from harel_schema.commit.unit import Row, Statement, Unit
    from harel_schema.opening import Options

__all__ = ["OWN", "Base", "Calls", "Codec", "Read"]

T = TypeVar("T")


@dataclass(frozen=True)
class Codec:
    """The classes that the store speaks: its own, or harel's, which have the same fields."""

    execution: Any = models.Execution
    event: Any = models.Event
    summary: Any = models.ExecutionSummary
    page: Any = models.ExecutionPage
    outbox_entry: Any = models.OutboxEntry
    spawn_entry: Any = models.SpawnEntry
    conflict: Callable[[str, int, int | None], Exception] = StoreConflict


OWN = Codec()


@dataclass(frozen=True, slots=True)
class Read(Generic[T]):
    """One query, and what its rows mean."""

    statement: Statement
    parse: Callable[[Sequence[Row]], T]


class Base:
    """What the sync and the async store have in common: what they know, and no I/O.

    `trace_max` is how many steps of trace are kept for one execution (0: all).
    """

    _codec: ClassVar[Codec] = OWN

    def __init__(self, given: Options) -> None:
        self.trace_max = models.DEFAULT_TRACE_MAX
        self._target = given.target
        self._calls = Calls(given.prefix, self._codec)
        self._opening = prepare(self._calls.sql, str(given.target), create=given.create_schema)
        self._pid = os.getpid()
        self._closed = False

    def _check(self) -> None:
        if self._closed:
            raise StoreError("the store is closed", remedy="open a new one")
        if self._pid != os.getpid():
            raise StoreError(
                "the store was opened before a fork", remedy="open one a process, after the fork"
            )

    @staticmethod
    def _check_moved(error: IntegrityError) -> None:
        """Raise `StoreMoved` when the constraint that failed was the fence of a move."""
        address = moved_address(error.message)
        if address is not None:
            raise StoreMoved(address) from error

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self._target}>"

    def __reduce__(self) -> NoReturn:
        raise TypeError("a store can be neither pickled nor copied; open another one")


class Calls:
    """Turns the arguments of each method into a `Read` or a `Unit`."""

    def __init__(self, prefix: str, codec: Codec) -> None:
        self.sql: Statements = statements(prefix)
        self._codec = codec

    def load(self, execution_id: str) -> Read[models.Execution | None]:
        """Read an execution, or None."""
        return Read((self.sql.load, (execution_id,)), partial(self._execution, execution_id))

    def load_for_event(
        self, execution_id: str, event_id: str
    ) -> Read[tuple[models.Execution | None, bool]]:
        """Read an execution and whether it has processed the event."""
        args = (execution_id, execution_id, event_id)
        return Read(
            (self.sql.load_for_event, args), partial(self._execution_and_processed, execution_id)
        )

    def is_processed(self, execution_id: str, event_id: str) -> Read[bool]:
        """Read whether an execution has processed an event."""
        return Read((self.sql.is_processed, (execution_id, event_id)), bool)

    def list_executions(
        self,
        status: Iterable[Any] | None,
        definition_id: str | None,
        roots_only: bool,  # noqa: FBT001 - the public methods take it by name
        limit: int,
        cursor: str | None,
    ) -> Read[models.ExecutionPage]:
        """Read a page of summaries."""
        if limit < 0:
            raise ValueError(f"limit must not be negative, not {limit}")
        statuses = None if status is None else sorted({getattr(s, "value", s) for s in status})
        filters = [statuses, definition_id, bool(roots_only)]
        sql, args = self.sql.list_head, list[object]()
        if cursor is not None:
            sql += self.sql.list_after
            args.append(paging.decode(cursor, filters))
        if definition_id is not None:
            sql += self.sql.list_definition
            args.append(definition_id)
        if roots_only:
            sql += self.sql.list_roots
        if statuses is not None:
            # No row has the status NULL, which stands for an empty list.
            each = statuses or [None]
            sql = " UNION ALL ".join([sql + self.sql.list_status] * len(each))
            args = [value for status in each for value in (*args, status)]
        sql += self.sql.list_tail
        args.append(limit + 1)  # one more tells whether there is a next page
        return Read((sql, tuple(args)), lambda rows: self._page(rows, limit, filters))

    def read_trace(self, execution_id: str) -> Read[list[dict[str, Any]]]:
        """Read the steps of a trace, oldest first."""
        return Read((self.sql.read_trace, (execution_id,)), partial(self._trace, execution_id))

    def pending_outbox(self, limit: int | None) -> Read[list[models.OutboxEntry]]:
        """Read what waits for delivery, oldest first."""
        return Read((self.sql.pending_outbox, (_limit(limit),)), self._outbox)

    def pending_spawns(self, limit: int | None) -> Read[list[models.SpawnEntry]]:
        """Read what children wait to be created, oldest first."""
        return Read((self.sql.pending_spawns, (_limit(limit),)), self._spawns)

    def due_timers(self, now: float, limit: int | None) -> Read[list[tuple[str, str, float]]]:
        """Read the timers due at `now`, soonest first."""
        return Read((self.sql.due_timers, (now, _limit(limit))), list)

    def ids_with_prefix(self, prefix: str) -> Read[list[str]]:
        """Read the ids that begin with `prefix`, in order."""
        end = paging.successor(prefix)
        if end is None:
            return Read((self.sql.ids_from, (prefix,)), _column)
        return Read((self.sql.ids_between, (prefix, end)), _column)

    def load_definition(self, definition_id: str, version: int) -> Read[models.Definition | None]:
        """Read a published definition, or None."""
        return Read((self.sql.definition, (definition_id, version)), _definition)

    def write(self, exe: Any, **parts: Any) -> Unit[list[int]]:
        """Advance an execution, with the other parts of the commit."""
        return writes.write(self.sql, exe, self._codec.conflict, **parts)

    @contextmanager
    def needing_definitions(self) -> Iterator[None]:
        """Name the command when the table of definitions is not there."""
        try:
            yield
        except DatabaseError as exc:
            if f"no such table: {self.sql.prefix}_definitions" not in exc.message:
                raise
            raise StoreError(
                f"the database has no table {self.sql.prefix}_definitions",
                remedy=upgrade_command(self.sql.prefix),
            ) from exc

    def _execution(self, execution_id: str, rows: Sequence[Row]) -> models.Execution | None:
        return self._decoded_execution(execution_id, rows[0][0]) if rows else None

    def _execution_and_processed(
        self, execution_id: str, rows: Sequence[Row]
    ) -> tuple[models.Execution | None, bool]:
        data, processed = rows[0]
        if data is None:
            return None, False
        return self._decoded_execution(execution_id, data), bool(processed)

    def _decoded_execution(self, execution_id: str, data: object) -> models.Execution:
        read = self._codec.execution.model_validate_json
        execution: models.Execution = self._decoded(read, data, "executions", execution_id)
        return execution

    def _decoded(self, read: Callable[[Any], T], value: object, table: str, key: object) -> T:
        """Return what a cell means. Raises `StoreError`, with its row, where it means nothing."""
        try:
            return read(value)
        except (TypeError, ValueError) as exc:
            raise StoreError(
                f"harel did not write the row {key!r} of {self.sql.prefix}_{table}",
                remedy="see what `harel-schema check --data` says of it",
            ) from exc

    def _page(self, rows: Sequence[Row], limit: int, filters: list[Any]) -> models.ExecutionPage:
        names = (
            "id", "definition_id", "version", "status",
            "outcome", "active_path", "parent_id", "finished_at",
        )  # fmt: skip

        def summary(row: Row) -> models.ExecutionSummary:
            made: models.ExecutionSummary = self._codec.summary(
                **dict(zip(names, row, strict=True))
            )
            return made

        items = [self._decoded(summary, row, "executions", row[0]) for row in rows[:limit]]
        more = bool(items) and len(rows) > limit
        following = paging.encode(items[-1].id, filters) if more else None
        page: models.ExecutionPage = self._codec.page(items=items, next_cursor=following)
        return page

    def _outbox(self, rows: Sequence[Row]) -> list[models.OutboxEntry]:
        read = self._codec.event.model_validate_json
        return [
            self._codec.outbox_entry(seq, to, self._decoded(read, event, "outbox", seq))
            for seq, to, event in rows
        ]

    def _spawns(self, rows: Sequence[Row]) -> list[models.SpawnEntry]:
        make = self._codec.spawn_entry
        return [make(*row[:4], self._decoded(json.loads, row[4], "spawns", row[0])) for row in rows]

    def _trace(self, execution_id: str, rows: Sequence[Row]) -> list[dict[str, Any]]:
        def step(row: Row) -> dict[str, Any]:
            idx, entry = row
            return {**json.loads(entry), "index": idx}

        return [self._decoded(step, row, "trace", (execution_id, row[0])) for row in rows]


def _limit(limit: int | None) -> int:
    if limit is not None and limit < 0:
        raise ValueError(f"limit must not be negative, not {limit}")
    return -1 if limit is None else limit


def _column(rows: Sequence[Row]) -> list[Any]:
    return [value for (value,) in rows]


def _definition(rows: Sequence[Row]) -> models.Definition | None:
    return models.Definition(*rows[0]) if rows else None
