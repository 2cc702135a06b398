"""Where `AsyncLibsqlStore` reads and commits. Tasks may share it."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from harel_schema.backends.local import connect
from harel_schema.backends.sync import Local
from harel_schema.commit.tasks import TaskGroup, Worker
from harel_schema.errors import Error, StoreError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from harel_schema.commit.group import Attempt
    from harel_schema.commit.unit import Outcome, Row, Statement, Unit
    from harel_schema.opening import Options

__all__ = ["Backend", "OnServer", "OnThread", "make_backend"]

T = TypeVar("T")


def make_backend(given: Options) -> Backend:
    """Return the backend for the options; `open` opens it."""
    return OnServer(given) if given.target.kind == "remote" else OnThread(given)


class Backend(Protocol):
    """What `AsyncLibsqlStore` needs of the place where its data is."""

    async def open(self) -> None:
        """Open the database; raises what cannot be opened."""

    async def read(self, statement: Statement) -> Sequence[Row]:
        """Return every row of a query."""

    async def submit(self, unit: Unit[T]) -> T:
        """Commit `unit`, alone or with others; return its value or raise its error."""

    async def close(self) -> None:
        """Let go of the connection when what was handed in is done."""

    def drop(self) -> None:
        """Let go of what is left, without an event loop."""


class OnThread:
    """A local connection, on the one thread that uses it."""

    def __init__(self, given: Options) -> None:
        self._given = given
        self._local: Local | None = None
        self._worker = Worker(self._attempt, self._finish)

    @property
    def _opened(self) -> Local:
        if self._local is None:
            raise StoreError("the database was not opened")
        return self._local

    def _attempt(self, units: Sequence[Unit[Any]]) -> Attempt:
        return self._opened.attempt(units)

    async def open(self) -> None:
        """Open the database; see `Backend`."""

        def connection() -> None:
            self._local = Local(connect(self._given))

        await self._worker.call(connection)

    async def read(self, statement: Statement) -> Sequence[Row]:
        """Return every row of a query; see `Backend`."""
        return await self._worker.call(lambda: self._opened.read(statement))

    async def submit(self, unit: Unit[T]) -> T:
        """Commit a unit; see `Backend`."""
        return await self._worker.submit(unit)

    async def close(self) -> None:
        """Let go of the connection; see `Backend`."""
        # Shielded, so that a cancelled close() still closes when what waits is done.
        await asyncio.shield(self._worker.call(self._finish))

    def drop(self) -> None:
        """End the thread; see `Backend`."""
        self._worker.stop()

    def _finish(self) -> None:
        if self._local is not None:
            self._local.close()


class OnServer:
    """A libSQL server, one request a read and one a group of commits."""

    def __init__(self, given: Options) -> None:
        from harel_schema import hrana  # noqa: PLC0415 - a local store needs no HTTP

        self.client = hrana.AsyncClient(
            str(given.target.url),
            auth_token=given.target.auth_token,
            timeout=given.request_timeout,
        )
        self._timeout = given.timeout
        self._group = TaskGroup(self._commit)

    async def open(self) -> None:
        """There is nothing to open before the first request."""

    async def read(self, statement: Statement) -> Sequence[Row]:
        """Return every row of a query; see `Backend`."""
        from harel_schema.hrana.protocol import Statement as Query  # noqa: PLC0415

        return (await self.client.execute(Query(*statement), idempotent=True)).rows

    async def submit(self, unit: Unit[T]) -> T:
        """Commit a unit; see `Backend`."""
        return await self._group.submit(unit)

    async def close(self) -> None:
        """Let go of the connection; see `Backend`."""
        await self._group.finish()
        await self.client.close()

    def drop(self) -> None:
        """There is no thread to end; the sockets close with the client."""

    async def _commit(self, units: Sequence[Unit[Any]]) -> list[Outcome]:
        from harel_schema.commit.flow import Ask, Wait, commit  # noqa: PLC0415

        actions = commit(units, self._timeout)
        try:
            action = next(actions)
            while True:
                if isinstance(action, Wait):
                    await asyncio.sleep(action.seconds)
                    action = next(actions)
                    continue
                try:
                    answer = await self.client.batch(
                        action.batch, idempotent=isinstance(action, Ask)
                    )
                except Error as exc:
                    action = actions.throw(exc)
                else:
                    action = actions.send(answer)
        except StopIteration as stop:
            decided: list[Outcome] = stop.value
            return decided
