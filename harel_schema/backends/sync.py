"""Where `LibsqlStore` reads and commits. Threads may share it."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, Protocol

from harel_schema.backends.local import connect
from harel_schema.commit import local
from harel_schema.errors import NotSupportedError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from harel_schema.commit.group import Attempt
    from harel_schema.commit.unit import Outcome, Row, Statement, Unit
    from harel_schema.dbapi import Connection
    from harel_schema.opening import Options

__all__ = ["Backend", "Local", "open_backend"]


class Backend(Protocol):
    """What `LibsqlStore` needs of the place where its data is. Threads may share it."""

    @property
    def in_transaction(self) -> bool:
        """Whether a transaction is open at this moment."""

    def read(self, statement: Statement) -> Sequence[Row]:
        """Return every row of a query."""

    def attempt(self, units: Sequence[Unit[Any]]) -> Attempt:
        """Return an attempt to commit `units` together."""

    def sync(self) -> None:
        """Fetch what the primary has committed; `NotSupportedError` unless on a replica."""

    def close(self) -> None:
        """Let go of the connection, once nothing uses it."""


def open_backend(options: Options) -> Backend:
    """Open the database that the options name; raises what cannot be opened."""
    if options.primary is None and options.target.kind != "remote":
        return Local(connect(options))
    # A local store needs no HTTP.
    from harel_schema.backends.server import Remote, Replica  # noqa: PLC0415

    return Remote(options) if options.primary is None else Replica(options)


class Local:
    """One connection, for one thread at a time."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._mutex = threading.Lock()

    @property
    def in_transaction(self) -> bool:
        """Whether a transaction is open; see `Backend`."""
        return self._connection.in_transaction

    def read(self, statement: Statement) -> Sequence[Row]:
        """Return every row of a query; see `Backend`."""
        with self._mutex:
            return local.read(self._connection, statement)

    def attempt(self, units: Sequence[Unit[Any]]) -> Attempt:
        """Return an attempt that has the connection to itself; see `Backend`."""
        return _Exclusive(self._connection, units, self._mutex)

    def sync(self) -> None:
        """Refuse; see `Backend`."""
        raise NotSupportedError("only an embedded replica can sync", remedy="pass sync_url")

    def close(self) -> None:
        """Close the connection; see `Backend`."""
        with self._mutex:
            self._connection.close()


class _Exclusive(local.Transaction):
    def __init__(
        self, connection: Connection, units: Sequence[Unit[Any]], mutex: threading.Lock
    ) -> None:
        super().__init__(connection, units)
        self._mutex = mutex

    def run(self) -> list[Outcome]:
        with self._mutex:
            return super().run()
