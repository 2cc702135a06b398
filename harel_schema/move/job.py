"""A move from its checks to its end.

The order decides what is true when the process dies. The source is open until its fence is
committed, in the transaction that saw its last change; by then the destination has committed all
of it, and says so in its mark. Only then does it become a database that can be opened. So the two
are never open at once, and from the fence on everything is at the destination, which the next run
opens without looking at a row.
"""

from __future__ import annotations

import os
import time
from contextlib import closing, contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from harel_schema.dbapi.reads import is_missing_table
from harel_schema.dbapi.waiting import PATIENCE
from harel_schema.drift.ours import without_move
from harel_schema.errors import DatabaseError, TransferError
from harel_schema.introspect import Schema
from harel_schema.move.destination import Destination, Standing, standing
from harel_schema.move.filling import Filling
from harel_schema.move.model import MoveReport, Switched
from harel_schema.move.source import Source
from harel_schema.move.statements import ChangeLog
from harel_schema.move.switching import Switch
from harel_schema.names import DEFAULT_PREFIX, check_prefix
from harel_schema.target import Target
from harel_schema.transfer import preflight, state
from harel_schema.transfer.access import open_database
from harel_schema.transfer.comparing import compare_tables
from harel_schema.transfer.job import Options
from harel_schema.transfer.ledger import Ledger
from harel_schema.transfer.plan import own_contents
from harel_schema.transfer.progress import Meter

if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextlib import AbstractContextManager

    from harel_schema.move.model import MoveAction
    from harel_schema.rows import Row
    from harel_schema.transfer.access import Database
    from harel_schema.transfer.model import Action, Limits, OnProgress, TableCopy

__all__ = ["move"]

_RUN_BYTES = 16
_NOTED = 1_000
# Seconds of silence of the destination at most, once writers may be waiting for it.
_MOST_SILENCE = 10.0


def move(  # noqa: PLR0913 - keyword-only options of one verb
    source: Target | str | os.PathLike[str],
    dest: Target | str | os.PathLike[str],
    *,
    prefix: str = DEFAULT_PREFIX,
    replace: bool = False,
    dry_run: bool = False,
    timeout: float = PATIENCE,
    limits: Limits | None = None,
    progress: OnProgress | None = None,
) -> MoveReport:
    """Move harel's tables from `source` to `dest` while writers go on; then fence the source.

    From the fence on every write to the source fails, naming the destination; nothing that was
    written before is missing there. The destination can be opened when all of it is done. It must
    be empty, or have been moved to `source` before; with `replace` what it holds of these tables
    is dropped.

    A move that was stopped goes on with the next call, and a finished one changes nothing.
    `dry_run` checks all that a move checks, and writes nothing. `timeout` is how many seconds to
    wait for a lock, or for a silent server. `limits` bounds a batch of the copy; without, it is
    as large as suits the destination. Raises what `transfer.copy` raises, and
    `TransferError` when the writers change rows faster than they can be carried over.
    """
    started = time.monotonic()
    options = Options(
        prefix=check_prefix(prefix),
        replace=replace,
        merge=False,
        dry_run=dry_run,
        all_tables=False,
        upgrade=False,
        limits=limits,
        timeout=timeout,
    )
    ends = Target.parse(source), Target.parse(dest)
    preflight.check_pair(*ends)
    return _Move(*ends, options, Meter(progress), started).run()


