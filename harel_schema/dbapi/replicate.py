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

LOCKED = "locked"


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
    lock = open(given["lock"], "w")  # noqa: SIM115, PTH123
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        answer(LOCKED)
        return
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
