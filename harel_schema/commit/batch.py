"""Units as one Hrana batch: a whole transaction, with its conditions, in one request."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from harel_schema.commit.unit import Effect, Outcome
from harel_schema.errors import DatabaseError, IntegrityError, ServerError, TransactionLost
from harel_schema.hrana import protocol as hrana

if TYPE_CHECKING:
    from collections.abc import Sequence

    from harel_schema.commit.unit import Row, Statement, Unit

__all__ = ["NotCommitted", "Plan", "answers", "questions"]

_IN_TRANSACTION = hrana.Not(hrana.IsAutocommit())


def questions(statements: Sequence[Statement]) -> hrana.Batch:
    """Return a batch of reads on one snapshot, which the primary answers.

    With a savepoint around them a replica server does not read its own file, which may lag.
    """
    steps = [("SAVEPOINT question", ()), *statements, ("RELEASE question", ())]
    return hrana.Batch([hrana.Step(hrana.Statement(sql, args)) for sql, args in steps])


def answers(answer: hrana.BatchResult) -> list[Sequence[Row]]:
    """Return the rows of each of the `questions`; raise the error of one that failed."""
    return [_rows(answer, step) for step in range(1, len(answer.results) - 1)]


def _rows(answer: hrana.BatchResult, step: int) -> Sequence[Row]:
    result = answer.results[step]
    if result is None:
        raise answer.errors[step] or DatabaseError("the server skipped a read without an error")
    return result.rows


class NotCommitted(Exception):
    """The server answered, and the transaction was not committed: no unit was applied.

    `error` is why; `at` is the unit that ended the transaction, None when none is to blame.
    """

    def __init__(self, error: Exception, at: int | None = None) -> None:
        super().__init__(str(error))
        self.error = error
        self.at = at


@dataclass(slots=True)
class _Place:
    """Where a unit stands in the batch: the steps of its statements, and those around them."""

    statements: list[int]
    done: int
    guard: int | None = None
    found: int | None = None
    undone: int | None = None

    @property
    def steps(self) -> range:
        return range(self.statements[0], self.done + 1)


class Plan:
    """The batch of some units, and how to read what the server answers to it.

    Every step of a unit depends on the one before it, so a failure skips the rest of its unit.
    A unit alone is then rolled back. Several stand in a savepoint each, which undoes the one
    that failed, and COMMIT depends on each of them being wholly in or wholly out.
    """

    def __init__(self, units: Sequence[Unit[Any]]) -> None:
        self._units = units
        self._steps: list[hrana.Step] = []
        self._add("BEGIN IMMEDIATE")
        if len(units) == 1:
            self._places = [self._unit(units[0], hrana.Ok(0))]
            whole: hrana.Condition = hrana.Ok(self._places[0].done)
        else:
            self._places = [self._savepoint(unit) for unit in units]
            whole = hrana.And([_IN_TRANSACTION, *map(_whole, self._places)])
        self._commit = self._add("COMMIT", condition=whole)
        self._add("ROLLBACK", condition=_IN_TRANSACTION)
        self.batch = hrana.Batch(tuple(self._steps))

    def _add(
        self, sql: str, args: Sequence[object] = (), *, condition: hrana.Condition | None = None
    ) -> int:
        self._steps.append(hrana.Step(hrana.Statement(sql, args), condition))
        return len(self._steps) - 1

    def _unit(self, unit: Unit[Any], start: hrana.Condition) -> _Place:
        condition, check, guard = start, unit.check, None
        steps = []
        for sql, args in unit.statements:
            last = self._add(sql, args, condition=condition)
            steps.append(last)
            if check is not None and guard is None:
                guard = last = self._add(check.guard, condition=hrana.Ok(last))
            condition = hrana.Ok(last)
        place = _Place(steps, last, guard)
        if check is not None and guard is not None:
            place.found = self._add(*check.found, condition=hrana.Err(guard))
        return place

    def _savepoint(self, unit: Unit[Any]) -> _Place:
        begun = self._add("SAVEPOINT unit", condition=hrana.And([hrana.Ok(0), _IN_TRANSACTION]))
        place = self._unit(unit, hrana.Ok(begun))
        place.done = self._add("RELEASE unit", condition=hrana.Ok(place.done))
        failed = hrana.And([hrana.Ok(begun), hrana.Not(hrana.Ok(place.done)), _IN_TRANSACTION])
        undo = self._add("ROLLBACK TO unit", condition=failed)
        place.undone = self._add("RELEASE unit", condition=hrana.Ok(undo))
        return place

    def read(self, answer: hrana.BatchResult) -> list[Outcome]:
        """Return one outcome a unit.

        Raises `NotCommitted` when the transaction failed for another reason than a lost version
        check or an error of the only unit in it.
        """
        if answer.results[self._commit] is None:
            self._check_own_failure(answer)
        pairs = zip(self._units, self._places, strict=True)
        return [_outcome(unit, place, answer) for unit, place in pairs]

    def _check_own_failure(self, answer: hrana.BatchResult) -> None:
        """Pass when the unit that is alone failed by itself; raise `NotCommitted` otherwise."""
        for edge in (0, self._commit):
            if error := answer.errors[edge]:
                raise NotCommitted(error)
        for at, place in enumerate(self._places):
            whole = any(
                step is not None and answer.results[step] is not None
                for step in (place.done, place.undone)
            )
            blame = _first_error(place, answer)
            if not whole and blame is not None:
                if len(self._places) == 1 and not isinstance(blame, TransactionLost):
                    return
                raise NotCommitted(blame, at)
        raise NotCommitted(ServerError("the server skipped the commit without an error"))


def _whole(place: _Place) -> hrana.Condition:
    ends = [step for step in (place.done, place.undone) if step is not None]
    return hrana.Or([hrana.Ok(step) for step in ends])


def _first_error(place: _Place, answer: hrana.BatchResult) -> Exception | None:
    return next((error for step in place.steps if (error := answer.errors[step])), None)


def _outcome(unit: Unit[Any], place: _Place, answer: hrana.BatchResult) -> Outcome:
    if answer.results[place.done] is not None:
        return unit.succeed([_effect(answer.results[step]) for step in place.statements])
    error = _first_error(place, answer)
    if place.guard is not None and place.found is not None:
        found = answer.results[place.found]
        if found is not None and isinstance(answer.errors[place.guard], IntegrityError):
            return unit.conflict(found.rows)
    return Outcome(error=error or ServerError("the server skipped the change without an error"))


def _effect(result: hrana.StatementResult | None) -> Effect:
    if result is None:
        raise NotCommitted(ServerError("the server gave no result for a statement"))
    return Effect(result.affected_row_count, result.last_insert_rowid, result.rows)
