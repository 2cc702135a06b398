"""Where `AsyncLibsqlStore` reads and commits when there is a server: alone, or with a replica."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, TypeVar

from harel_schema import hrana
from harel_schema.backends.aio import OnThread
from harel_schema.backends.lag import Lag
from harel_schema.backends.local import connect
from harel_schema.backends.server import TOO_LARGE, ReplicaFile
from harel_schema.commit.batch import answers, questions
from harel_schema.commit.flow import Ask, Wait, commit
from harel_schema.commit.tasks import TaskGroup
from harel_schema.errors import Error, NotSupportedError, StoreError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from harel_schema.commit.unit import Outcome, Row, Statement, Unit
    from harel_schema.opening import Options

__all__ = ["OnReplica", "OnServer"]

T = TypeVar("T")


class OnServer:
    """A libSQL server, one request a read and one a group of commits."""

    in_transaction = False  # each request is a whole one

    def __init__(self, given: Options) -> None:
        self._given = given
        self._timeout = given.timeout
        self._lag = Lag()
        self._loop: asyncio.AbstractEventLoop | None = None

    async def open(self) -> None:
        """There is nothing to open before the first request."""
        self._use_loop()

    def _use_loop(self) -> None:
        """Go on in this event loop, to which sockets and futures belong, when the last is closed.

        Raises `StoreError` while that one runs.
        """
        loop = asyncio.get_running_loop()
        if self._loop is loop:
            return
        if self._loop is not None and not self._loop.is_closed():
            raise StoreError(
                "the store is used by another event loop", remedy="open one in each event loop"
            )
        self._loop = loop
        server = self._given.server
        self.client = hrana.AsyncClient(
            str(server.url), auth_token=server.auth_token, timeout=self._given.request_timeout
        )
        self._group = TaskGroup(self.commit)

    async def read(self, statement: Statement) -> Sequence[Row]:
        """Return every row of a query; see `Backend`."""
        self._use_loop()
        rows = None if self._lag.unknown else await self._read_here(self._lag.query(statement))
        if rows is not None:
            return rows
        return answers(await self.client.batch(questions([statement]), idempotent=True))[0]

    async def _read_here(self, query: hrana.Statement) -> Sequence[Row] | None:
        """Return the rows; None where a replica server answered before it had come far enough."""
        try:
            result = await self.client.execute(query, idempotent=True)
        except Error as exc:
            if exc.code != TOO_LARGE:
                raise
            return [row async for row in self.client.rows(query)]
        return result.rows if self._lag.answers(query, result) else None

    async def submit(self, unit: Unit[T]) -> T:
        """Commit a unit; see `Backend`."""
        self._use_loop()
        return await self._group.submit(unit)

    async def sync(self) -> None:
        """Refuse; see `Backend`."""
        raise NotSupportedError("only an embedded replica can sync", remedy="pass sync_url")

    async def close(self) -> None:
        """Let go of the connection; see `Backend`."""
        self._use_loop()
        await self._group.finish()
        await self.client.close()

    def drop(self) -> None:
        """There is no thread to end; the sockets close with the client."""

    async def commit(self, units: Sequence[Unit[Any]]) -> list[Outcome]:
        """Commit `units` in one transaction, one request where nothing goes wrong."""
        actions = commit(units, self._timeout)
        try:
            action = next(actions)
            while True:
                if isinstance(action, Wait):
                    await asyncio.sleep(action.seconds)
                    action = next(actions)
                    continue
                try:
                    asks = isinstance(action, Ask)
                    answer = await self.client.batch(
                        action.batch, idempotent=asks, indexed=not asks
                    )
                    self._lag.committed(answer.replication_index)
                except Error as exc:
                    action = actions.throw(exc)
                else:
                    action = actions.send(answer)
        except StopIteration as stop:
            decided: list[Outcome] = stop.value
            return decided


class OnReplica(OnServer):
    """An embedded replica: reads on one thread, a group of commits is one request."""

    def __init__(self, given: Options) -> None:
        super().__init__(given)
        self._file: OnThread[ReplicaFile] = OnThread(lambda: ReplicaFile(connect(given)))

    async def open(self) -> None:
        """Open the file; see `Backend`."""
        await super().open()
        await self._file.open()

    async def read(self, statement: Statement) -> Sequence[Row]:
        """Return every row of a query; see `Backend`."""
        return await self._file.read(statement)

    async def commit(self, units: Sequence[Unit[Any]]) -> list[Outcome]:
        """Commit `units` on the primary."""
        try:
            return await super().commit(units)
        finally:
            self._file.opened.fall_behind()

    async def sync(self) -> None:
        """Fetch what the primary has committed; see `Backend`."""
        await self._file.sync()

    async def close(self) -> None:
        """Let go of the file and the connection; see `Backend`."""
        try:
            await super().close()
        finally:
            await self._file.close()

    def drop(self) -> None:
        """End the thread; see `Backend`."""
        self._file.drop()
