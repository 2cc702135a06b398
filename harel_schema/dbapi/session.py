"""What a driver must do for a connection; everything else is PEP 249 and lives in `connection`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from harel_schema.dbapi.parameters import Parameters, Value
    from harel_schema.dbapi.statements import Statement

__all__ = ["CHUNK", "CHUNK_BYTES", "Description", "Effect", "Result", "Row", "Session"]

Row: TypeAlias = tuple[Any, ...]
Description: TypeAlias = tuple[tuple[str, None, None, None, None, None, None], ...]

CHUNK = 128
"""Rows that a session reads at a time, at most."""

CHUNK_BYTES = 1_000_000
"""Characters and bytes after which it reads no further row, where the driver lets it."""


class Effect(NamedTuple):
    """What a statement did. `lastrowid` has a meaning after an INSERT alone."""

    rowcount: int
    lastrowid: int | None
    rows: Sequence[Row] = ()


@dataclass(slots=True)
class Result:
    """What a statement gave.

    `rows` are the first rows; `more`, when set, gives the next ones (an empty list: the end).
    `rowcount` is -1 where a number of changed rows means nothing; `lastrowid` is None unless the
    statement inserts.
    """

    description: Description | None = None
    rows: Sequence[Row] = ()
    more: Callable[[], Sequence[Row]] | None = None
    rowcount: int = -1
    lastrowid: int | None = None


class Session(Protocol):
    """One connection of a driver. Not safe for two threads at once.

    Every method raises errors of `harel_schema.errors` only.
    """

    driver: str

    @property
    def in_transaction(self) -> bool:
        """Whether a transaction is open."""

    def run(self, statement: Statement, values: tuple[Value, ...], begin: str | None) -> Result:
        """Run a statement, in a new transaction of mode `begin` unless that is None.

        A statement that fails takes the transaction that was begun for it with it.
        """

    def run_many(
        self, statement: Statement, rows: Iterable[tuple[Value, ...]], begin: str | None
    ) -> int:
        """Run a statement once a row of parameters; return the number of changed rows.

        Stops at the first failure; what was done before stays in the transaction.
        """

    def run_all(
        self, statements: Iterable[tuple[str, Parameters]], *, must_change: bool
    ) -> list[Effect]:
        """Run statements in the open transaction, which holds the write lock, in their order.

        With `must_change` the first is also the last when it changed no row.
        """

    def run_script(self, statements: Sequence[Statement]) -> None:
        """Run statements without parameters, one after another, up to the first failure."""

    def run_reads(self, statements: Sequence[Statement]) -> list[list[Row] | None]:
        """Run reads without parameters on one snapshot; None for one that misses its table."""

    def sync(self) -> None:
        """Bring an embedded replica up to date."""

    def interrupt(self) -> None:
        """Stop the statement that another thread runs."""

    def close(self) -> None:
        """Roll back what is open and let go of everything."""

    def discard(self) -> None:
        """Let go as `close` does, but wait for nobody: the garbage collector calls it."""

    def abandon(self) -> None:
        """Let go in a forked child, without calling the driver."""
