"""A copy from its checks to its end."""

from __future__ import annotations

import os
import time
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from harel_schema import drift
from harel_schema.dbapi.waiting import PATIENCE
from harel_schema.errors import TransferError
from harel_schema.introspect import Schema
from harel_schema.names import DEFAULT_PREFIX, check_prefix
from harel_schema.target import Target
from harel_schema.transfer import preflight, state
from harel_schema.transfer.access import open_database
from harel_schema.transfer.comparing import compare_tables
from harel_schema.transfer.copying import Counts, RangeWriter
from harel_schema.transfer.database import Database, Insert, Work, size_of
from harel_schema.transfer.layout import SEQUENCES
from harel_schema.transfer.ledger import Ledger
from harel_schema.transfer.merging import check_collisions, insert_missing, raise_sequences
from harel_schema.transfer.model import CopyReport, Limits, TableCopy
from harel_schema.transfer.numbers import copy_numbers
from harel_schema.transfer.plan import Contents, all_contents, own_contents
from harel_schema.transfer.progress import Meter
from harel_schema.transfer.reading import TableReader

if TYPE_CHECKING:
    from collections.abc import Iterator

    from harel_schema.rows import Row
    from harel_schema.transfer.layout import Layout
    from harel_schema.transfer.model import Action, Estimate, OnProgress
    from harel_schema.transfer.preflight import Size
    from harel_schema.transfer.state import Found

__all__ = ["Job", "Options", "copy"]

_RUN_BYTES = 16


@dataclass(frozen=True, slots=True)
class Options:
    """What a copy was told."""

    prefix: str
    replace: bool
    merge: bool
    dry_run: bool
    all_tables: bool
    upgrade: bool
    limits: Limits | None
    timeout: float


def copy(  # noqa: PLR0913 - keyword-only options of one verb
    source: Target | str | os.PathLike[str],
    dest: Target | str | os.PathLike[str],
    *,
    prefix: str = DEFAULT_PREFIX,
    replace: bool = False,
    merge: bool = False,
    dry_run: bool = False,
    all_tables: bool = False,
    upgrade: bool = False,
    timeout: float = PATIENCE,
    limits: Limits | None = None,
    progress: OnProgress | None = None,
) -> CopyReport:
    """Copy harel's tables of `source`, or with `all_tables` every table, to `dest`, exactly.

    Every cell keeps its storage class and its bytes, every table without a primary key its
    rowids, every AUTOINCREMENT its sequence. A file is read in one snapshot, while writers go on
    if it is in WAL mode and wait if not; a server too. Where the connection to it breaks, the
    source is read again, until it was read in one snapshot (`CopyReport.snapshots`), and what
    has changed is written anew. The source is not changed.

    A destination without rows gets the source's schema and revision; with `upgrade` it is
    migrated to head when the rows are there. One that holds the same rows is left alone; a copy
    of the same source that was stopped goes on; any other is refused unless told: `replace` drops
    what it has of these tables, `merge` keeps it and adds the rows that it lacks.

    `dry_run` checks all that a copy checks, and writes nothing. `timeout` is how many seconds to
    wait for a lock, or for a silent server. `limits` bounds a batch; without,
    it is as large as suits the destination. Raises,
    before the first write, `TargetError` for a bad target, `SchemaMismatch` for a source that is
    not at a known revision, `TransferError` for what would make the copy wrong; and
    `TransferError` or an error of `harel_schema.dbapi` when it cannot go on. The next call does.
    """
    started = time.monotonic()
    options = Options(
        prefix=check_prefix(prefix),
        replace=replace,
        merge=merge,
        dry_run=dry_run,
        all_tables=all_tables,
        upgrade=upgrade,
        limits=limits,
        timeout=timeout,
    )
    if replace and merge:
        raise TransferError("replace and merge exclude each other", remedy="choose one of them")
    ends = Target.parse(source), Target.parse(dest)
    preflight.check_pair(*ends)
    with (
        open_database(ends[0], read_only=True, timeout=timeout) as database,
        database.snapshot(),
    ):
        job = Job(database, ends[1], options, Meter(progress))
        action = job.check()
        if not dry_run:
            job.run(action)
    if upgrade and not dry_run:
        from harel_schema import migrate  # noqa: PLC0415 - Alembic takes 300 ms to import

        migrate.upgrade(ends[1], prefix=prefix, timeout=timeout)
    return job.report(action, time.monotonic() - started)


