"""Waiting for a lock, in Python.

The libsql libraries hold the GIL while they wait inside, so a thread waiting for a lock that
another thread of the process holds would never get it. Every driver's own timeout is 0 here.
"""

from __future__ import annotations

import logging
import random
import time
from typing import TYPE_CHECKING, TypeVar

from harel_schema.errors import BusyError
from harel_schema.target import PATIENCE

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["PATIENCE", "log", "patiently"]

log = logging.getLogger("harel_schema.waiting")

T = TypeVar("T")

# Seconds after which a wait is told of.
_TOLD = 1.0

_FIRST = 0.0005
_LONGEST = 0.01
# From this age on a waiter looks ten times as often as the newcomers.
_OLD = 0.25
_URGENT = 0.001


def patiently(action: Callable[[], T], timeout: float, busy: BusyError) -> T:
    """Repeat `action`, which was just answered with `busy`, until it gets the lock.

    Raises `BusyError` after `timeout` seconds. The sleeps grow to 10 ms, so that many waiters cost
    little, and are 1 ms again once the wait is old: SQLite keeps no queue, and a writer that
    begins again at once would otherwise beat those who have waited longest. A wait of more than
    a second is logged, once.
    """
    started = time.monotonic()
    pause, told = _FIRST, False
    message, code = busy.message, busy.code
    while True:
        left = started + timeout - time.monotonic()
        if left <= 0:
            break
        time.sleep(min(left, pause * random.uniform(0.5, 1.5)))  # noqa: S311 - jitter
        waited = timeout - left
        pause = min(pause * 2, _LONGEST) if waited < _OLD else _URGENT
        if not told and waited >= _TOLD:
            told = True
            log.info("%s; waiting for it, at most %g s", message, timeout)
        try:
            return action()
        except BusyError as error:
            if error.code == "SQLITE_BUSY_SNAPSHOT":
                raise
    raise BusyError(
        f"{message} (waited {time.monotonic() - started:.1f} s)",
        code=code,
        remedy="end the transaction of the other connection, or try again later",
    )
