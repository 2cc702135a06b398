"""The runtime store: harel's executions on a local file, in memory, or on a libSQL server."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Self, TypeVar

from harel_schema.backends.sync import open_backend
from harel_schema.calls import Base, Read
from harel_schema.commit import writes
from harel_schema.commit.group import Group
from harel_schema.commit.unit import Statement, Unit
from harel_schema.errors import Error, IntegrityError, StoreConflict
from harel_schema.models import (
    Definition,
    Event,
    Execution,
    ExecutionPage,
    ExecutionSummary,
    OutboxEntry,
    SpawnEntry,
    Status,
    Step,
    TimerOp,
)
from harel_schema.names import DEFAULT_PREFIX
from harel_schema.opening import options
from harel_schema.target import PATIENCE

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from types import TracebackType

    from harel_schema.aio import AsyncLibsqlStore
    from harel_schema.target import Target, Token

__all__ = ["AsyncLibsqlStore", "LibsqlStore", "StoreConflict"]

T = TypeVar("T")


def __getattr__(name: str) -> Any:
    if name == "AsyncLibsqlStore":
        from harel_schema.aio import AsyncLibsqlStore  # noqa: PLC0415 - asyncio only if it is used

        return AsyncLibsqlStore
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


class LibsqlStore(Base):
    """A durable store of executions, safe to share between threads.

    `database` is a path, ``:memory:``, or the URL of a libSQL server (see
    `harel_schema.target`); a server's `auth_token` may be a callable. `prefix` begins the names
    of the tables. With `create_schema` a database that has none of them gets them, migrated to
    head; an existing schema is never changed. `driver` is ``"libsql"`` or ``"sqlite3"``, for a
    local file. `durability` is ``"full"`` (a commit survives a power cut) or ``"normal"`` (a
    power cut may take the last commits, in order; a crash of the process takes none). `timeout`
    is how many seconds a commit waits for another writer, `request_timeout` how many seconds of
    silence a server may answer with.

    Concurrent commits share a transaction, each with its own outcome. An error of the database
    is a `harel_schema.errors.Error`; the store leaves no transaction and no lock behind.

    Raises `TargetError`, `NotADatabaseError` or `ValueError` for what cannot be opened, and
    `StoreError` when tables are missing.
    """

    def __init__(  # noqa: PLR0913 - keyword-only settings
        self,
        database: str | os.PathLike[str] | Target = ":memory:",
        *,
        auth_token: Token = "",
        sync_url: str | None = None,
        sync_interval: float | None = None,
        prefix: str = DEFAULT_PREFIX,
        create_schema: bool = True,
        driver: str = "libsql",
        durability: str = "full",
        timeout: float = 5.0,
        request_timeout: float = PATIENCE,
    ) -> None:
        given = options(
            database,
            auth_token=auth_token,
            sync_url=sync_url,
            sync_interval=sync_interval,
            prefix=prefix,
            create_schema=create_schema,
            driver=driver,
            durability=durability,
            timeout=timeout,
            request_timeout=request_timeout,
        )
        super().__init__(given)
        self._backend = open_backend(given)
        self._group = Group(self._backend.attempt)
        self._patience = given.timeout + given.request_timeout
        try:
            self._prepare()
        except BaseException:
            self.close()
            raise

    def _prepare(self) -> None:
        try:
            action = next(self._opening)
            while True:
                try:
                    answer = self._do(action)
                except Error as exc:
                    action = self._opening.throw(exc)
                else:
                    action = self._opening.send(answer)
        except StopIteration:
            return

    def _do(self, action: Statement | Unit[Any]) -> Any:
        return self._write(action) if isinstance(action, Unit) else self._backend.read(action)

    def _read(self, read: Read[T]) -> T:
        self._check()
        return read.parse(self._backend.read(read.statement))

    def _write(self, unit: Unit[T]) -> T:
        self._check()
        try:
            return self._group.submit(unit)
        except IntegrityError as exc:
            self._check_moved(exc)
            raise

    def load(self, execution_id: str) -> Execution | None:
        """Return the stored execution, or None."""
        return self._read(self._calls.load(execution_id))

    def load_for_event(self, execution_id: str, event_id: str) -> tuple[Execution | None, bool]:
        """Return the execution and whether it has processed the event, by one query.

        ``(None, False)`` when there is no such execution.
        """
        return self._read(self._calls.load_for_event(execution_id, event_id))

    def list_executions(
        self,
        *,
        status: Iterable[Status] | None = None,
        definition_id: str | None = None,
        roots_only: bool = False,
        limit: int = 100,
        cursor: str | None = None,
    ) -> ExecutionPage:
        """Return up to `limit` summaries, by id, and the cursor of the next page.

        `status` is any of several; `roots_only` leaves out children. A page costs the same
        wherever it is, and the cursor stays good while rows come and go. Raises `CursorError`
        for a cursor of another listing, `ValueError` for a negative limit.
        """
        return self._read(
            self._calls.list_executions(status, definition_id, roots_only, limit, cursor)
        )

    def iter_executions(
        self,
        *,
        status: Iterable[Status] | None = None,
        definition_id: str | None = None,
        roots_only: bool = False,
        page_size: int = 100,
    ) -> Iterator[ExecutionSummary]:
        """Yield every summary that `list_executions` would list, page by page."""
        wanted = None if status is None else list(status)
        cursor = None
        while True:
            page = self.list_executions(
                status=wanted,
                definition_id=definition_id,
                roots_only=roots_only,
                limit=page_size,
                cursor=cursor,
            )
            yield from page.items
            cursor = page.next_cursor
            if cursor is None:
                return

    def save(self, exe: Execution) -> None:
        """Store `exe` if the stored version is still the one it was loaded at.

        `exe.version` grows by one, once that is durable. Raises `StoreConflict` when another
        writer was first.
        """
        self._write(self._calls.write(exe))

    def commit(  # noqa: PLR0913, PLR0917 - harel's protocol
        self,
        exe: Execution,
        emits: Iterable[tuple[str | None, Event]],
        processed_event_id: str | None = None,
        timers: Iterable[TimerOp] = (),
        spawns: Iterable[tuple[str, str, dict[str, Any]]] = (),
        trace: dict[str, Any] | None = None,
        step: Step | None = None,  # noqa: ARG002 - for a store that observes its commits
    ) -> list[int]:
        """Store one step of `exe` whole: `save`, and all that belongs to it, or nothing.

        `emits` are events for the outbox with their targets; `spawns` are (child id, root path,
        context) of children to create. Returns the seqs of `emits`, in their order.
        Raises `StoreConflict` as `save` does.

        When a server's answer is lost the store reads back what became of the commit. Raises
        `ConnectionLost` only if that fails too; the commit may then have been applied.
        """
        unit = self._calls.write(
            exe,
            emits=emits,
            processed_event_id=processed_event_id,
            timers=timers,
            spawns=spawns,
            trace=trace,
            trace_max=self.trace_max,
        )
        return self._write(unit)

    def is_processed(self, execution_id: str, event_id: str) -> bool:
        """Return whether the execution has processed the event."""
        return self._read(self._calls.is_processed(execution_id, event_id))

    def append_trace(self, execution_id: str, entry: dict[str, Any]) -> None:
        """Append one step to the trace of an execution."""
        self._write(writes.append_trace(self._calls.sql, execution_id, entry, self.trace_max))

    def read_trace(self, execution_id: str) -> list[dict[str, Any]]:
        """Return the kept steps, oldest first, each with its `index`."""
        return self._read(self._calls.read_trace(execution_id))

    def pending_outbox(self, limit: int | None = None) -> list[OutboxEntry]:
        """Return what waits for delivery, oldest first, at most `limit` entries."""
        return self._read(self._calls.pending_outbox(limit))

    def ack_outbox(self, seq: int) -> None:
        """Remove a delivered entry; nothing happens when it is gone."""
        self._write(writes.ack_outbox(self._calls.sql, seq))

    def pending_spawns(self, limit: int | None = None) -> list[SpawnEntry]:
        """Return the children that wait to be created, oldest first, at most `limit`."""
        return self._read(self._calls.pending_spawns(limit))

    def ack_spawn(self, seq: int) -> None:
        """Remove the entry of a child that exists; nothing happens when it is gone."""
        self._write(writes.ack_spawn(self._calls.sql, seq))

    def due_timers(self, now: float, limit: int | None = None) -> list[tuple[str, str, float]]:
        """Return (execution id, path, fire_at) of timers due at `now`, soonest first.

        `now` and `fire_at` are epoch seconds.
        """
        return self._read(self._calls.due_timers(now, limit))

    def delete_timer(self, execution_id: str, path: str, fire_at: float) -> None:
        """Remove a timer if it is still armed for `fire_at`."""
        self._write(writes.delete_timer(self._calls.sql, execution_id, path, fire_at))

    def ids_with_prefix(self, prefix: str) -> list[str]:
        """Return the ids of the executions that begin with `prefix`, exactly, in order."""
        return self._read(self._calls.ids_with_prefix(prefix))

    def purge(self, execution_id: str, expected_version: int) -> bool:
        """Delete an execution and all that is keyed by it, if it is still at that version.

        Returns whether it was deleted. False and nothing touched when it moved on; when there is
        no such execution, what an older purge left is removed, and the answer is False too.
        """
        return self._write(writes.purge(self._calls.sql, execution_id, expected_version))

    def publish_definition(
        self,
        definition_id: str,
        version: int,
        digest: str,
        source: str,
        published_at: float | None = None,
    ) -> Definition:
        """Store a version of a machine unless it is taken; return what is stored now.

        Compare its `digest`: the version that was stored first stays. `source` is the record's
        JSON, `published_at` epoch seconds.
        """
        with self._calls.needing_definitions():
            row = (definition_id, version, digest, source, published_at)
            return Definition(*self._write(writes.publish(self._calls.sql, row)))

    def load_definition(self, definition_id: str, version: int) -> Definition | None:
        """Return a published version, or None."""
        with self._calls.needing_definitions():
            return self._read(self._calls.load_definition(definition_id, version))

    def sync(self) -> None:
        """Bring an embedded replica up to date."""
        self._check()
        self._backend.sync()

    def close(self) -> None:
        """Close the store when what other threads handed in is done. Closing twice is fine.

        It waits no longer than `timeout` and `request_timeout` together; what is not done by then
        fails. Any other call raises `StoreError` from now on.
        """
        if self._closed or self._pid != os.getpid():
            return
        self._closed = True
        try:
            self._group.finish(self._patience)
        finally:
            self._backend.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()
