"""A session on an embedded replica: reads come from the local file, all else from the primary.

The replica's library fetches changes and nothing more. Writes and whole transactions go to the
primary over Hrana, as on any server: exact, with real errors, and a lost transaction is known. A
replica reads its own writes: the first read after one of them syncs first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import httpx

from harel_schema import errors as e
from harel_schema.dbapi import failures, files
from harel_schema.dbapi.changes import in_order
from harel_schema.dbapi.libsql import ExperimentalSession, LibsqlSession, load
from harel_schema.dbapi.remote import RemoteSession
from harel_schema.dbapi.statements import Kind, Statement
from harel_schema.dbapi.steps import writes

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from harel_schema.dbapi.parameters import Parameters, Value
    from harel_schema.dbapi.session import Effect, Result, Row
    from harel_schema.target import Target

__all__ = ["ReplicaSession"]

_PROBE_SECONDS = 10.0


class ReplicaSession:
    """A connection to the replica `target` of the database `primary`.

    `driver` is the library that speaks the sync protocol of the primary: ``"libsql"`` for the newer
    one, ``"libsql_experimental"`` for the older one. `interval` is in seconds: how often the
    library syncs by itself, None for never.
    """

    def __init__(
        self, target: Target, primary: Target, *, timeout: float, interval: float | None
    ) -> None:
        token = primary.auth_token
        token = token() if callable(token) else token or ""
        kind = _Newer if _speaks_newer_protocol(primary, token, target) else _Older
        options = {"sync_url": primary.url, "sync_interval": interval, "auth_token": token}
        self.driver = kind.driver
        self._primary = RemoteSession(primary, timeout=timeout, read_only=False)
        self._where = str(primary)
        self._stale = False
        try:
            self._local = kind(target, timeout=timeout, options=options)
        except BaseException:
            self.close()
            raise

    @property
    def in_transaction(self) -> bool:
        """Whether a transaction is open on the primary; see `RemoteSession`."""
        return self._primary.in_transaction

    def run(self, statement: Statement, values: tuple[Value, ...], begin: str | None) -> Result:
        """Run a read outside of a transaction on the replica, all else on the primary."""
        local = statement.kind in (Kind.READ, Kind.PRAGMA) and not writes(statement)
        if local and not self.in_transaction:
            if self._stale:
                self.sync()
            return self._local.run(statement, values, None)
        self._stale = True
        return self._primary.run(statement, values, begin)

    def run_many(
        self, statement: Statement, rows: Iterable[tuple[Value, ...]], begin: str | None
    ) -> int:
        """Run a statement once a row on the primary; see `Session`."""
        self._stale = True
        return self._primary.run_many(statement, rows, begin)

    def run_all(
        self, statements: Iterable[tuple[str, Parameters]], *, must_change: bool
    ) -> list[Effect]:
        """Run statements in their order, one a request; see `Session`."""
        return in_order(self, statements, must_change=must_change)

    def run_script(self, statements: Sequence[Statement]) -> None:
        """Run a script on the primary; see `Session`."""
        self._stale = True
        self._primary.run_script(statements)

    def run_reads(self, statements: Sequence[Statement]) -> list[list[Row] | None]:
        """Run reads where `run` does; see `Session`."""
        if self.in_transaction:
            return self._primary.run_reads(statements)
        if self._stale:
            self.sync()
        return self._local.run_reads(statements)

    def sync(self) -> None:
        """Fetch what the primary has committed; holds the GIL for as long as that takes.

        Raises `ConnectionLost` or `AuthError`.
        """
        self._local.pull(self._where)
        self._stale = False

    def interrupt(self) -> None:
        """Refuse, as its library does; see `Session`."""
        self._local.interrupt()

    def close(self) -> None:
        """Close the replica and the connection to the primary."""
        try:
            local = getattr(self, "_local", None)
            if local is not None:
                local.close()
        finally:
            self._primary.close()

    def discard(self) -> None:
        """Let go without waiting for the primary; see `Session`."""
        self._local.close()
        self._primary.discard()

    def abandon(self) -> None:
        """Leave the library and the sockets to the parent; see `Session`."""
        self._local.abandon()
        self._primary.abandon()


class _Replica(LibsqlSession):
    """The local half: a library that keeps a file in step with a primary."""

    def __init__(self, target: Target, *, timeout: float, options: dict[str, Any]) -> None:
        assert target.path is not None  # noqa: S101 - the caller has a file
        self._options = options
        super().__init__(target, timeout=timeout, read_only=False)

    def _open_file(self, target: Target) -> None:
        files.check_parent(target)
        # The library makes a new file itself: an empty one would be no replica of its own.
        if target.path is not None and target.path.exists():
            self._lease = files.use(target, self.driver, create=False)
        try:
            # The library syncs while it opens.
            self._raw = load(self.driver).connect(
                str(target.path), isolation_level=None, **self._options
            )
        except BaseException as error:
            raise failures.from_sync(error, str(self._options["sync_url"])) from error
        if self._lease is None:
            self._lease = files.use(target, self.driver, create=False)

    def pull(self, primary: str) -> None:
        """Fetch changes from the primary."""
        try:
            self._raw.sync()
        except BaseException as error:
            raise failures.from_sync(error, primary) from error


class _Newer(_Replica):
    driver = "libsql"


class _Older(_Replica, ExperimentalSession):
    driver = "libsql_experimental"


def _speaks_newer_protocol(primary: Target, token: str, target: Target) -> bool:
    """Ask the primary: only the newer protocol has ``/info``."""
    headers = {"authorization": f"Bearer {token}"} if token else {}
    try:
        answer = httpx.get(f"{primary.url}/info", headers=headers, timeout=_PROBE_SECONDS)
    except httpx.RequestError as error:
        if target.path is not None and target.path.exists():
            # The newer protocol keeps its state in a file of this name.
            return target.path.with_name(f"{target.path.name}-info").exists()
        raise e.ConnectionLost(
            f"{primary} cannot be reached: {error}",
            sent=False,
            remedy="a new replica needs its primary",
        ) from error
    return answer.is_success
