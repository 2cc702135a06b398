"""Run a migration in a process that stops at a chosen statement of its transactions."""

from __future__ import annotations

import os
import signal
import sys
import warnings
from typing import TYPE_CHECKING, Any

from harel_schema.dbapi.local import LocalSession
from harel_schema.dbapi.remote import RemoteSession
from harel_schema.dbapi.statements import Kind

if TYPE_CHECKING:
    from collections.abc import Callable

CHANGES = {Kind.BEGIN, Kind.WRITE, Kind.SCHEMA, Kind.COMMIT}
DIED, ENDED = 7, 0


def at_statement(number: int, stop: Callable[[], None], *, after: bool = False) -> list[int]:
    """Call `stop` before (or after) the change `number` of this process; return the count so far.

    BEGIN and COMMIT count, reads do not.
    """
    seen = [0]

    def hook(session: type[Any]) -> None:
        run = session.run

        def counted(self: Any, statement: Any, values: Any, begin: Any) -> Any:
            mine = statement.kind in CHANGES and seen[0] == number
            seen[0] += statement.kind in CHANGES
            if mine and not after:
                stop()
            result = run(self, statement, values, begin)
            if mine and after:
                stop()
            return result

        session.run = counted

    hook(LocalSession)
    hook(RemoteSession)
    return seen


def die() -> None:
    """End this process at once."""
    os._exit(DIED)


def forked(work: Callable[[], object]) -> int:
    """Do `work` in a forked process, and return how that ended."""
    _, status = os.waitpid(_started(work), 0)
    return os.waitstatus_to_exitcode(status)


def _started(work: Callable[[], object]) -> int:
    with warnings.catch_warnings():
        # The threads of whoever runs the tests take no part in a migration.
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child == 0:
        try:
            work()
        except BaseException as error:  # noqa: BLE001 - the parent is told by the exit code
            sys.stderr.write(f"{error!r}\n")
            os._exit(1)
        os._exit(ENDED)
    return child


def dies(work: Callable[[], object], number: int, *, after: bool) -> bool:
    """Do `work` in a process that dies at its change `number`; tell whether it came that far."""

    def until_then() -> None:
        at_statement(number, die, after=after)
        work()

    ended = forked(until_then)
    if ended not in (DIED, ENDED):
        raise RuntimeError(f"the process that was to die at statement {number} ended with {ended}")
    return ended == DIED


def stopped(work: Callable[[], object], number: int) -> int:
    """Start `work` in a process that is stopped (SIGSTOP) before its change; return its id."""

    def until_then() -> None:
        at_statement(number, lambda: os.kill(os.getpid(), signal.SIGSTOP))
        work()

    child = _started(until_then)
    _, status = os.waitpid(child, os.WUNTRACED)
    if not os.WIFSTOPPED(status):
        raise RuntimeError(f"the process ended with {os.waitstatus_to_exitcode(status)}")
    return child
