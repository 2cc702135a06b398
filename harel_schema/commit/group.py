"""Group commit for threads: callers that wait at the same time share a transaction.

Whoever finds nobody at work leads: it takes what waits, runs it, and hands each its outcome. A
lone caller leads a group of its own at once. What arrives meanwhile waits, and is the next group,
led by the one who waited longest. So commits are decided in the order they came. Where several
threads commit, the leader first lets those queue up that are about to.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from time import monotonic
from typing import Any, Protocol, TypeAlias, TypeVar, cast

from harel_schema.commit.unit import Outcome, Unit

__all__ = ["MAX_BYTES", "MAX_UNITS", "Attempt", "Group", "take"]

MAX_UNITS = 128
"""Units that share a transaction at most."""

MAX_BYTES = 4 * 1024 * 1024
"""Bytes of values that share a transaction; sqld takes requests of about 32 MB."""

_QUIET_TURNS = 2


_LOOK = 0.002


class Attempt(Protocol):
    """One run of some units.

    `outcomes` holds one a unit once they are decided, even if `run` was interrupted; while it is
    None nothing was applied.
    """

    outcomes: list[Outcome] | None

    def run(self) -> list[Outcome]:
        """Commit the units; raise what fails them all."""


class _Sized(Protocol):
    @property
    def unit(self) -> Unit[Any]: ...


S = TypeVar("S", bound=_Sized)
T = TypeVar("T")


def take(waiting: deque[S]) -> list[S]:
    """Remove the next group from `waiting`: from the oldest on, as many as may share."""
    group = _next(waiting)
    for _ in group:
        waiting.popleft()
    return group


def _next(waiting: deque[S]) -> list[S]:
    group: list[S] = []
    size = 0
    for each in waiting:
        size += each.unit.size
        if group and (size > MAX_BYTES or len(group) == MAX_UNITS):
            break
        group.append(each)
    return group


class _Ticket:
    """A unit that waits for its outcome; `wake` is locked while its thread sleeps."""

    __slots__ = ("outcome", "unit", "wake")

    def __init__(self, unit: Unit[Any]) -> None:
        self.unit = unit
        self.outcome: Outcome | None = None
        self.wake: threading.Lock | None = None

    def rouse(self) -> None:
        """Wake the thread, under the mutex of the group; again does nothing."""
        if self.wake is not None and self.wake.locked():
            self.wake.release()


Prepare: TypeAlias = Callable[[Sequence[Unit[Any]]], Attempt]


class Group:
    """Group commit for threads. `prepare` makes the attempts; one runs at a time.

    An interrupt (KeyboardInterrupt, or any BaseException that is no Exception) reaches only the
    caller in whose thread it was raised. Its unit is withdrawn if it had not begun; the others
    go on with the next leader. It may come between any two lines. So each change of the queue may
    be made again (`_leave`), and a unit is always in the queue or in the group that runs.
    """

    def __init__(self, prepare: Prepare) -> None:
        self._prepare = prepare
        self._mutex = threading.Lock()
        self._waiting: deque[_Ticket] = deque()
        self._leader: _Ticket | None = None
        self._running: tuple[list[_Ticket], Attempt] | None = None
        self._last_leader = threading.get_ident()
        self._shared = False

    def submit(self, unit: Unit[T]) -> T:
        """Commit `unit`, alone or with others; return its value or raise its error."""
        ticket = _Ticket(unit)
        try:
            sleep = self._enter(ticket)
            if sleep is not None:
                sleep.acquire()
            if ticket.outcome is None:
                self._lead(ticket)
        except BaseException:
            self._leave(ticket)
            raise
        return cast("Outcome", ticket.outcome).unwrap()  # type: ignore[no-any-return]

    def finish(self, timeout: float) -> None:
        """Wait until nothing is being committed, for at most `timeout` seconds."""
        deadline, never = monotonic() + timeout, threading.Event()
        while self._leader is not None and monotonic() < deadline:
            never.wait(_LOOK)

    def _enter(self, ticket: _Ticket) -> threading.Lock | None:
        """Queue up; return the lock to sleep on, or None when the ticket leads."""
        with self._mutex:
            self._waiting.append(ticket)
            if self._leader is None:
                self._leader = ticket
                return None
            ticket.wake = wake = threading.Lock()
            wake.acquire()
            return wake

    def _gather(self) -> None:
        """Let other threads queue up, where there are any; a lone thread goes on at once.

        The libsql libraries hold the GIL while they commit, so that whoever wants to commit too
        cannot even say so. Every turn lets another thread run; two turns in which nobody came are
        the end.
        """
        thread = threading.get_ident()
        if thread == self._last_leader and not self._shared:
            return
        self._last_leader = thread
        seen = quiet = 0
        while quiet < _QUIET_TURNS and seen < MAX_UNITS:
            time.sleep(0)
            found = len(self._waiting)
            quiet = 0 if found > seen else quiet + 1
            seen = found

    def _lead(self, ticket: _Ticket) -> None:
        self._gather()
        with self._mutex:
            group = _next(self._waiting)
            self._shared = len(group) > 1
            attempt = self._prepare([each.unit for each in group])
            self._running = (group, attempt)
            for _ in group:
                self._waiting.popleft()
        try:
            attempt.run()
        except Exception as exc:  # noqa: BLE001 - it is raised in every caller's thread
            attempt.outcomes = [Outcome(error=exc)] * len(group)
        finally:
            self._finish(ticket)

    def _finish(self, leader: _Ticket) -> None:
        """Hand out what is decided, put back what never began, and let the next one lead."""
        with self._mutex:
            group, attempt = self._running or ([], None)
            if attempt is not None and attempt.outcomes is not None:
                for each, outcome in zip(group, attempt.outcomes, strict=True):
                    each.outcome = outcome
                    each.rouse()
            else:
                back = [each for each in group if each is not leader and each not in self._waiting]
                self._waiting.extendleft(reversed(back))
            self._running = None
            self._hand_over()

    def _hand_over(self) -> None:
        self._leader = self._waiting[0] if self._waiting else None
        if self._leader is not None:
            self._leader.rouse()

    def _leave(self, ticket: _Ticket) -> None:
        """Withdraw an interrupted caller, who may have been the leader."""
        if self._leader is ticket and self._running is not None:
            self._finish(ticket)
        with self._mutex:
            if ticket in self._waiting:
                self._waiting.remove(ticket)
            if self._leader is ticket:
                self._hand_over()
            elif self._leader is not None:
                # It may have been interrupted in handing over.
                self._leader.rouse()
