"""A unit: the statements of one change, which all happen or none does."""

from __future__ import annotations

from collections.abc import Callable, Sequence  # noqa: TC003 - dataclasses read it
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, Protocol, TypeAlias, TypeVar

from harel_schema.dbapi.session import Effect

__all__ = [
    "AlwaysSafe",
    "Check",
    "Effect",
    "Outcome",
    "Recovery",
    "Statement",
    "Unit",
    "Unprovable",
    "nothing",
    "settle",
]

T = TypeVar("T")

Row: TypeAlias = tuple[Any, ...]
Statement: TypeAlias = tuple[str, tuple[object, ...]]
"""SQL text and the values of its ``?``."""


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
    """One change: its statements in order, and how to read what they did.

    `result` makes the caller's value of the effects, one a statement. `durable` is called once,
    after the COMMIT that made the unit durable and before its caller is told.
    """

    statements: Sequence[Statement]
    result: Callable[[Sequence[Effect]], T]
    check: Check | None = None
    recovery: Recovery = _ALWAYS_SAFE
    durable: Callable[[], None] | None = None
    size: int = 0
    """About how many bytes its values take."""

    def succeed(self, effects: Sequence[Effect]) -> Outcome:
        """Return the outcome of effects that are about to be durable."""
        return Outcome(self.result(effects))

    def conflict(self, rows: Sequence[Row]) -> Outcome:
        """Return the outcome of a lost version check; `rows` are those of `check.found`."""
        if self.check is None:
            raise TypeError("a unit without a version check cannot conflict")
        return Outcome(error=self.check.conflict(rows[0][0] if rows else None))


def settle(units: Sequence[Unit[Any]], outcomes: Sequence[Outcome]) -> None:
    """Tell each unit that succeeded that it is durable."""
    for unit, outcome in zip(units, outcomes, strict=True):
        if outcome.error is None and unit.durable is not None:
            unit.durable()
