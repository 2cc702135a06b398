"""A drift together with what was compared: what every form of a drift's report is made of."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from pydantic import BaseModel, ConfigDict, Field

from harel_schema.drift import Difference  # noqa: TC001 - pydantic reads it at run time
from harel_schema.names import one_line
from harel_schema.report.words import verdict

if TYPE_CHECKING:
    from harel_schema.drift import Drift

__all__ = ["Comparison"]


class Comparison(BaseModel):
    """What `check` or `diff` found: the document of ``--format json``."""

    model_config = ConfigDict(frozen=True, extra="forbid", title="harel-schema drift report")

    command: Literal["check", "diff"]
    target: str = Field(description="The database that was checked, without a token.")
    against: str | None = Field(description="The database that `target` was compared with.")
    prefix: str = Field(description="The first part of the name of every table of harel's.")
    drift: bool = Field(description="Whether any difference counts. The exit code is 1 then.")
    revision: str | None = Field(description="The revision of the database, null if unknown.")
    head: str | None = Field(description="The newest revision known to this version.")
    differences: tuple[Difference, ...]
    others: tuple[str, ...] = Field(
        description="Tables and views that are not harel's and were not compared."
    )

    @classmethod
    def of(
        cls, drift: Drift, target: str, *, prefix: str, against: str | None = None
    ) -> Comparison:
        """Return a report of `drift`, found in `target`; the names are without a token."""
        return cls(
            command="check" if against is None else "diff",
            target=target,
            against=against,
            prefix=prefix,
            drift=bool(drift),
            revision=drift.revision,
            head=drift.head,
            differences=drift.differences,
            others=drift.others,
        )

    @property
    def databases(self) -> str:
        """The name of the database, or of both."""
        pair = f"{self.against} and {self.target}"
        return one_line(self.target if self.against is None else pair)

    @property
    def counted(self) -> tuple[Difference, ...]:
        """The differences that count as drift."""
        return tuple(each for each in self.differences if each.counts)

    @property
    def notes(self) -> tuple[str, ...]:
        """What is worth knowing, a line each."""
        lines = [str(each) for each in self.differences if not each.counts]
        if self.others:
            lines.append(f"not harel's, not compared: {one_line(', '.join(self.others))}")
        return tuple(lines)

    @property
    def verdict(self) -> str:
        """The result in a few words."""
        return verdict(len(self.counted), self.revision)
