"""A session on an embedded replica: reads come from the local file, all else from the primary.

A process of its own fetches changes (`syncer`). Writes and whole transactions go to the
primary over Hrana, as on any server: exact, with real errors, and a lost transaction is known. A
replica reads its own writes: the first read after one of them syncs first.
"""

from __future__ import annotations

import logging
import os
import warnings
from functools import partial
from typing import TYPE_CHECKING
from urllib.parse import quote

import httpx

from harel_schema import errors as e
from harel_schema.dbapi import failures, files
from harel_schema.dbapi.changes import in_order
from harel_schema.dbapi.libsql import LibsqlSession
from harel_schema.dbapi.local import LocalSession, Sqlite3Session
from harel_schema.dbapi.remote import RemoteSession
from harel_schema.dbapi.replicate import BESIDE
from harel_schema.dbapi.statements import Kind, Statement, read
from harel_schema.dbapi.steps import writes
from harel_schema.dbapi.syncer import Syncer, Unsyncable, lock_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from harel_schema.dbapi.parameters import Parameters, Value
    from harel_schema.dbapi.session import Effect, Result, Row
    from harel_schema.target import Target

__all__ = ["ReplicaSession"]

_PROBE_SECONDS = 10.0
_NOTHING = read("SELECT 1")
_REFUSALS = (401, 403)
_logger = logging.getLogger("harel_schema.replica")


class ReplicaSession:
    """A connection to the replica `target` of the database `primary`.

    `driver` is the library that speaks the sync protocol of the primary: ``"libsql"`` for the newer
    one, ``"libsql_experimental"`` for the older one. `interval` is in seconds: how often the
    library syncs by itself, None for never; `silence` after how many a sync that makes no progress
    is given up. A file that can no longer be synced is fetched anew, with a UserWarning.

    Raises `TargetError` for a file that is a database of its own.
    """

    def __init__(
        self,
        target: Target,
        primary: Target,
        *,
        timeout: float,
        interval: float | None,
        silence: float,
    ) -> None:
        _check_file(target)
        self._primary = RemoteSession(
            primary, timeout=timeout, request_timeout=silence, read_only=False
        )
        self._stale = False
        try:
            self._syncer = self._open(target, primary, interval=interval, silence=silence)
            self._read = partial(_reader, target, timeout=timeout)
            self._local = self._read()
        except BaseException:
            self.close()
            raise

    def _open(
        self, target: Target, primary: Target, *, interval: float | None, silence: float
    ) -> Syncer:
        """Sync the file for the first time; without the primary it stays as old as it is."""
        assert target.path is not None  # noqa: S101 - the caller has a file
        generation = _generation(primary)
        unreachable, existed = generation is None, target.path.exists()
        # The newer protocol keeps its state in a file of this name.
        info = target.path.with_name(f"{target.path.name}-info")
        newer = info.exists() if generation is None else generation > 0
        self.driver = "libsql" if newer else "libsql_experimental"
        if unreachable and not (existed and _is_of(target.path, primary)):
            raise e.ConnectionLost(
                f"{primary} cannot be reached", sent=False, remedy="a new replica needs its primary"
            )
        if not unreachable:
            # The library takes seconds to find out that it is refused.
            self._check()
        syncer = Syncer(
            self.driver,
            target,
            primary,
            interval=interval,
            silence=silence,
            generation=generation,
            check=self._check,
        )
        try:
            _sync_first(syncer, target, existed=existed)
        except BaseException:
            syncer.close()
            if not existed:
                _remove(target.path)
            raise
        return syncer

    def _check(self) -> None:
        """Raise what is wrong with the primary, or with the token for it."""
        self._primary.run_reads([_NOTHING])

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
        """Fetch what the primary has committed; raises as `Syncer.sync`."""
        try:
            self._syncer.sync()
        except Unsyncable as failed:
            _fetch_anew(self._syncer, failed)
            # What is open is the old file still.
            before, self._local = self._local, self._read()
            before.close()
        self._stale = False

    def interrupt(self) -> None:
        """Refuse, as its library does; see `Session`."""
        self._local.interrupt()

    def close(self) -> None:
        """Close the replica and the connection to the primary."""
        try:
            # After an error of the constructor they may be missing.
            for part in (getattr(self, "_local", None), getattr(self, "_syncer", None)):
                if part is not None:
                    part.close()
        finally:
            self._primary.close()

    def discard(self) -> None:
        """Let go without waiting for the primary; see `Session`."""
        self._local.close()
        self._syncer.close()
        self._primary.discard()

    def abandon(self) -> None:
        """Leave the library and the sockets to the parent; see `Session`."""
        self._local.abandon()
        self._syncer.abandon()
        self._primary.abandon()


