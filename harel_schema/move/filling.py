"""The first copy of a move: a copy that does not end with a database that can be used."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from harel_schema.drift.ours import without_move
from harel_schema.errors import TransferError
from harel_schema.introspect import fold
from harel_schema.move.destination import Destination
from harel_schema.move.statements import guard
from harel_schema.transfer import state
from harel_schema.transfer.job import Job
from harel_schema.transfer.layout import SEQUENCES, Query

if TYPE_CHECKING:
    from collections.abc import Iterator

    from harel_schema.introspect import Schema
    from harel_schema.rows import Row
    from harel_schema.target import Target
    from harel_schema.transfer.access import Database
    from harel_schema.transfer.job import Options
    from harel_schema.transfer.layout import Layout
    from harel_schema.transfer.ledger import Ledger
    from harel_schema.transfer.model import Action
    from harel_schema.transfer.plan import Contents
    from harel_schema.transfer.progress import Meter
    from harel_schema.transfer.state import Found

__all__ = ["Filling"]


class Filling(Job):
    """A copy into a `Destination`. Its tables are guarded from when they are made.

    `resume` says that an earlier run has made the copy, so that nothing is left to do.
    """

    dest: Destination
    # What changed between two snapshots is in the change log.
    passes = 1

    def __init__(
        self, source: Database, dest: Target, options: Options, meter: Meter, *, resume: bool
    ) -> None:
        super().__init__(source, dest, options, meter)
        self.resume = resume

    @property
    def contents(self) -> Contents:
        """What is moved."""
        return self._contents

    @property
    def layouts(self) -> tuple[Layout, ...]:
        """How its tables are read."""
        return tuple(layout for layout in self._layouts if layout.name != SEQUENCES)

    @property
    def sequences(self) -> Layout | None:
        """How its AUTOINCREMENT counters are read; None when no table has one."""
        return next((each for each in self._layouts if each.name == SEQUENCES), None)

    @property
    def fenced(self) -> list[str]:
        """The tables that writers are kept from."""
        version = self._contents.version_table
        return [*self._contents.names, *([version.name] if version else [])]

    def check(self) -> Action:
        """See `Job`. Also raises `TransferError` for rows that no key names."""
        action = super().check()
        for table, layout in zip(self._contents.tables, self.layouts, strict=True):
            if fold(layout.columns[layout.key[0]]) not in table.by_name:
                raise TransferError(
                    f"{self._source.target} holds rows whose key is NULL, in {table.name}",
                    remedy="delete them, or use harel-schema copy",
                )
        return action

    def run(self, action: Action) -> None:
        """Copy, unless that was done."""
        if self.resume:
            return
        if action == "resumed":
            self.dest.transact(self._guards())
        super().run(action)

    def _guards(self) -> list[Query]:
        return guard(self._options.prefix, self.fenced, state.identity(self._source.target))

    def _read_schema(self) -> Schema:
        return without_move(super()._read_schema(), self._options.prefix)

    @contextmanager
    def _open_dest(self, *, read_only: bool) -> Iterator[Database | None]:
        if read_only:
            with super()._open_dest(read_only=True) as found:
                # Without the guards of an earlier run, which are no difference.
                yield found and Destination(found, self._options.prefix, b"")
        else:
            yield self.dest

    def _inspect(self, dest: Database | None) -> Found:
        return state.nothing() if self.resume else super()._inspect(dest)

    def _decide(self, dest: Database | None) -> Action:
        if self._found.state == "filled" and not self._options.replace:
            raise TransferError(
                f"{self._dest} holds rows",
                remedy="name an empty database, or drop what it holds with --replace",
            )
        return super()._decide(dest)

    def _begin(self, dest: Database, ledger: Ledger, *, replace: bool) -> None:
        self.dest.along(self._guards())
        super()._begin(dest, ledger, replace=replace)

    def _finish(self, dest: Database, ledger: Ledger, sequence_rows: list[Row]) -> None:
        del sequence_rows
        self.dest.state = "catching up"
        dest.transact([ledger.drop()], lambda: not ledger.exists())
