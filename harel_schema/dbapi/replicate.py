"""The process that keeps a replica's file in step with its primary; `syncer` starts it.

It is run by its path and imports nothing of ours. Its standard input has one line of JSON that
says what to open, then a line for each sync that is wanted; each is answered by a line of JSON with
the error, or null. It ends when its input does.
"""

from __future__ import annotations

import fcntl
import importlib
import json
import os
import select
import sys
from contextlib import closing, suppress
from typing import Any
from urllib.parse import quote

LOCKED = "locked"
BESIDE = ("", "-wal", "-shm", "-info", "-client_wal_index")
"""What follows the name of a replica's file in the names of the files that belong to it."""


def main() -> None:
    """Answer until the input ends."""
    # The library writes to stdout when it pleases.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)

    def answer(error: str | None) -> None:
        answers.write(json.dumps(error) + "\n")
        answers.flush()

    fcntl.fcntl(0, fcntl.F_SETOWN, os.getpid())
    # Unbuffered: what is left in the pipe must show in `select`.
    lines = os.fdopen(0, "rb", buffering=0)
    given = json.loads(lines.readline())
    # Kept open, and so kept locked, to the end.
    lock = open(given["lock"], "a+")  # noqa: SIM115, PTH123
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        answer(LOCKED)
        return
    lock.seek(0)
    if fault := _prepare(given, lock.read()):
        answer(fault)
        return
    lock.truncate(0)
    lock.write(given["options"]["sync_url"])
    lock.flush()
    sys.path[:] = given["path"]
    connection = None
    wanted = b"open"
    while wanted:
        try:
            with _ending_with_input():
                if connection is None:
                    library = importlib.import_module(given["library"])
                    connection = library.connect(given["file"], **given["options"])
                connection.sync()
            answer(None)
        except BaseException as error:  # noqa: BLE001 - the library panics with a class of its own
            answer(str(error) or type(error).__name__)
        wanted = lines.readline()


def _prepare(given: dict[str, Any], primary: str) -> str | None:
    """Take away what is to be fetched anew; return why the file must be, if it must.

    `primary` is the URL that it was synced with so far.
    """
    file, newer = given["file"], given["library"] == "libsql"
    generation = given["generation"]
    # The older protocol names the log that it serves. In the newer one a server sends the frames
    # that are asked for, and the library adds them to whatever the file has.
    foreign = newer and generation is not None and primary != given["options"]["sync_url"]
    if given["anew"] or foreign or not os.path.exists(file):  # noqa: PTH110 - starts faster
        for suffix in BESIDE:
            with suppress(FileNotFoundError):
                os.unlink(file + suffix)  # noqa: PTH108
        return None
    if not newer:
        return None
    try:
        with open(f"{file}-info", "rb") as info:  # noqa: PTH123
            known = json.load(info)
        own, frames = known["generation"], known["durable_frame_num"]
    except (OSError, ValueError, LookupError, TypeError):
        return "its -info file is damaged"
    if generation is not None and own > generation:
        return "the server's log has begun anew"
    if frames > _frames(file):
        return "the end of its log is lost, as after a power cut"
    return None


def _frames(file: str) -> int:
    """Return how many frames of the WAL are whole."""
    import sqlite3  # noqa: PLC0415 - slow to import

    if not os.path.exists(f"{file}-wal"):  # noqa: PTH110
        return 0
    # Read-only, it does not fold the WAL into the file; reading brings the WAL's index up to date.
    connection = sqlite3.connect(f"file:{quote(os.fsencode(file))}?mode=ro", uri=True)
    try:
        with closing(connection), open(f"{file}-shm", "rb") as index:  # noqa: PTH123
            connection.execute("PRAGMA schema_version").fetchall()
            return int.from_bytes(index.read(20)[16:], sys.byteorder)
    except sqlite3.Error:
        return 0


class _ending_with_input:  # noqa: N801
    """End the process (SIGIO) when the input ends.

    The library holds the GIL for as long as the primary is silent, so no thread could do it.
    """

    def __enter__(self) -> None:
        self._set(os.O_ASYNC)
        if select.select([0], [], [], 0)[0]:
            sys.exit()

    def __exit__(self, *_: object) -> None:
        self._set(0)

    def _set(self, flag: int) -> None:
        flags = fcntl.fcntl(0, fcntl.F_GETFL)
        fcntl.fcntl(0, fcntl.F_SETFL, flags & ~os.O_ASYNC | flag)


if __name__ == "__main__":
    main()