class _Reader(Sqlite3Session):
    """The file of a replica, which another process writes.

    Opened as ``mode=ro``: the libraries count the frames of the WAL, and a connection that may
    write would fold it into the file when it is the last to close.
    """

    def _open_file(self, target: Target) -> None:
        assert target.path is not None  # noqa: S101 - the caller has a file
        self._lease = files.use(target, self.driver, create=False)
        self._raw = self._connect(f"file:{quote(os.fsencode(target.path))}?mode=ro")


def _reader(target: Target, *, timeout: float) -> LocalSession:
    reader = _Reader(target, timeout=timeout, read_only=True)
    if not reader.needs_libsql():
        return reader
    reader.close()
    return LibsqlSession(target, timeout=timeout, read_only=True)


def _check_file(target: Target) -> None:
    """Refuse to sync over a database that never was a replica."""
    assert target.path is not None  # noqa: S101 - the caller has a file
    files.check_parent(target)
    name = target.path.name
    marks = [f"{name}-info", f"{name}-client_wal_index", lock_of(target.path).name]
    if not target.path.exists() or any(target.path.with_name(mark).exists() for mark in marks):
        return
    if target.path.is_dir() or target.path.stat().st_size:
        raise e.TargetError(
            f"{target} is no replica, and syncing would overwrite it",
            remedy="name a new file",
        )


def _is_of(path: Path, primary: Target) -> bool:
    """Whether a replica's file may be read as one of this primary."""
    mark = lock_of(path)
    return not mark.exists() or mark.read_text() in ("", primary.url)


def _sync_first(syncer: Syncer, target: Target, *, existed: bool) -> None:
    """Sync a file that was just opened; one that exists may go on as old as it is."""
    try:
        syncer.sync()
    except e.ConnectionLost as failed:
        if not existed:
            raise
        _logger.warning("%s is as old as its last sync: %s", target, failed.message)
    except Unsyncable as failed:
        if not existed:
            raise
        _fetch_anew(syncer, failed)


def _fetch_anew(syncer: Syncer, failed: e.Error) -> None:
    """Replace a file that cannot be synced, as after a crash."""
    syncer.fetch_anew()
    warnings.warn(f"{failed.message}; it was fetched anew", stacklevel=2)


def _remove(path: Path) -> None:
    for file in (*(path.with_name(path.name + suffix) for suffix in BESIDE), lock_of(path)):
        file.unlink(missing_ok=True)


def _generation(primary: Target) -> int | None:
    """Ask the primary: only the newer protocol has ``/info``, which tells its log's generation.

    0 for the older protocol, None when the primary cannot be reached. Raises `AuthError`.
    """
    source = primary.auth_token
    for _ in range(2 if callable(source) else 1):
        token = (source() if callable(source) else source) or ""
        headers = {"authorization": f"Bearer {token}"} if token else {}
        try:
            answer = httpx.get(
                f"{primary.url}/info", headers=headers, timeout=_PROBE_SECONDS, trust_env=False
            )
        except httpx.RequestError:
            return None
        if answer.status_code not in _REFUSALS:
            return _told(answer)
    raise failures.from_sync("401", str(primary))


def _told(answer: httpx.Response) -> int:
    """Return the generation in an answer, 0 when it is none of the newer protocol's."""
    if not answer.is_success:
        return 0
    try:
        return int(answer.json()["current_generation"])
    except (ValueError, LookupError, TypeError):
        return 0
