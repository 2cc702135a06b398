"""A diagnosis as data: what was found, and how large the tables are."""

from __future__ import annotations

from dataclasses import dataclass

from pydantic import BaseModel, ConfigDict, Field

from harel_schema import drift  # noqa: TC001 - pydantic reads it at run time
from harel_schema.doctor.kinds import Kind, Severity  # noqa: TC001
from harel_schema.models import DEFAULT_TRACE_MAX
from harel_schema.names import listed, one_line

__all__ = ["NAMED", "Diagnosis", "Figures", "Finding", "Thresholds"]

NAMED = 3
"""How many examples a finding has at most."""


@dataclass(frozen=True, slots=True)
class Thresholds:
    """From when on something is too old, too long or too many.

    `age` is in seconds, for timers, events and children that wait. `queue` is a number of rows
    of the outbox, and of the spawns. `trace` is the number of steps that the workers keep of an
    execution (a store's `trace_max`), 0 for all.
    """

    age: float = 86_400.0
    queue: int = 10_000
    trace: int = DEFAULT_TRACE_MAX


class Finding(BaseModel):
    """One thing that is wrong, however often; `str()` is its line.

    `count` is the number of rows that it is about (of differences, or lines of SQLite's, where
    it is about no rows), up to three of which `examples` names. `remedy` is an SQL statement,
    which ends in a semicolon, or says what else helps.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: Kind | drift.Kind
    severity: Severity
    table: str | None
    count: int
    examples: tuple[str, ...]
    detail: str
    remedy: str | None

    def __str__(self) -> str:
        where = f" {self.table}" if self.table else ""
        line = f"{self.kind}{where}: {self.count:,}: {listed(self.examples, self.count)}; "
        return one_line(line + self.detail)


class Figures(BaseModel):
    """How large a table is: its rows, and the bytes of their cells, without indexes.

    A number counts as 8 bytes, whatever it takes on the disk.
    `finished` counts the executions that are DONE or CANCELLED; None for any other table.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    table: str
    rows: int
    bytes: int
    finished: int | None = None


class Diagnosis(BaseModel):
    """What was found in a database, worst first: the document of ``--format json``."""

    model_config = ConfigDict(frozen=True, extra="forbid", title="harel-schema doctor report")

    target: str = Field(description="The database, without a token.")
    prefix: str = Field(description="The first part of the name of every table of harel's.")
    revision: str | None = Field(description="The revision of the database, null if unknown.")
    head: str | None = Field(description="The newest revision known to this version.")
    sound: bool = Field(description="Whether no finding is an error. Else the exit code is 1.")
    findings: tuple[Finding, ...]
    tables: tuple[Figures, ...]
    bytes: int = Field(description="The size of the database, indexes and free pages included.")
    free: int = Field(description="Bytes of its pages that are free.")
    measured_at: float | None = Field(
        description="The time (epoch seconds) at which ages are measured: that of the newest "
        "commit, or with --live the clock's. Null where no execution says when it was committed."
    )
    notes: tuple[str, ...] = Field(description="What else a reader should know, a line each.")
    seconds: float = Field(description="The time that it took.")

    def of(self, severity: Severity) -> tuple[Finding, ...]:
        """Return the findings of one severity."""
        return tuple(each for each in self.findings if each.severity == severity)
