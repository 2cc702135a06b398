"""Where `LibsqlStore` reads and commits. Threads may share it."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Any, Protocol

from harel_schema.backends.local import connect
from harel_schema.commit import local
from harel_schema.commit.unit import Outcome
from harel_schema.errors import ConnectionLost, Error

if TYPE_CHECKING:
    from collections.abc import Sequence

    from harel_schema.commit.flow import Flow
    from harel_schema.commit.group import Attempt
    from harel_schema.commit.unit import Row, Statement, Unit
    from harel_schema.dbapi import Connection
    from harel_schema.opening import Options

__all__ = ["Backend", "Local", "Remote", "open_backend"]


class Backend(Protocol):
    """What `LibsqlStore` needs of the place where its data is. Threads may share it."""

    def read(self, statement: Statement) -> Sequence[Row]:
        """Return every row of a query."""

    def attempt(self, units: Sequence[Unit[Any]]) -> Attempt:
        """Return an attempt to commit `units` together."""

    def close(self) -> None:
        """Let go of the connection, once nothing uses it."""


def open_backend(options: Options) -> Backend:
    """Open the database that the options name; raises what cannot be opened."""
    return Remote(options) if options.target.kind == "remote" else Local(connect(options))


class Local:
    """One connection, for one thread at a time."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._mutex = threading.Lock()

    def read(self, statement: Statement) -> Sequence[Row]:
        """Return every row of a query; see `Backend`."""
        with self._mutex:
            return local.read(self._connection, statement)

    def attempt(self, units: Sequence[Unit[Any]]) -> Attempt:
        """Return an attempt that has the connection to itself; see `Backend`."""
        return _Exclusive(self._connection, units, self._mutex)

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


class Remote:
    """A libSQL server, one request a read and one a group of commits."""

    def __init__(self, options: Options) -> None:
        from harel_schema import hrana  # noqa: PLC0415 - a local store needs no HTTP

        self.client = hrana.Client(
            str(options.target.url),
            auth_token=options.target.auth_token,
            timeout=options.request_timeout,
        )
        self._timeout = options.timeout

    def read(self, statement: Statement) -> Sequence[Row]:
        """Return every row of a query; see `Backend`."""
        from harel_schema.hrana.protocol import Statement as Query  # noqa: PLC0415

        return self.client.execute(Query(*statement), idempotent=True).rows

    def attempt(self, units: Sequence[Unit[Any]]) -> Attempt:
        """Return an attempt that sends one batch; see `Backend`."""
        return _Sent(self, units)

    def close(self) -> None:
        """Close the pooled connections; see `Backend`."""
        self.client.close()

    def commit(self, units: Sequence[Unit[Any]]) -> list[Outcome]:
        """Commit `units` in one transaction, one request where nothing goes wrong."""
        from harel_schema.commit import flow  # noqa: PLC0415

        return self._drive(flow.commit(units, self._timeout))

    def _drive(self, actions: Flow[list[Outcome]]) -> list[Outcome]:
        from harel_schema.commit.flow import Ask, Wait  # noqa: PLC0415

        try:
            action = next(actions)
            while True:
                if isinstance(action, Wait):
                    time.sleep(action.seconds)
                    action = next(actions)
                    continue
                try:
                    answer = self.client.batch(action.batch, idempotent=isinstance(action, Ask))
                except Error as exc:
                    action = actions.throw(exc)
                else:
                    action = actions.send(answer)
        except StopIteration as stop:
            decided: list[Outcome] = stop.value
            return decided


class _Sent:
    """An attempt on a server. An interrupt leaves it open whether the units were applied."""

    def __init__(self, remote: Remote, units: Sequence[Unit[Any]]) -> None:
        self.outcomes: list[Outcome] | None = None
        self._remote = remote
        self._units = units

    def run(self) -> list[Outcome]:
        """Commit the units; see `Attempt`."""
        try:
            self.outcomes = self._remote.commit(self._units)
        except Exception:
            raise
        except BaseException:
            lost = ConnectionLost("the request was interrupted; it may be applied", sent=True)
            self.outcomes = [Outcome(error=lost)] * len(self._units)
            raise
        return self.outcomes
