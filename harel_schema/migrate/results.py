"""What the commands of `harel_schema.migrate` return."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

__all__ = ["Current", "Migrated", "Plan", "Step"]

# Seconds. Who waits for less need not be told beforehand.
_LONG: Final = 2.0


@dataclass(frozen=True, slots=True)
class Current:
    """Where a database stands: `revision` is None before the first one or without a version row.

    `pending` holds the revisions up to `head`, in the order in which they would be run. `shape`
    is how the tables differ from the revision, a line each; None where that was not asked for.
    """

    target: str
    prefix: str
    revision: str | None
    head: str
    pending: tuple[str, ...]
    shape: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class Migrated:
    """What an upgrade, a downgrade or a stamp did.

    `applied` holds the revisions that this call ran, in order: empty when there was nothing to do
    or another process did it. `adopted` holds the revisions that were taken over and not run,
    because what they make was there already, in exactly their shape. `dropped` names the tables,
    with the number of rows that went with each, and the indexes that a downgrade dropped.
    """

    target: str
    prefix: str
    before: str | None
    after: str | None
    applied: tuple[str, ...] = ()
    adopted: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Plan:
    """What an upgrade would do: from `revision` through `pending`, as the SQL text `sql`.

    `adopted` holds the revisions that would be taken over and not run. `seconds` is roughly how
    long writers would wait for the slowest revision: 0.0 where its tables have few rows.
    """

    target: str
    prefix: str
    revision: str | None
    adopted: tuple[str, ...]
    pending: tuple[str, ...]
    sql: str
    seconds: float = 0.0

    @property
    def is_long(self) -> bool:
        """Whether it is worth telling how long writers would wait."""
        return self.seconds >= _LONG


@dataclass(frozen=True, slots=True)
class Step:
    """A revision that is about to be run; writers wait about `seconds` for it.

    It is the `number` th of `total`. `seconds` is 0.0 where its tables have few `rows`.
    """

    revision: str
    number: int
    total: int
    seconds: float
    rows: int

    @property
    def is_long(self) -> bool:
        """Whether it is worth telling how long writers wait."""
        return self.seconds >= _LONG
