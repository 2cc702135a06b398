"""Syncing a replica's file, in a process of its own.

The libraries that speak the sync protocols hold the GIL for as long as the primary is silent: in
our process that would stop every thread and the event loop, for ever if the primary hangs. And
SQLite's locks of two libraries in one process cancel each other, those of two processes do not.
So the library works in `replicate`, and here the file is only read.
"""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import time
from typing import TYPE_CHECKING

from harel_schema import errors as e
from harel_schema.dbapi import failures, replicate
from harel_schema.dbapi.replicate import LOCKED

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from harel_schema.target import Target

__all__ = ["Syncer", "Unsyncable", "lock_of"]

_TICK = 0.5


class Syncer:
    """The process that syncs the file of the replica `target` with the database `primary`.

    `library` speaks the primary's sync protocol. `interval` is how often it syncs by itself, in
    seconds, None for never. A sync that makes no progress for `silence` seconds is given up.
    `generation` is that of the primary's log now, None when it is not known. `check` raises what is
    wrong with the primary. One thread at a time may use it.
    """

    def __init__(  # noqa: PLR0913 - by keyword
        self,
        library: str,
        target: Target,
        primary: Target,
        *,
        interval: float | None,
        silence: float,
        generation: int | None,
        check: Callable[[], object],
    ) -> None:
        assert target.path is not None  # noqa: S101 - the caller has a file
        self._library = library
        self._target = target
        self._path = target.path
        self._primary = primary
        self._interval = interval
        self._silence = silence
        self._generation = generation
        self._check = check
        self._process: subprocess.Popen[bytes] | None = None
        self._anew = False

    @property
    def pid(self) -> int | None:
        """The process, None when it has to be started."""
        return None if self._process is None else self._process.pid

    def sync(self) -> None:
        """Fetch what the primary has committed.

        Raises what is wrong with the primary, `RequestTimeout` after the silence, `InterfaceError`
        when another process syncs the file, and `Unsyncable`.
        """
        try:
            self._sync()
        except e.RequestTimeout:
            raise
        except e.ConnectionLost:
            # The library says the same of a server that is gone and a token that is refused.
            self._check()
            # It keeps the token that it was opened with; a new process asks for a new one.
            self.close()
            try:
                self._sync()
            except e.ConnectionLost as failed:
                raise Unsyncable(
                    f"the replica {self._target} can no longer be synced: {failed.message}",
                    remedy="open it again, and it is fetched anew",
                ) from failed

    def fetch_anew(self) -> None:
        """Replace the file by what the primary has; raises as `sync`."""
        self.close()
        self._anew = True
        try:
            self.sync()
        finally:
            self._anew = False

    def close(self) -> None:
        """End the process."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.communicate()

    def abandon(self) -> None:
        """Leave the process to the parent; called in a forked child."""
        if self._process is not None:
            for pipe in (self._process.stdin, self._process.stdout):
                if pipe is not None:
                    os.close(pipe.fileno())
            self._process.returncode = 0
            self._process = None

    def _sync(self) -> None:
        try:
            answer = self._ask_again() if self._process else self._ask(self._start())
        except BaseException:
            # Whoever asks next must not get the answer to this.
            self.close()
            raise
        if answer == LOCKED:
            self.close()
            raise e.InterfaceError(
                f"another process or store syncs the replica {self._target}",
                remedy="give each of them a file of its own",
            )
        if answer is not None:
            raise failures.from_sync(answer, str(self._primary))
        # From now on the file may be ahead of it.
        self._generation = None

    def _ask_again(self) -> str | None:
        """Ask the process that runs; a new one when somebody has ended it."""
        try:
            return self._ask(b"sync")
        except _Ended:
            self.close()
            return self._ask(self._start())

    def _start(self) -> bytes:
        """Start the process; return what it must be told first."""
        token = self._primary.auth_token
        given = {
            "library": self._library,
            "file": str(self._path),
            "lock": str(lock_of(self._path)),
            "anew": self._anew,
            "generation": self._generation,
            "path": sys.path,
            "options": {
                "sync_url": self._primary.url,
                "sync_interval": self._interval,
                "auth_token": (token() if callable(token) else token) or "",
                "isolation_level": None,
            },
        }
        self._process = subprocess.Popen(  # noqa: S603 - our own script
            [sys.executable, "-I", "-S", replicate.__file__],
            bufsize=0,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "RUST_LOG": "off"},
            start_new_session=True,
        )
        return json.dumps(given).encode()

    def _ask(self, line: bytes) -> str | None:
        """Return the error that the process answers with, None when it is done."""
        process = self._process
        assert process is not None  # noqa: S101 - for the type checker: just started
        assert process.stdin is not None  # noqa: S101
        assert process.stdout is not None  # noqa: S101
        try:
            process.stdin.write(line + b"\n")
        except BrokenPipeError:
            raise _Ended(self._primary) from None
        answer = b""
        while not answer.endswith(b"\n"):
            self._wait(process.stdout.fileno())
            part = os.read(process.stdout.fileno(), 65536)
            if not part:
                raise _Ended(self._primary)
            answer += part
        error: str | None = json.loads(answer)
        return error

    def _wait(self, answers: int) -> None:
        """Return when there is an answer; raise `RequestTimeout` when nothing happens."""
        seen, since = self._sizes(), time.monotonic()
        while not select.select([answers], [], [], _TICK)[0]:
            sizes, now = self._sizes(), time.monotonic()
            if sizes != seen:
                seen, since = sizes, now
            elif now - since > self._silence:
                raise e.RequestTimeout(
                    f"{self._primary} did not answer a sync in time",
                    sent=False,
                    remedy="check the server; reads of a replica go on without it",
                )

    def _sizes(self) -> list[int]:
        """Return the sizes of the files that a sync writes: they grow while it gets on."""
        files = (self._path, self._path.with_name(f"{self._path.name}-wal"))
        return [file.stat().st_size if file.exists() else 0 for file in files]


class Unsyncable(e.OperationalError):
    """The primary is well, and the file cannot be brought to where it is."""


class _Ended(e.ConnectionLost):
    """The process ended without an answer."""

    def __init__(self, primary: Target) -> None:
        super().__init__(
            f"the process that syncs with {primary} has ended",
            sent=False,
            remedy="try again; if it ends again, delete the replica's file",
        )


def lock_of(path: Path) -> Path:
    """Return the file that is locked by who syncs the replica `path`, and marks it as one."""
    return path.with_name(f"{path.name}-sync")
