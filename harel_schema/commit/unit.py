"""A unit: the statements of one change, which all happen or none does."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, Protocol, TypeAlias, TypeVar

from harel_schema.dbapi.session import Effect
from harel_schema.sql import many

__all__ = [
    "AlwaysSafe",
    "Change",
    "Check",
    "Effect",
    "Outcome",
    "Recovery",
    "Statement",
    "Unit",
    "Unprovable",
    "flat",
    "nothing",
    "settle",
]

T = TypeVar("T")

Row: TypeAlias = tuple[Any, ...]
Statement: TypeAlias = tuple[str, tuple[object, ...]]
"""SQL text and the values of its ``?``."""

Change: TypeAlias = tuple[str, Sequence[Row]]
"""The SQL text that changes one row, and the values of its ``?`` for each row."""


class Outcome(NamedTuple):
    """How a unit ended: with a value, or with the error to raise."""

    value: Any = None
    error: BaseException | None = None

    def unwrap(self) -> Any:
        """Return the value or raise the error."""
        if self.error is not None:
            raise self.error
        return self.value


class Recovery(Protocol):
    """How to learn what became of a unit whose answer was lost."""

    @property
    def questions(self) -> tuple[Statement, ...]:
        """The reads that show it."""

    def judge(self, answers: Sequence[Sequence[Row]], lost: Exception) -> Outcome | None:
        """Decide by the rows of each question; None when the unit was not applied.

        `lost` is the error that came instead of the answer.
        """


@dataclass(frozen=True, slots=True)
class AlwaysSafe:
    """The unit may be sent again: twice is the same as once."""

    questions: tuple[Statement, ...] = ()

    def judge(self, answers: Sequence[Sequence[Row]], lost: Exception) -> None:
        """Not applied, as far as anybody can tell the difference."""


_ALWAYS_SAFE = AlwaysSafe()


@dataclass(frozen=True, slots=True)
class Unprovable:
    """Nothing that is stored tells whether the unit was applied: the caller gets the error."""

    questions: tuple[Statement, ...] = ()

    def judge(self, answers: Sequence[Sequence[Row]], lost: Exception) -> Outcome:  # noqa: ARG002
        """Undecidable."""
        return Outcome(error=lost)


class Check(NamedTuple):
    """The version check: the first statement of the unit must change a row.

    `guard` is the statement that fails when the one before it changed none; `found` reads the
    version that is stored; `conflict` makes the error of it.
    """

    guard: str
    found: Statement
    conflict: Callable[[int | None], Exception]


def nothing(_effects: Sequence[Effect]) -> None:
    """Return the value of a unit that has none."""


# Not frozen, which would double the time that making one takes.
@dataclass(slots=True)
class Unit(Generic[T]):
    """What one caller wants changed: the changes in order, and how to read what they did.

    `result` makes the caller's value of the effects, one a change. `durable` is called once,
    after the COMMIT that made the unit durable and before its caller is told.

    A unit that has `together`, the text for many rows of each of its changes (see
    `Statements.together`), may share statements with other units, but not with those of the same
    `key`: the execution whose rows it changes, if any.
    """

    changes: Sequence[Change]
    result: Callable[[Sequence[Effect]], T]
    check: Check | None = None
    recovery: Recovery = _ALWAYS_SAFE
    durable: Callable[[], None] | None = None
    size: int = 0
    """About how many bytes its values take."""
    key: str | None = None
    together: Mapping[str, str] | None = None

    @property
    def statements(self) -> list[Statement]:
        """The changes as statements, one each."""
        return [
            (sql, rows[0]) if len(rows) == 1 else self._many(sql, rows)
            for sql, rows in self.changes
        ]

    def _many(self, sql: str, rows: Sequence[Row]) -> Statement:
        if self.together is None:
            raise TypeError("a change of several rows needs a text for them")
        return many(self.together[sql], len(rows[0]), len(rows)), flat(rows)

    def succeed(self, effects: Sequence[Effect]) -> Outcome:
        """Return the outcome of effects that are about to be durable."""
        return Outcome(self.result(effects))

    def conflict(self, rows: Sequence[Row]) -> Outcome:
        """Return the outcome of a lost version check; `rows` are those of `check.found`."""
        if self.check is None:
            raise TypeError("a unit without a version check cannot conflict")
        return Outcome(error=self.check.conflict(rows[0][0] if rows else None))


def flat(rows: Sequence[Row]) -> Row:
    """Return the values of all rows in one tuple."""
    return tuple([value for row in rows for value in row])


def settle(units: Sequence[Unit[Any]], outcomes: Sequence[Outcome]) -> None:
    """Tell each unit that succeeded that it is durable."""
    for unit, outcome in zip(units, outcomes, strict=True):
        if outcome.error is None and unit.durable is not None:
            unit.durable()
