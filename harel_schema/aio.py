"""The runtime store for tasks: every method of `LibsqlStore`, awaitable."""

from __future__ import annotations

import os
import weakref
from typing import TYPE_CHECKING, Any, Self, TypeVar

from harel_schema.backends.aio import make_backend
from harel_schema.calls import Base, Read
from harel_schema.commit import writes
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
from harel_schema.opening import Options, options
from harel_schema.target import PATIENCE

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable
    from types import TracebackType

    from harel_schema.target import Target, Token

__all__ = ["AsyncLibsqlStore", "StoreConflict"]

T = TypeVar("T")


class AsyncLibsqlStore(Base):
    """A durable store of executions for the tasks of an event loop.

    Made by `await AsyncLibsqlStore.create(...)`, which takes what `LibsqlStore` takes. A local
    file is used by one thread of the store's own; a server is spoken to without a thread.

    A task may be cancelled anywhere. A commit whose task is cancelled is withdrawn if it had not
    begun; otherwise it goes on in the background, and `exe.version` moves if it becomes durable.
    """

    def __init__(self, given: Options) -> None:
        super().__init__(given)
        self._backend = make_backend(given)
        # A store that is dropped without close() must not leave its thread and file behind.
        self._dropped = weakref.finalize(self, self._backend.drop)

    @classmethod
    async def create(  # noqa: PLR0913 - keyword-only settings
        cls,
        database: str | os.PathLike[str] | Target = ":memory:",
        *,
        auth_token: Token = "",
        sync_url: str | None = None,
        sync_interval: float | None = None,
        prefix: str = DEFAULT_PREFIX,
        create_schema: bool = True,
        driver: str = "libsql",
        durability: str = "full",
        timeout: float = 5.0,  # noqa: ASYNC109 - of the database, not of the call
        request_timeout: float = PATIENCE,
    ) -> Self:
        """Open a database; arguments and errors are those of `LibsqlStore`."""
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
        store = cls(given)
        try:
            await store._backend.open()
            await store._prepare()
        except BaseException:
            await store.close()
            raise
        return store

    async def _prepare(self) -> None:
        try:
            action = next(self._opening)
            while True:
                try:
                    answer = await self._do(action)
                except Error as exc:
                    action = self._opening.throw(exc)
                else:
                    action = self._opening.send(answer)
        except StopIteration:
            return

    async def _do(self, action: Statement | Unit[Any]) -> Any:
        if isinstance(action, Unit):
            return await self._write(action)
        return await self._backend.read(action)

    async def _read(self, read: Read[T]) -> T:
        self._check()
        return read.parse(await self._backend.read(read.statement))

    async def _write(self, unit: Unit[T]) -> T:
        self._check()
        try:
            return await self._backend.submit(unit)
        except IntegrityError as exc:
            self._check_moved(exc)
            raise

    async def load(self, execution_id: str) -> Execution | None:
        """Return the stored execution, or None."""
        return await self._read(self._calls.load(execution_id))

    async def load_for_event(
        self, execution_id: str, event_id: str
    ) -> tuple[Execution | None, bool]:
        """Return the execution and whether it has processed the event, by one query."""
        return await self._read(self._calls.load_for_event(execution_id, event_id))

    async def list_executions(
        self,
        *,
        status: Iterable[Status] | None = None,
        definition_id: str | None = None,
        roots_only: bool = False,
        limit: int = 100,
        cursor: str | None = None,
    ) -> ExecutionPage:
        """Return up to `limit` summaries, by id, and the cursor of the next page."""
        return await self._read(
            self._calls.list_executions(status, definition_id, roots_only, limit, cursor)
        )

    async def iter_executions(
        self,
        *,
        status: Iterable[Status] | None = None,
        definition_id: str | None = None,
        roots_only: bool = False,
        page_size: int = 100,
    ) -> AsyncIterator[ExecutionSummary]:
        """Yield every summary that `list_executions` would list, page by page."""
        wanted = None if status is None else list(status)
        cursor = None
        while True:
            page = await self.list_executions(
                status=wanted,
                definition_id=definition_id,
                roots_only=roots_only,
                limit=page_size,
                cursor=cursor,
            )
            for summary in page.items:
                yield summary
            cursor = page.next_cursor
            if cursor is None:
                return

    async def save(self, exe: Execution) -> None:
        """Store `exe` if the stored version is still the one it was loaded at."""
        await self._write(self._calls.write(exe))

    async def commit(  # noqa: PLR0913, PLR0917 - harel's protocol
        self,
        exe: Execution,
        emits: Iterable[tuple[str | None, Event]],
        processed_event_id: str | None = None,
        timers: Iterable[TimerOp] = (),
        spawns: Iterable[tuple[str, str, dict[str, Any]]] = (),
        trace: dict[str, Any] | None = None,
        step: Step | None = None,  # noqa: ARG002 - for a store that observes its commits
    ) -> list[int]:
        """Store one step of `exe` whole: `save`, and all that belongs to it, or nothing."""
        unit = self._calls.write(
            exe,
            emits=emits,
            processed_event_id=processed_event_id,
            timers=timers,
            spawns=spawns,
            trace=trace,
            trace_max=self.trace_max,
        )
        return await self._write(unit)

    async def is_processed(self, execution_id: str, event_id: str) -> bool:
        """Return whether the execution has processed the event."""
        return await self._read(self._calls.is_processed(execution_id, event_id))

    async def append_trace(self, execution_id: str, entry: dict[str, Any]) -> None:
        """Append one step to the trace of an execution."""
        await self._write(writes.append_trace(self._calls.sql, execution_id, entry, self.trace_max))

    async def read_trace(self, execution_id: str) -> list[dict[str, Any]]:
        """Return the kept steps, oldest first, each with its `index`."""
        return await self._read(self._calls.read_trace(execution_id))

    async def pending_outbox(self, limit: int | None = None) -> list[OutboxEntry]:
        """Return what waits for delivery, oldest first, at most `limit` entries."""
        return await self._read(self._calls.pending_outbox(limit))

    async def ack_outbox(self, seq: int) -> None:
        """Remove a delivered entry; nothing happens when it is gone."""
        await self._write(writes.ack_outbox(self._calls.sql, seq))

    async def pending_spawns(self, limit: int | None = None) -> list[SpawnEntry]:
        """Return the children that wait to be created, oldest first, at most `limit`."""
        return await self._read(self._calls.pending_spawns(limit))

    async def ack_spawn(self, seq: int) -> None:
        """Remove the entry of a child that exists; nothing happens when it is gone."""
        await self._write(writes.ack_spawn(self._calls.sql, seq))

    async def due_timers(
        self, now: float, limit: int | None = None
    ) -> list[tuple[str, str, float]]:
        """Return (execution id, path, fire_at) of timers due at `now`, soonest first."""
        return await self._read(self._calls.due_timers(now, limit))

    async def delete_timer(self, execution_id: str, path: str, fire_at: float) -> None:
        """Remove a timer if it is still armed for `fire_at`."""
        await self._write(writes.delete_timer(self._calls.sql, execution_id, path, fire_at))

    async def ids_with_prefix(self, prefix: str) -> list[str]:
        """Return the ids of the executions that begin with `prefix`, exactly, in order."""
        return await self._read(self._calls.ids_with_prefix(prefix))

    async def purge(self, execution_id: str, expected_version: int) -> bool:
        """Delete an execution and all that is keyed by it, if it is still at that version."""
        return await self._write(writes.purge(self._calls.sql, execution_id, expected_version))

    async def publish_definition(
        self,
        definition_id: str,
        version: int,
        digest: str,
        source: str,
        published_at: float | None = None,
    ) -> Definition:
        """Store a version of a machine unless it is taken; return what is stored now."""
        with self._calls.needing_definitions():
            row = (definition_id, version, digest, source, published_at)
            return Definition(*await self._write(writes.publish(self._calls.sql, row)))

    async def load_definition(self, definition_id: str, version: int) -> Definition | None:
        """Return a published version, or None."""
        with self._calls.needing_definitions():
            return await self._read(self._calls.load_definition(definition_id, version))

    async def sync(self) -> None:
        """Bring an embedded replica up to date."""
        self._check()
        await self._backend.sync()

    async def close(self) -> None:
        """Close the store when what was handed in is done. Closing twice is fine."""
        if self._closed or self._pid != os.getpid():
            return
        self._closed = True
        try:
            await self._backend.close()
        finally:
            self._dropped()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()
