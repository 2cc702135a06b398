"""Committing units to a server, whatever becomes of the answer.

The functions are generators without I/O. They yield `Send`, `Ask` or `Wait`, are given the
answer (or have the error thrown in), and return one outcome a unit. `store` and `aio` carry the
actions out.

When the answer to a commit is lost it is not known whether the units were applied, so they
are read back (`Unit.recovery`). One that was applied succeeds; one that was not is sent once
more, which its version check makes safe even if the first request is still on its way; anything
else is a conflict. Only when the read-back fails too, for as long as a lock is waited for, does
the caller get the error.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Sequence
from typing import Any, NamedTuple, TypeAlias, TypeVar

from harel_schema.commit.batch import NotCommitted, Plan, answers, questions
from harel_schema.commit.unit import Outcome, Row, Unit, settle
from harel_schema.errors import (
    BusyError,
    ConnectionLost,
    DataError,
    Error,
    ProgrammingError,
    RequestTimeout,
    ServerError,
    StoreConflict,
    TransactionLost,
)
from harel_schema.hrana import protocol as hrana

__all__ = ["Action", "Ask", "Flow", "Send", "Wait", "commit"]

T = TypeVar("T")

_FIRST_WAIT = 0.002
_LONGEST_WAIT = 0.1
# With these a server says that it did not even try; anything else may come from a gateway.
_REFUSALS = range(400, 500)


class Send(NamedTuple):
    """Send a batch that writes; it must not be repeated by whoever sends it."""

    batch: hrana.Batch


class Ask(NamedTuple):
    """Send a batch that only reads; it may be repeated."""

    batch: hrana.Batch


class Wait(NamedTuple):
    """Sleep for `seconds`."""

    seconds: float


Action: TypeAlias = Send | Ask | Wait
Flow: TypeAlias = Generator[Action, hrana.BatchResult, T]


def commit(
    units: Sequence[Unit[Any]], timeout: float, clock: Callable[[], float] = time.monotonic
) -> Flow[list[Outcome]]:
    """Commit `units` in one transaction and return one outcome a unit.

    A lock that another writer holds, and a transaction that the server took away, are tried
    again for `timeout` seconds. Raises what fails all of them; then none was applied.
    """
    try:
        outcomes = yield from _transact(units, clock() + timeout, clock)
    except (DataError, ProgrammingError):
        if len(units) == 1:
            raise
        return (yield from _apart(units, timeout, clock))
    except Error as exc:
        if not _unknown(exc):
            raise
        outcomes = yield from _resolve(units, exc, clock() + timeout, clock)
    settle(units, outcomes)
    return outcomes


def _apart(
    units: Sequence[Unit[Any]], timeout: float, clock: Callable[[], float]
) -> Flow[list[Outcome]]:
    """Commit one unit after the other: one of them cannot even be sent, and fails alone so."""
    outcomes = []
    for unit in units:
        try:
            outcomes += yield from commit([unit], timeout, clock)
        except Error as exc:
            outcomes.append(Outcome(error=exc))
    return outcomes


def _transact(
    units: Sequence[Unit[Any]], deadline: float, clock: Callable[[], float]
) -> Flow[list[Outcome]]:
    plan, wait = Plan(units), _FIRST_WAIT
    while True:
        answer = yield Send(plan.batch)
        try:
            return plan.read(answer)
        except NotCommitted as refused:
            error = refused.error
            passing = isinstance(error, BusyError | TransactionLost)
            if not passing and refused.at is not None:
                return (yield from _without(units, refused.at, error, deadline, clock))
            if not passing or clock() + wait > deadline:
                raise error from None
        yield Wait(wait)
        wait = min(wait * 2, _LONGEST_WAIT)


def _without(
    units: Sequence[Unit[Any]],
    at: int,
    error: Exception,
    deadline: float,
    clock: Callable[[], float],
) -> Flow[list[Outcome]]:
    """Commit the others: the whole transaction died of the unit `at` (RAISE(ROLLBACK))."""
    others = [unit for each, unit in enumerate(units) if each != at]
    outcomes = yield from _transact(others, deadline, clock)
    outcomes.insert(at, Outcome(error=error))
    return outcomes


def _unknown(error: Error) -> bool:
    """Whether the units may have been applied although `error` came back."""
    if isinstance(error, ConnectionLost):
        return error.sent
    if isinstance(error, ServerError):
        return error.status not in _REFUSALS
    return False


def _resolve(
    units: Sequence[Unit[Any]], lost: Error, deadline: float, clock: Callable[[], float]
) -> Flow[list[Outcome]]:
    outcomes = yield from _read_back(units, lost, deadline, clock)
    again = [at for at, outcome in enumerate(outcomes) if outcome is None]
    if again:
        resent = [units[at] for at in again]
        try:
            repeated = yield from _transact(resent, deadline, clock)
        except Error as exc:
            repeated = [Outcome(error=exc)] * len(resent)
        # The first request may have arrived after the read-back, before the second one.
        late = yield from _reconsider(resent, repeated, lost, deadline, clock)
        for at, outcome in zip(again, late, strict=True):
            outcomes[at] = outcome
    return [outcome if outcome is not None else Outcome(error=lost) for outcome in outcomes]


def _reconsider(
    units: Sequence[Unit[Any]],
    outcomes: Sequence[Outcome],
    lost: Error,
    deadline: float,
    clock: Callable[[], float],
) -> Flow[list[Outcome]]:
    doubtful = [
        at
        for at, outcome in enumerate(outcomes)
        if isinstance(outcome.error, StoreConflict | ConnectionLost | ServerError)
    ]
    decided = list(outcomes)
    if doubtful:
        again = [units[at] for at in doubtful]
        proofs = yield from _read_back(again, lost, deadline, clock)
        for at, proof in zip(doubtful, proofs, strict=True):
            if proof is not None:
                decided[at] = proof
    return decided


def _read_back(
    units: Sequence[Unit[Any]], lost: Error, deadline: float, clock: Callable[[], float]
) -> Flow[list[Outcome | None]]:
    """Return what was proved of each unit; None for one that was not applied."""
    asked = [statement for unit in units for statement in unit.recovery.questions]
    found: list[Sequence[Row]] = []
    if asked:
        found = answers((yield from _insist(questions(asked), lost, deadline, clock)))
    proofs = []
    for unit in units:
        count = len(unit.recovery.questions)
        proofs.append(unit.recovery.judge(found[:count], lost))
        found = found[count:]
    return proofs


def _insist(
    batch: hrana.Batch, lost: Error, deadline: float, clock: Callable[[], float]
) -> Flow[hrana.BatchResult]:
    """Ask until there is an answer: the server may just be starting again. Else raise `lost`."""
    wait = _FIRST_WAIT
    while True:
        try:
            return (yield Ask(batch))
        except Error as exc:
            passing = _unknown(exc) or isinstance(exc, ConnectionLost)
            if not passing or isinstance(exc, RequestTimeout) or clock() + wait > deadline:
                raise lost from exc
        yield Wait(wait)
        wait = min(wait * 2, _LONGEST_WAIT)
