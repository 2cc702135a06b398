"""What a copy reports: progress while it runs, and a frozen report at its end."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypeAlias

__all__ = [
    "Action",
    "CopyReport",
    "Estimate",
    "Limits",
    "OnProgress",
    "Phase",
    "Progress",
    "TableCopy",
]

Phase: TypeAlias = Literal["check", "compare", "copy", "finish", "catch up", "switch"]
Action: TypeAlias = Literal["copied", "resumed", "replaced", "merged", "already equal"]


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a job is.

    `rows_done` and `bytes_done` count over all tables, rows that an earlier run had copied
    included; `rows_total` is None while it is not known. `table` is the one at hand, "" for none.
    Bytes are those of the canonical rows.
    """

    phase: Phase
    table: str
    rows_done: int
    rows_total: int | None
    bytes_done: int


OnProgress: TypeAlias = Callable[[Progress], None]
"""Called after each batch, in the thread that runs the job. An exception from it stops the job
between two batches, and a copy can be resumed."""


@dataclass(frozen=True, slots=True)
class Limits:
    """When a batch is full: `rows`, or `size` bytes of canonical rows, whatever comes first.

    A batch is one transaction, and one request to a server; it holds one row at least.
    """

    rows: int = 2_000
    size: int = 4_000_000

    def __post_init__(self) -> None:
        """Refuse limits that no batch can keep."""
        if self.rows < 1 or self.size < 1:
            raise ValueError("a batch holds at least 1 row and 1 byte")


@dataclass(frozen=True, slots=True)
class TableCopy:
    """A table's part in a copy: the rows of the source, and those that this run wrote.

    In a plan (`dry_run`) `written` is 0. `bytes` are those of the source's canonical rows; None
    where nothing has read them.
    """

    name: str
    rows: int
    written: int
    bytes: int | None


@dataclass(frozen=True, slots=True)
class Estimate:
    """What a copy would take: the size of the source with its indexes, in bytes, and the time.

    `seconds` is a guess by size and distance. `free` is what the destination's disk has left, in
    bytes, None for a server.
    """

    bytes: int
    seconds: float
    free: int | None


@dataclass(frozen=True, slots=True)
class CopyReport:
    """What a copy did, or when `dry_run` is true would do.

    `revision` is the source's, None where it has none (`all_tables`). `snapshots` is the number
    of snapshots in which the source's rows were last read: 1 means that they are consistent with
    one another. `notes` are lines that a person should read. `seconds` is the wall time. `estimate`
    comes with `dry_run` only.
    """

    source: str
    dest: str
    action: Action
    revision: str | None
    tables: tuple[TableCopy, ...]
    snapshots: int
    seconds: float
    dry_run: bool = False
    notes: tuple[str, ...] = ()
    estimate: Estimate | None = None

    @property
    def rows(self) -> int:
        """Rows of the source."""
        return sum(table.rows for table in self.tables)

    @property
    def written(self) -> int:
        """Rows that this run wrote."""
        return sum(table.written for table in self.tables)
