"""Running units on a connection, several in one transaction."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harel_schema.commit import together
from harel_schema.commit.unit import Outcome, settle

if TYPE_CHECKING:
    from collections.abc import Sequence

    from harel_schema.commit.unit import Row, Statement, Unit
    from harel_schema.dbapi import Connection

__all__ = ["Transaction", "read"]


class Transaction:
    """One attempt to commit `units` together on `connection`.

    `outcomes` is set, one a unit, once the transaction is decided. When `run` raises and it is
    None, nothing was applied; it is set although `run` raised when an interrupt (such as
    KeyboardInterrupt) came after the COMMIT. In no case is a transaction left open.

    Mostly every unit succeeds, so the units are first run with as few statements as possible. When
    one fails all are undone and run again in a savepoint each, which undoes that one alone.
    """

    def __init__(self, connection: Connection, units: Sequence[Unit[Any]]) -> None:
        self.units = units
        self.outcomes: list[Outcome] | None = None
        self._connection = connection

    def run(self) -> list[Outcome]:
        """Commit the units and return their outcomes; raise what fails them all."""
        try:
            self._connection.begin("IMMEDIATE")
            decided = self._together()
            if decided is None:
                self._roll_back()
                self._connection.begin("IMMEDIATE")
                decided = self._apart()
            self._finish(decided)
            settle(self.units, decided)
        except _Killed as killed:
            return self._without(killed)
        except BaseException:
            self._roll_back()
            if self.outcomes is not None:
                settle(self.units, self.outcomes)
            raise
        return decided

    def _together(self) -> list[Outcome] | None:
        """Run the units; None when one of several failed."""
        if len(self.units) == 1:
            return [self._apply(self.units[0])]
        decided: list[Outcome] = []
        for units in together.runs(self.units):
            outcomes = self._share(units) if len(units) > 1 else [self._apply(units[0])]
            if outcomes is None or outcomes[0].error is not None:
                return None
            decided += outcomes
        return decided

    def _share(self, units: Sequence[Unit[Any]]) -> list[Outcome] | None:
        """Run units that share their statements; None when one failed, whichever it was."""
        try:
            return together.run(self._connection, units)
        except Exception:  # noqa: BLE001 - whose error it is shows when each runs apart
            return None

    def _apart(self) -> list[Outcome]:
        return [self._in_savepoint(at, unit) for at, unit in enumerate(self.units)]

    def _in_savepoint(self, at: int, unit: Unit[Any]) -> Outcome:
        run = self._connection.execute
        run("SAVEPOINT unit")
        outcome = self._apply(unit)
        if outcome.error is not None:
            if not self._connection.in_transaction:
                raise _Killed(at, outcome)
            run("ROLLBACK TO unit")
        run("RELEASE unit")
        return outcome

    def _apply(self, unit: Unit[Any]) -> Outcome:
        check = unit.check
        try:
            effects = self._connection.execute_all(unit.statements, must_change=check is not None)
            if check is not None and not effects[0].rowcount:
                return unit.conflict(read(self._connection, check.found))
            return unit.succeed(effects)
        except Exception as exc:  # noqa: BLE001 - it is handed to the caller whose unit it is
            return Outcome(error=exc)

    def _finish(self, decided: list[Outcome]) -> None:
        if all(outcome.error is not None for outcome in decided):
            self._roll_back()
            self.outcomes = decided
            return
        try:
            self._connection.commit()
            self.outcomes = decided
        except BaseException as exc:
            # An interrupt is no answer of the database: the transaction's end is.
            if not isinstance(exc, Exception) and not self._connection.in_transaction:
                self.outcomes = decided
            raise

    def _without(self, killed: _Killed) -> list[Outcome]:
        """Run the others again: the whole transaction died of one unit (RAISE(ROLLBACK))."""
        at = killed.at
        others = Transaction(self._connection, [*self.units[:at], *self.units[at + 1 :]])
        try:
            decided = others.run()
        finally:
            if others.outcomes is not None:
                self.outcomes = [*others.outcomes[:at], killed.outcome, *others.outcomes[at:]]
        return [*decided[:at], killed.outcome, *decided[at:]]

    def _roll_back(self) -> None:
        if self._connection.in_transaction:
            self._connection.rollback()


class _Killed(Exception):
    def __init__(self, at: int, outcome: Outcome) -> None:
        super().__init__(at)
        self.at = at
        self.outcome = outcome


def read(connection: Connection, statement: Statement) -> Sequence[Row]:
    """Return every row of a query."""
    sql, args = statement
    rows: Sequence[Row] = connection.execute(sql, args).fetchall()
    return rows