class Job:
    """The steps of a copy, with what they learn. A move extends it."""

    passes = 3
    """How often a source is read at most, until it is read in one snapshot."""

    def __init__(self, source: Database, dest: Target, options: Options, meter: Meter) -> None:
        self._source = source
        self._dest = dest
        self._options = options
        self._meter = meter
        self._counts: dict[str, Counts] = {}
        self._lacking: dict[str, int] = {}
        self._snapshots = 1
        self._notes: list[str] = []
        self._estimate: Estimate | None = None

    def check(self) -> Action:
        """Check both ends, and return what is to be done. Writes nothing."""
        options = self._options
        schema = self._read_schema()
        source = self._source
        self._contents: Contents = (
            all_contents(source, schema, options.prefix)
            if options.all_tables
            else own_contents(source, schema, options.prefix)
        )
        everything = options.all_tables
        broken = preflight.check_sound(source, schema.tables, foreign_keys=everything)
        self._notes += [broken] if broken else []
        self._layouts = preflight.layouts(self._contents.tables, self._source)
        with self._open_dest(read_only=True) as dest:
            self._found = self._inspect(dest)
            self._meter.start("check")
            size = size_of(self._source)
            self._sizes: dict[str, Size] = preflight.check_rows(
                self._source,
                self._layouts,
                size=size,
                to_server=self._dest.kind == "remote",
                meter=self._meter,
            )
            resumed = self._found.state == "unfinished" and not options.replace
            free = preflight.check_space(self._dest, size, resumed=resumed)
            if options.dry_run:
                self._look_closer(dest, size, free)
            return self._decide(dest)

    def _look_closer(self, dest: Database | None, size: int, free: int | None) -> None:
        """Learn what only a person wants to know."""
        options, source = self._options, self._source
        distance = max(source.round_trip, dest.round_trip if dest else 0)
        self._estimate = preflight.estimate(size, free, distance, len(self._layouts))
        if not options.all_tables:
            found = drift.check(
                source.target, prefix=options.prefix, data=True, timeout=options.timeout
            )
            self._notes += [f"{each}; copied as it is" for each in found if each.counts]

    def _read_schema(self) -> Schema:
        return self._source.schema(self._options.prefix)

    def _inspect(self, dest: Database | None) -> Found:
        """Look at the destination, and refuse what no option allows."""
        options = self._options
        own = [each.name for each in self._contents.full_text if not each.external]
        if options.merge and own:
            raise TransferError(
                f"a full-text index cannot be merged: {', '.join(own)}",
                remedy="use --replace, or copy without --all-tables",
            )
        if dest is None:
            return state.nothing()
        found = state.inspect(dest, self._contents, options.prefix)
        if options.replace:
            return found
        if found.state == "unfinished":
            if options.merge:
                raise TransferError(
                    f"{dest.target} holds an unfinished copy, which cannot be merged into",
                    remedy="finish it first, or start over with --replace",
                )
            name = state.identity(self._source.target)
            state.check_resumable(dest, found, self._contents, name, options.prefix)
        else:
            any_version = options.upgrade and found.state == "filled"
            state.check_fits(dest, found, self._contents, any_version=any_version)
        return found

    def _decide(self, dest: Database | None) -> Action:
        options = self._options
        if dest is None or (self._found.state == "empty" and not options.replace):
            return "copied"
        if options.replace:
            return "replaced"
        if self._found.state == "unfinished":
            return "resumed"
        shared = [t for t in self._contents.tables if self._found.schema.table(t.name)]
        layouts = preflight.layouts(shared, self._source, dest)
        self._meter.start("compare", self._total)
        if options.merge:
            self._lacking = check_collisions(self._source, dest, layouts, self._meter)
            return "merged"
        self._check_equal(dest, layouts, complete=len(shared) == len(self._contents.tables))
        return "already equal"

    def _check_equal(self, dest: Database, layouts: list[Layout], *, complete: bool) -> None:
        for table, _, _, pairs in compare_tables(self._source, dest, layouts, self._meter):
            if not complete or next(pairs, None) is not None:
                raise TransferError(
                    f"{dest.target} holds other rows than the source, in {table.name}",
                    remedy="use --replace to drop them or --merge to keep them",
                )
            count = self._sizes[table.name].rows
            self._counts[table.name] = Counts(rows=count, bytes=self._sizes[table.name].bytes or 0)

    @property
    def _total(self) -> int:
        return sum(size.rows for size in self._sizes.values())

    @contextmanager
    def _open_dest(self, *, read_only: bool) -> Iterator[Database | None]:
        """Open the destination; None for a file that is not there and not to be made."""
        if read_only and self._dest.path is not None and not self._dest.path.exists():
            yield None
            return
        timeout = self._options.timeout
        with open_database(self._dest, read_only=read_only, timeout=timeout) as dest:
            yield dest

    def run(self, action: Action) -> None:
        """Do it."""
        if action == "already equal":
            return
        with self._open_dest(read_only=False) as dest:
            if dest is None:
                return
            ledger = Ledger(dest, self._options.prefix)
            if action == "merged":
                self._merge(dest)
                return
            if action != "resumed":
                self._begin(dest, ledger, replace=action == "replaced")
            sequence_rows = self._copy(dest, ledger)
            self._finish(dest, ledger, sequence_rows)

    def _begin(self, dest: Database, ledger: Ledger, *, replace: bool) -> None:
        run = os.urandom(_RUN_BYTES)
        found = self._found.schema
        work: list[Work] = []
        if replace:
            work += self._contents.clear(found, self._options.prefix)
            found = Schema()
        work += self._contents.create(found)
        # A store that opened half a copy would take it for the whole.
        work += self._contents.unversion()
        name = state.identity(self._source.target)
        work += ledger.begin(name, self._contents.names, run)
        dest.transact(work, lambda: ledger.begun(run))

    def _copy(self, dest: Database, ledger: Ledger) -> list[Row]:
        for again in range(self.passes):
            self._meter.start("copy", self._total)
            sequence_rows, snapshots = self._pass(dest, ledger)
            if snapshots == 1:
                if again:
                    self._notes.append(
                        "the connection broke while the source was read; it was read again, in "
                        "one snapshot, and what had changed was written anew"
                    )
                break
        self._take_snapshots(snapshots)
        return sequence_rows

    def _pass(self, dest: Database, ledger: Ledger) -> tuple[list[Row], int]:
        """Bring the ranges of the ledger up to the source; return in how many snapshots."""
        reader = TableReader(self._source, self._layouts)
        sequence_rows: list[Row] = []
        with (
            closing(reader.tables()) as tables,
            RangeWriter(dest, ledger, self._options.limits, self._meter.add) as writer,
        ):
            for table, found in tables:
                if table.name == SEQUENCES:
                    sequence_rows = list(found)
                    self._meter.add(table.name, len(sequence_rows), 0)
                else:
                    before = self._counts.get(table.name, Counts()).written
                    counts = self._counts[table.name] = writer.table(table, found)
                    counts.written += before
        return sequence_rows, reader.snapshots

    def _take_snapshots(self, count: int) -> None:
        self._snapshots = count
        if count > 1:
            self._notes.append(
                f"the source was read in {count} snapshots, because the connection broke; rows "
                "that changed meanwhile are of different moments: run verify"
            )

    def _finish(self, dest: Database, ledger: Ledger, sequence_rows: list[Row]) -> None:
        self._meter.start("finish", self._total)
        if self._options.all_tables:
            self._notes += copy_numbers(self._source, dest)
        work: list[Work] = []
        if self._layouts and self._layouts[0].name == SEQUENCES:
            work.append(self._layouts[0].delete())
            work += [Insert(self._layouts[0], sequence_rows)] if sequence_rows else []
        work += self._contents.finish(dest.schema(None))
        dest.transact([*work, ledger.drop()], lambda: not ledger.exists())

    def _merge(self, dest: Database) -> None:
        if missing := self._contents.create(self._found.schema):
            names = [t.name for t in self._contents.tables if not self._found.schema.table(t.name)]
            dest.transact(missing, lambda: all(map(dest.schema(None).table, names)))
            self._lacking |= {name: self._sizes[name].rows for name in names}
        self._meter.start("copy", self._total)
        reader = TableReader(self._source, self._layouts)
        limits = self._options.limits or Limits()
        self._counts, rows = insert_missing(reader, dest, self._lacking, limits, self._meter)
        self._take_snapshots(reader.snapshots)
        work = [*raise_sequences(rows), *self._contents.finish(dest.schema(None))]
        if work:
            dest.transact(work, lambda: False)

    def report(self, action: Action, seconds: float) -> CopyReport:
        """Return what was done."""
        tables = [
            TableCopy(
                name=name,
                rows=(count := self._counts.get(name, Counts(rows=self._sizes[name].rows))).rows,
                written=count.written,
                bytes=count.bytes or self._sizes[name].bytes,
            )
            for name in self._contents.names
        ]
        return CopyReport(
            source=str(self._source.target),
            dest=str(self._dest),
            action=action,
            revision=self._contents.revision,
            tables=tuple(tables),
            snapshots=self._snapshots,
            seconds=seconds,
            dry_run=self._options.dry_run,
            notes=tuple(self._notes),
            estimate=self._estimate,
        )
