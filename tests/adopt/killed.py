"""Adopt copies of a file in processes that are killed, each before another statement.

``python killed.py FILE FOLDER``: the Nth copy is left in FOLDER as the Nth process left it. One
process dies of ``os._exit``, the next is killed from outside, and so on, until one that has
committed the adoption.
"""

from __future__ import annotations

import os
import shutil
import signal
import sqlite3
import sys
from itertools import count
from pathlib import Path
from typing import Any

from harel_schema import migrate

EXIT, KILL, DONE = 7, -signal.SIGKILL, 0


def main(source: Path, folder: Path) -> None:
    """Leave a copy for each statement before which a process can die."""
    for number in count():
        copy = folder / f"{number}.db"
        shutil.copy(source, copy)
        if run(copy, number) == DONE:
            return


def run(copy: Path, number: int) -> int:
    """Adopt `copy` in a process that dies before its statement `number`; return how it ended."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        die_before(number, writing)
        migrate.adopt(copy)
        os._exit(DONE)
    os.close(writing)
    if os.read(reading, 1):
        os.kill(child, signal.SIGKILL)
    os.close(reading)
    _, status = os.waitpid(child, 0)
    ended = os.waitstatus_to_exitcode(status)
    if ended not in (EXIT, KILL, DONE):
        raise RuntimeError(f"process {number} ended with {ended}")
    return ended


def die_before(number: int, writing: int) -> None:
    """Let this process die before the change `number` of what begins with BEGIN IMMEDIATE."""
    connect = sqlite3.connect
    seen: list[str] = []

    def note(statement: str) -> None:
        # "--" is what SQLite runs within a statement.
        if statement.startswith(("SELECT", "--")) or not (seen or statement == "BEGIN IMMEDIATE"):
            return
        if "COMMIT" in seen:
            os._exit(DONE)
        seen.append(statement)
        if len(seen) <= number:
            return
        if number % 2:
            os._exit(EXIT)
        os.write(writing, b"!")
        signal.pause()

    def traced(*arguments: Any, **options: Any) -> sqlite3.Connection:
        connection = connect(*arguments, **options)
        if ":memory:" not in str(arguments[0]):
            connection.set_trace_callback(note)
        return connection

    sqlite3.connect = traced


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
