"""Where `AsyncLibsqlStore` reads and commits. Tasks may share it."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from harel_schema.backends.local import connect
from harel_schema.backends.sync import Local
from harel_schema.commit.tasks import Worker
from harel_schema.errors import StoreError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from harel_schema.backends import sync
    from harel_schema.commit.group import Attempt
    from harel_schema.commit.unit import Row, Statement, Unit
    from harel_schema.opening import Options

__all__ = ["Backend", "OnThread", "make_backend"]

T = TypeVar("T")
P = TypeVar("P", bound="sync.Backend")


def make_backend(given: Options) -> Backend:
    """Return the backend for the options; `open` opens it."""
    if given.primary is None and given.target.kind != "remote":
        return OnThread(lambda: Local(connect(given)))
    # A local store needs no HTTP.
    from harel_schema.backends.aio_server import OnReplica, OnServer  # noqa: PLC0415

    return OnServer(given) if given.primary is None else OnReplica(given)


class Backend(Protocol):
    """What `AsyncLibsqlStore` needs of the place where its data is."""

    @property
    def in_transaction(self) -> bool:
        """Whether a transaction is open at this moment."""

    async def open(self) -> None:
        """Open the database; raises what cannot be opened."""

    async def read(self, statement: Statement) -> Sequence[Row]:
        """Return every row of a query."""

    async def submit(self, unit: Unit[T]) -> T:
        """Commit `unit`, alone or with others; return its value or raise its error."""

    async def sync(self) -> None:
        """Fetch what the primary has committed; `NotSupportedError` unless on a replica."""

    async def close(self) -> None:
        """Let go of the connection when what was handed in is done."""

    def drop(self) -> None:
        """Let go of what is left, without an event loop."""


class OnThread(Generic[P]):
    """A local connection, on the one thread that uses it; `make` opens it there."""

    def __init__(self, make: Callable[[], P]) -> None:
        self._make = make
        self._place: P | None = None
        self._worker = Worker(self._attempt, self._finish)

    @property
    def opened(self) -> P:
        """What `make` made."""
        if self._place is None:
            raise StoreError("the database was not opened")
        return self._place

    @property
    def in_transaction(self) -> bool:
        """Whether a transaction is open; see `Backend`."""
        return self.opened.in_transaction

    def _attempt(self, units: Sequence[Unit[Any]]) -> Attempt:
        return self.opened.attempt(units)

    async def open(self) -> None:
        """Open the database; see `Backend`."""

        def make() -> None:
            self._place = self._make()

        await self._worker.call(make)

    async def read(self, statement: Statement) -> Sequence[Row]:
        """Return every row of a query; see `Backend`."""
        return await self._worker.call(lambda: self.opened.read(statement))

    async def submit(self, unit: Unit[T]) -> T:
        """Commit a unit; see `Backend`."""
        return await self._worker.submit(unit)

    async def sync(self) -> None:
        """Fetch what the primary has committed; see `Backend`."""
        await self._worker.call(self.opened.sync)

    async def close(self) -> None:
        """Let go of the connection; see `Backend`."""
        # Shielded, so that a cancelled close() still closes when what waits is done.
        await asyncio.shield(self._worker.call(self._finish))

    def drop(self) -> None:
        """End the thread; see `Backend`."""
        self._worker.stop()

    def _finish(self) -> None:
        if self._place is not None:
            self._place.close()
