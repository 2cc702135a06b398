"""What a move reports."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

if TYPE_CHECKING:
    from harel_schema.transfer.model import TableCopy

__all__ = ["AbortReport", "MoveAction", "MoveReport", "Switched", "UnfenceReport"]

MoveAction: TypeAlias = Literal["moved", "finished", "already moved"]


@dataclass(frozen=True, slots=True)
class Switched:
    """The end of a move.

    `changes` rows were carried over in `rounds` while writers went on, and `last_changes` while
    they waited: for `fence_pause` seconds until the source refused them, and `pause` seconds until
    the destination took them. All 0 where there was nothing to do.
    """

    rounds: int = 0
    changes: int = 0
    last_changes: int = 0
    fence_pause: float = 0.0
    pause: float = 0.0


@dataclass(frozen=True, slots=True)
class MoveReport:
    """What a move did, or when `dry_run` is true would do.

    `action` is ``finished`` when an earlier run had come as far as the fence. `tables` are those
    of the first copy; none where an earlier run had made it. `repaired` rows differed when the
    copy was compared whole, and were carried over again: none, unless an earlier run was stopped.
    `seconds` is the wall time. `notes` are lines that a person should read.
    """

    source: str
    dest: str
    action: MoveAction
    revision: str | None
    tables: tuple[TableCopy, ...]
    repaired: int
    switch: Switched
    seconds: float
    dry_run: bool = False
    notes: tuple[str, ...] = ()

    @property
    def rows(self) -> int:
        """Rows of the source when it was copied."""
        return sum(table.rows for table in self.tables)


@dataclass(frozen=True, slots=True)
class AbortReport:
    """What giving up a move did: whether there was one, and whether the source was fenced."""

    source: str
    dest: str
    aborted: bool
    unfenced: bool


@dataclass(frozen=True, slots=True)
class UnfenceReport:
    """What reopening a database did: where it had been moved to, None when it had no fence."""

    target: str
    moved_to: str | None
