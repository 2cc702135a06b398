"""Where `LibsqlStore` reads and commits when there is a server: it alone, or with a replica."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Any

from harel_schema import hrana
from harel_schema.backends.lag import Lag
from harel_schema.backends.local import connect
from harel_schema.commit import local
from harel_schema.commit.batch import answers, questions
from harel_schema.commit.flow import Ask, Wait, commit
from harel_schema.commit.unit import Outcome
from harel_schema.errors import ConnectionLost, Error, NotSupportedError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from harel_schema.commit.flow import Flow
    from harel_schema.commit.group import Attempt
    from harel_schema.commit.unit import Row, Statement, Unit
    from harel_schema.dbapi import Connection
    from harel_schema.opening import Options

__all__ = ["TOO_LARGE", "Remote", "Replica", "ReplicaFile"]

TOO_LARGE = "RESPONSE_TOO_LARGE"
"""A server's code for an answer of more than 10 MB, which it gives only as a stream."""


class Remote:
    """A libSQL server, one request a read and one a group of commits."""

    in_transaction = False  # each request is a whole one

    def __init__(self, options: Options) -> None:
        self.client = hrana.Client(
            str(options.server.url),
            auth_token=options.server.auth_token,
            timeout=options.request_timeout,
        )
        self._timeout = options.timeout
        self._lag = Lag()

    def read(self, statement: Statement) -> Sequence[Row]:
        """Return every row of a query; see `Backend`."""
        rows = None if self._lag.unknown else self._read_here(self._lag.query(statement))
        if rows is not None:
            return rows
        return answers(self.client.batch(questions([statement]), idempotent=True))[0]

    def _read_here(self, query: hrana.Statement) -> Sequence[Row] | None:
        """Return the rows; None where a replica server answered before it had come far enough."""
        try:
            result = self.client.execute(query, idempotent=True)
        except Error as exc:
            if exc.code != TOO_LARGE:
                raise
            return list(self.client.rows(query))
        return result.rows if self._lag.answers(query, result) else None

    def attempt(self, units: Sequence[Unit[Any]]) -> Attempt:
        """Return an attempt that sends one batch; see `Backend`."""
        return _Sent(self, units)

    def sync(self) -> None:
        """Refuse; see `Backend`."""
        raise NotSupportedError("only an embedded replica can sync", remedy="pass sync_url")

    def close(self) -> None:
        """Close the pooled connections; see `Backend`."""
        self.client.close()

    def commit(self, units: Sequence[Unit[Any]]) -> list[Outcome]:
        """Commit `units` in one transaction, one request where nothing goes wrong."""
        return self._drive(commit(units, self._timeout))

    def _drive(self, actions: Flow[list[Outcome]]) -> list[Outcome]:
        try:
            action = next(actions)
            while True:
                if isinstance(action, Wait):
                    time.sleep(action.seconds)
                    action = next(actions)
                    continue
                try:
                    asks = isinstance(action, Ask)
                    answer = self.client.batch(action.batch, idempotent=asks, indexed=not asks)
                    self._lag.committed(answer.replication_index)
                except Error as exc:
                    action = actions.throw(exc)
                else:
                    action = actions.send(answer)
        except StopIteration as stop:
            decided: list[Outcome] = stop.value
            return decided


class _Sent:
    """An attempt on a server. An interrupt leaves it open whether the units were applied."""

    def __init__(self, remote: Remote | Replica, units: Sequence[Unit[Any]]) -> None:
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


class ReplicaFile:
    """The local file of a replica, for one thread at a time. It syncs before a read that needs it.

    A commit goes to the primary and leaves the file behind it. The next read syncs first, so a
    store reads its own writes, and after a conflict the row that won.
    """

    in_transaction = False

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._mutex = threading.Lock()
        self._behind = False

    def read(self, statement: Statement) -> Sequence[Row]:
        """Return every row of a query, no older than the last call of `fall_behind`."""
        with self._mutex:
            if self._behind:
                self._sync()
            return local.read(self._connection, statement)

    def sync(self) -> None:
        """Fetch what the primary has committed."""
        with self._mutex:
            self._sync()

    def attempt(self, units: Sequence[Unit[Any]]) -> Attempt:
        """Refuse: commits are the primary's."""
        raise NotSupportedError(f"{len(units)} commits cannot be made in a replica's file")

    def fall_behind(self) -> None:
        """Make the next read sync first."""
        self._behind = True

    def close(self) -> None:
        """Close the file."""
        with self._mutex:
            self._connection.close()

    def _sync(self) -> None:
        # Cleared before and not after: a commit may end while this fetches.
        self._behind = False
        try:
            self._connection.sync()
        except BaseException:
            self._behind = True
            raise


class Replica:
    """An embedded replica: reads are local, a group of commits is one request to the primary."""

    in_transaction = False

    def __init__(self, options: Options) -> None:
        self._remote = Remote(options)
        self.client = self._remote.client
        try:
            self._file = ReplicaFile(connect(options))
        except BaseException:
            self._remote.close()
            raise

    def read(self, statement: Statement) -> Sequence[Row]:
        """Return every row of a query; see `Backend`."""
        return self._file.read(statement)

    def attempt(self, units: Sequence[Unit[Any]]) -> Attempt:
        """Return an attempt that sends one batch; see `Backend`."""
        return _Sent(self, units)

    def commit(self, units: Sequence[Unit[Any]]) -> list[Outcome]:
        """Commit `units` on the primary."""
        try:
            return self._remote.commit(units)
        finally:
            self._file.fall_behind()

    def sync(self) -> None:
        """Fetch what the primary has committed; see `Backend`."""
        self._file.sync()

    def close(self) -> None:
        """Close the file and the pooled connections; see `Backend`."""
        try:
            self._file.close()
        finally:
            self._remote.close()
