"""Ctrl-C in the middle of a long statement.

Python handles a signal between two of its own instructions, and a statement of SQLite is one of
them, however many minutes it takes.
"""

from __future__ import annotations

import os
import select
import signal
import threading
import time
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from harel_schema.dbapi.connection import interrupt_all

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType

__all__ = ["interruptible", "interrupts_held"]

# Seconds. Asked again, because a statement that begins after it was asked runs on.
_AGAIN = 0.05


@contextmanager
def interrupts_held() -> Iterator[None]:
    """Keep Ctrl-C waiting until the block ends; a thread or process begun in it never gets one."""
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})


@contextmanager
def interruptible() -> Iterator[None]:
    """Let SIGINT end what SQLite does, so that `KeyboardInterrupt` comes at once.

    Does nothing outside of the main thread, or where SIGINT is ignored or somebody else's.
    """
    python = signal.default_int_handler
    main = threading.current_thread() is threading.main_thread()
    if not main or signal.getsignal(signal.SIGINT) is not python:
        yield
        return
    # A signal leaves a byte here at once. It stays until Python gets to handle the signal.
    waiting, arrived = os.pipe()
    os.set_blocking(waiting, False)
    os.set_blocking(arrived, False)
    ended = threading.Event()

    def watch() -> None:
        while select.select([waiting], [], []) and not ended.is_set():
            interrupt_all()
            time.sleep(_AGAIN)

    def handle(signum: int, frame: FrameType | None) -> None:
        with suppress(BlockingIOError):
            os.read(waiting, 4096)
        python(signum, frame)

    watcher = threading.Thread(target=watch, name="harel-schema-interrupts", daemon=True)
    # Any thread may be given a signal, and where this one holds them back it would be the watcher.
    with interrupts_held():
        watcher.start()
    signal.signal(signal.SIGINT, handle)
    before = signal.set_wakeup_fd(arrived, warn_on_full_buffer=False)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, python)
        signal.set_wakeup_fd(before)
        ended.set()
        os.write(arrived, b"\0")
        watcher.join()
        os.close(waiting)
        os.close(arrived)