class _Move:
    """The steps of a move, with what they learn."""

    def __init__(
        self, source: Target, dest: Target, options: Options, meter: Meter, started: float
    ) -> None:
        self._source, self._dest = source, dest
        self._names = state.identity(source), state.identity(dest)
        self._options = options
        self._meter = meter
        self._started = started
        self._run = os.urandom(_RUN_BYTES)
        self._notes: list[str] = []
        self._repaired = 0
        self._numbers = Switched()

    def run(self) -> MoveReport:
        """Do what is left to do."""
        prefix = self._options.prefix
        with self._open(self._source, read_only=True) as database:
            with database.snapshot():
                schema = database.schema(prefix)
                at_source = standing(database, schema, prefix)
                self._check_source(at_source)
                self._contents = own_contents(database, without_move(schema, prefix), prefix)
                with self._looking_at_dest() as found:
                    at_dest = self._look(found)
                    if at_source.moved_to is not None:
                        return self._complete(at_dest, found)
                    resume, replaces = self._resumption(at_dest, found)
                options = replace(self._options, replace=replaces)
                filling = Filling(database, self._dest, options, self._meter, resume=resume)
                action = filling.check()
            if not self._options.dry_run:
                with self._alone():
                    self._move(database, schema, filling, action)
        return self._report("moved", () if resume else filling.report(action, 0).tables)

    def _open(self, target: Target, *, read_only: bool) -> AbstractContextManager[Database]:
        return open_database(target, read_only=read_only, timeout=self._options.timeout)

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Say what it means when the tables of this move are gone."""
        try:
            yield
        except DatabaseError as exc:
            if not is_missing_table(exc):
                raise
            raise TransferError(
                f"another run has finished this move of {self._source}, or given it up",
                remedy="run the same command again to go on with it",
            ) from exc

    def _check_source(self, found: Standing) -> None:
        """Refuse a source that another move is at work on."""
        if found.role == "dest":
            raise TransferError(
                f"{self._source} holds an unfinished move from {found.peer}",
                remedy=f"finish it: harel-schema move {found.peer} {self._source}",
            )
        elsewhere = next((at for at in (found.peer, found.moved_to) if at not in self._here), None)
        if elsewhere is None:
            return
        if found.moved_to is not None:
            raise TransferError(
                f"{self._source} was moved to {elsewhere}",
                remedy=f"move {elsewhere}, or reopen it: harel-schema unfence {self._source}",
            )
        raise TransferError(
            f"{self._source} is being moved to {elsewhere}",
            remedy=f"give that up: harel-schema move {self._source} {elsewhere} --abort",
        )

    @property
    def _here(self) -> tuple[str | None, str]:
        return None, self._names[1]

    @contextmanager
    def _looking_at_dest(self) -> Iterator[Database | None]:
        """Open the destination to look at it; None for a file that is not there."""
        if self._dest.path is not None and not self._dest.path.exists():
            yield None
            return
        with self._open(self._dest, read_only=True) as found:
            yield found

    def _look(self, found: Database | None) -> Standing:
        """Return what the destination says about moves, and refuse what no option allows."""
        if found is None:
            return Standing()
        prefix, source = self._options.prefix, self._names[0]
        there = standing(found, found.schema(prefix), prefix)
        if there.role == "source":
            raise TransferError(
                f"{self._dest} is itself being moved to {there.peer}",
                remedy=f"give that up: harel-schema move {self._dest} {there.peer} --abort",
            )
        if self._options.replace:
            return there
        if there.peer not in (None, source):
            raise TransferError(
                f"{self._dest} holds an unfinished move from {there.peer}",
                remedy="finish that one, or drop it with --replace",
            )
        if there.role is None and there.moved_to not in (None, source):
            raise TransferError(
                f"{self._dest} was moved to {there.moved_to}",
                remedy="name another database, or drop what it holds with --replace",
            )
        return there

    def _resumption(self, there: Standing, found: Database | None) -> tuple[bool, bool]:
        """Return whether an earlier run has made the copy, and whether to drop what is there."""
        prefix, source = self._options.prefix, self._names[0]
        if found is None:
            return False, False
        if there.role is None:
            return False, self._options.replace or there.moved_to == source
        if there.peer != source:
            return False, True
        if there.state == "copying":
            ledger = Ledger(found, prefix)
            goes_on = ledger.exists() and ledger.source() == source
            return False, not (goes_on and ledger.tables() == set(self._contents.names))
        schema = without_move(found.schema(prefix), prefix)
        complete = all(schema.table(name) for name in self._contents.names)
        same = complete and next(state.differences(schema, self._contents), None) is None
        return same, not same

    def _complete(self, there: Standing, found: Database | None) -> MoveReport:
        """Open the destination, if an earlier run has not; the source is fenced."""
        prefix = self._options.prefix
        if there.role == "dest" and there.state == "complete":
            if not self._options.dry_run:
                with self._open(self._dest, read_only=False) as database:
                    dest = Destination(database, prefix, self._run)
                    dest.take(self._names[0], "complete")
                    dest.publish(self._contents)
            return self._report("finished")
        schema = found.schema(prefix) if found is not None else Schema()
        whole = schema.versions and all(schema.table(name) for name in self._contents.names)
        if there.role is None and whole:
            return self._report("already moved")
        raise TransferError(
            f"{self._source} says that it was moved to {self._names[1]}, which does not hold it",
            remedy=f"reopen it: harel-schema unfence {self._source}",
        )

    def _move(self, database: Database, schema: Schema, filling: Filling, action: Action) -> None:
        """Copy and compare, catch up, and switch over."""
        log = ChangeLog(self._options.prefix, filling.layouts)
        options = self._options
        with closing(Source(self._source, options.prefix, options.timeout)) as source:
            self._note_journal(source.let_writers_go_on())
            source.install(log, self._names[1], self._run, schema)
            with self._open(self._dest, read_only=False) as opened:
                dest = Destination(opened, self._options.prefix, self._run)
                filling.dest = dest
                dest.take(self._names[0], "catching up" if filling.resume else "copying")
                with database.snapshot():
                    filling.run(action)
                    self._compare(source, database, dest, log)
            source.write_back()
            silence = min(_MOST_SILENCE, self._options.timeout)
            with open_database(self._dest, read_only=False, timeout=silence) as opened:
                dest = dest.over(opened)
                switch = Switch(source, database, dest, log, filling, self._meter)
                self._numbers = switch.run()

    def _note_journal(self, mode: str | None) -> None:
        if mode is not None:
            self._notes.append(
                f"{self._source} now has journal_mode=wal (was {mode}), so that its writers "
                "could go on"
            )

    def _compare(
        self, source: Source, database: Database, dest: Destination, log: ChangeLog
    ) -> None:
        """Compare the copy whole with the snapshot that it was made of.

        What differs is entered into the change log. That is nothing, unless an earlier run had
        already carried changes over.
        """
        self._meter.start("compare")
        for layout, _, _, pairs in compare_tables(database, dest, log.layouts, self._meter):
            keys: list[Row] = []
            for pair in pairs:
                keys.append(layout.key_of(pair.a or pair.b or ()))
                if len(keys) == _NOTED:
                    source.note(log, layout, keys)
                    keys.clear()
                self._repaired += 1
            if keys:
                source.note(log, layout, keys)

    def _report(self, action: MoveAction, tables: tuple[TableCopy, ...] = ()) -> MoveReport:
        return MoveReport(
            source=str(self._source),
            dest=str(self._dest),
            action=action,
            revision=self._contents.revision,
            tables=tables,
            repaired=self._repaired,
            switch=self._numbers,
            seconds=time.monotonic() - self._started,
            dry_run=self._options.dry_run,
            notes=tuple(self._notes),
        )
