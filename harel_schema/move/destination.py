"""The destination of a move, which only the move itself can write to until it is finished.

It is marked in a table of its own from the first write to the last one. Every transaction of the
move claims its turn by the mark, so that one of a run that was given up, or of a request that
arrives late, changes nothing. Triggers refuse everybody else; the revision comes last.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias, TypeVar

from harel_schema.drift.ours import without_move
from harel_schema.drift.unfinished import fence_address
from harel_schema.errors import IntegrityError, OperationalError, TransferError
from harel_schema.move.statements import Mark, drop_triggers, made_by_move
from harel_schema.transfer.state import identity

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from contextlib import AbstractContextManager

    from harel_schema.introspect import Schema
    from harel_schema.rows import Row
    from harel_schema.target import Target
    from harel_schema.transfer.database import Cells, Database, Insert, Run, Work
    from harel_schema.transfer.layout import Query, Scan
    from harel_schema.transfer.plan import Contents

__all__ = ["Destination", "Silent", "Standing", "State", "standing"]

_T = TypeVar("_T")

State: TypeAlias = Literal["copying", "catching up", "complete"]
"""How far a destination is; ``complete`` when it holds all that the source held under its lock."""


class Silent(OperationalError):
    """The destination did not answer while writers were waiting for it."""

    def __init__(self, target: Target) -> None:
        super().__init__(f"{target} did not answer in time")


@dataclass(frozen=True, slots=True)
class Standing:
    """What a database says about moves: its mark, and where its fence points to."""

    role: str | None = None
    peer: str | None = None
    run: bytes | None = None
    step: int = 0
    state: str = ""
    moved_to: str | None = None


def standing(database: Database, schema: Schema, prefix: str) -> Standing:
    """Return what `database`, which has `schema`, says about moves."""
    moved_to = fence_address(schema, prefix)
    mark = Mark(prefix)
    if schema.table(mark.table) is None:
        return Standing(moved_to=moved_to)
    return Standing(*mark.understood(database.query(mark.read()), database.target), moved_to)


class Destination:
    """A `Database` whose transactions are those of one run of a move."""

    def __init__(self, database: Database, prefix: str, run: bytes) -> None:
        self.target: Target = database.target
        self._database = database
        self._prefix = prefix
        self.run = run
        self._mark = Mark(prefix)
        self._step = 0
        self._also: Sequence[Work] = ()
        self.state: State = "copying"
        self.patient = True

    @property
    def name(self) -> str:
        """The address by which others find it."""
        return identity(self.target)

    @property
    def remote(self) -> bool:
        """See `Database`."""
        return self._database.remote

    @property
    def round_trip(self) -> float:
        """See `Database`."""
        return self._database.round_trip

    def schema(self, prefix: str | None) -> Schema:
        """See `Database`; without what the move itself has added."""
        return without_move(self._database.schema(prefix), self._prefix)

    def query(self, query: Query) -> list[Cells]:
        """See `Database`."""
        return self._database.query(query)

    def survey(self, queries: Sequence[Query]) -> list[list[Cells]]:
        """See `Database`."""
        return self._database.survey(queries)

    def snapshot(self) -> AbstractContextManager[None]:
        """See `Database`."""
        return self._database.snapshot()

    def stream(self, queries: Sequence[Query]) -> Iterator[tuple[int, Row]]:
        """See `Database`."""
        return self._database.stream(queries)

    def scan(self, scans: Sequence[Scan]) -> Iterator[Run]:
        """See `Database`."""
        return self._database.scan(scans)

    def prepare(self, insert: Insert) -> Work:
        """See `Database`."""
        return self._database.prepare(insert)

    def patiently(self, action: Callable[[], _T]) -> _T:
        """See `Database`."""
        return self._database.patiently(action)

    def may_pass(self, error: OperationalError) -> bool:
        """See `Database`."""
        return self._database.may_pass(error)

    def close(self) -> None:
        """See `Database`."""
        self._database.close()

    def take(self, source: str, state: State) -> None:
        """Mark the database as the destination of this run, in a state that an earlier run left."""
        self.state = state
        work = self._mark.create("dest", source, self.run, state)
        self._database.transact(work, self._is_ours)
        self._step = 0

    def _is_ours(self) -> bool:
        return self._standing().run == self.run

    def _standing(self) -> Standing:
        return standing(self._database, self._database.schema(None), self._prefix)

    def refresh(self) -> None:
        """Learn which transaction was the last, after one whose answer was lost."""
        self._step = self._standing().step

    def over(self, database: Database) -> Destination:
        """Return the same destination by another connection."""
        other = Destination(database, self._prefix, self.run)
        other._step, other.state = self._step, self.state
        return other

    def along(self, work: Sequence[Work]) -> None:
        """Do `work` at the end of the next transaction."""
        self._also = work

    def transact(self, work: Sequence[Work], applied: Callable[[], bool] | None = None) -> None:
        """See `Database`; the mark tells whether it was applied.

        Not `patient`, it is not tried again when the server does not answer. Raises
        `TransferError` when another run has taken the move over.
        """
        del applied
        step = self._step
        claimed = self._mark.claim(self.run, step, self.state)
        whole = [*claimed, *work, *self._also, self._mark.release()]
        try:
            self._database.transact(whole, lambda: self._is_done(step))
        except IntegrityError:
            if not self._is_done(step):
                raise
        self._also = ()
        self._step = step + 1

    def _is_done(self, step: int) -> bool:
        """Return whether transaction number `step` was committed."""
        try:
            now = self._standing()
        except OperationalError as exc:
            if self.patient:
                raise
            raise Silent(self.target) from exc
        if now.run != self.run:
            raise self._taken_over()
        if now.step == step + 1:
            return True
        if not self.patient:
            raise Silent(self.target)
        return False

    def _taken_over(self) -> TransferError:
        return TransferError(
            f"another run has taken over the move to {self.target}", remedy="leave it to that one"
        )

    def publish(self, contents: Contents) -> None:
        """Make it a database like any other: without guards and mark, with the revision."""
        found = self._database.schema(None)
        guards = made_by_move(found, self._prefix, fences=True)
        work = [*drop_triggers(guards), *contents.finish(without_move(found, self._prefix))]
        work.append(self._mark.drop())
        claimed = self._mark.claim(self.run, self._step, self.state)
        try:
            self._database.transact([*claimed, *work], self._is_published)
        except IntegrityError:
            raise self._taken_over() from None

    def _is_published(self) -> bool:
        return self._database.schema(None).table(self._mark.table) is None
