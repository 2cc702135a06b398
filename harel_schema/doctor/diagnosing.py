"""The course of a diagnosis: the schema, the file, the rows of each table once."""

from __future__ import annotations

import shlex
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from harel_schema import drift
from harel_schema.dbapi.waiting import PATIENCE
from harel_schema.doctor import file
from harel_schema.doctor.kinds import Kind
from harel_schema.doctor.model import NAMED, Diagnosis, Figures, Finding, Thresholds
from harel_schema.doctor.rules import FINISHED, NEWEST, Rule, rules
from harel_schema.drift import scan
from harel_schema.drift.data import difference
from harel_schema.drift.probes import Probe, probes
from harel_schema.drift.unfinished import unfinished
from harel_schema.errors import SchemaMismatch
from harel_schema.introspect import fold, quote
from harel_schema.names import DEFAULT_PREFIX, check_prefix, prefix_argument
from harel_schema.target import Target
from harel_schema.transfer.access import open_database
from harel_schema.transfer.layout import Query
from harel_schema.transfer.plan import own_names
from harel_schema.transfer.progress import Meter

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator, Sequence

    from harel_schema.drift import Drift
    from harel_schema.introspect import Column, Schema, Table
    from harel_schema.transfer.access import Database
    from harel_schema.transfer.model import OnProgress

__all__ = ["diagnose"]

_WORST_FIRST: Final = ("error", "warning", "note")
_CHECK: Final = "harel-schema check {}"
_NOT_MENDED: Final = "no statement mends this: restore the rows from a backup"
_LIVE: Final = "read while others may write: each table's figures are of the moment it was read"


def diagnose(  # noqa: PLR0913 - keyword-only options of one verb
    database: Target | str | os.PathLike[str],
    *,
    prefix: str = DEFAULT_PREFIX,
    thresholds: Thresholds | None = None,
    live: bool = False,
    timeout: float = PATIENCE,
    progress: OnProgress | None = None,
) -> Diagnosis:
    """Examine a database, which is opened read-only; nothing is created or changed.

    Ages are measured at the newest commit, so that a backup and a store at rest raise no alarm;
    with `live` by the clock: the workers are meant to be running. A file is read in one
    snapshot. `timeout` is how many seconds to wait for a lock, or for a silent server.

    Raises `TargetError` or `NotADatabaseError` for what is no database, `SchemaMismatch` for one
    without harel's tables, `DatabaseError` for one so damaged that its schema cannot be read,
    and `BusyError`, `ConnectionLost`, `AuthError` or `InterfaceError` for one that cannot be read.
    """
    started = time.monotonic()
    target = Target.parse(database)
    target.check_readable()
    check_prefix(prefix)
    with (
        open_database(target, read_only=True, timeout=timeout) as opened,
        opened.snapshot(),
    ):
        found = opened.schema(prefix)
        said = unfinished(lambda sql: opened.query(Query(sql)), found, prefix)
        examined = drift.check_schema(found, prefix=prefix, said=said)
        _check_ours(target, found, examined, prefix)
        tables = [table for name in own_names(prefix) if (table := found.table(name))]
        meter = Meter(progress)
        meter.start("check")
        whole = file.look(opened, found, tables, count=progress is not None)
        meter.start("check", sum(whole.rows) if whole.rows else None)
        rows = _Rows(opened, found, prefix, thresholds or Thresholds(), meter)
        if whole.readable:
            rows.read(tables, time.time() if live else None)
    findings = [*whole.findings, *_drifted(target, examined, prefix), *rows.findings()]
    findings.sort(key=lambda each: _WORST_FIRST.index(each.severity))
    return Diagnosis(
        target=str(target),
        prefix=prefix,
        revision=examined.revision,
        head=examined.head,
        sound=not any(each.severity == "error" for each in findings),
        findings=tuple(findings),
        tables=tuple(rows.figures()),
        bytes=whole.bytes,
        free=whole.free,
        measured_at=rows.now,
        notes=tuple(_notes(examined, prefix, remote=opened.remote)),
        seconds=time.monotonic() - started,
    )


def _check_ours(target: Target, found: Schema, examined: Drift, prefix: str) -> None:
    """Refuse a database without tables of the prefix."""
    if any(found.table(name) for name in own_names(prefix)):
        return
    fix = next((each.fix for each in examined if each.fix), None) or ""
    if fix.startswith("harel-schema adopt"):
        raise SchemaMismatch(
            f"{target} holds the tables of harel before 0.7", remedy=f"run {fix} {target} first"
        )
    raise SchemaMismatch(
        f"{target} holds no tables of the prefix {prefix!r}",
        remedy="check --prefix, or make them with harel-schema upgrade "
        f"{target}{prefix_argument(prefix)}",
    )


def _drifted(target: Target, examined: Drift, prefix: str) -> Iterator[Finding]:
    counted = [each for each in examined if each.counts and not _is_takeover(each)]
    if counted:
        yield Finding(
            kind=Kind.SCHEMA_DRIFT,
            severity=Kind.SCHEMA_DRIFT.severity,
            table=None,
            count=len(counted),
            examples=tuple(map(str, counted[:NAMED])),
            detail=Kind.SCHEMA_DRIFT.summary,
            remedy=_CHECK.format(shlex.quote(str(target))) + prefix_argument(prefix),
        )


def _is_takeover(each: drift.Difference) -> bool:
    """Whether harel itself made the tables, which an upgrade takes over as they are."""
    return each.kind is drift.Kind.VERSION_MISSING and each.fix == "harel-schema upgrade"


def _notes(examined: Drift, prefix: str, *, remote: bool) -> Iterator[str]:
    upgrade = f"harel-schema upgrade{prefix_argument(prefix)}"
    for each in examined:
        if each.kind is drift.Kind.VERSION_BEHIND:
            yield f"at revision {each.found}, head is {each.expected}: run {upgrade}"
        elif _is_takeover(each):
            yield f"harel made the tables itself: {upgrade} takes them over as they are"
    if remote:
        yield _LIVE


@dataclass(slots=True)
class _Sums:
    """The figures of a table, run by run."""

    meter: Meter
    table: str
    rows: int = 0
    bytes: int = 0
    finished: int | None = None
    newest: float | None = None

    def add(self, cells: Sequence[Any]) -> None:
        """Take up the sums of a run."""
        rows, size, *more = cells
        self.rows += rows
        self.bytes += size
        if more:
            finished, newest = more
            self.finished = (self.finished or 0) + finished
            self.newest = max((each for each in (self.newest, newest) if each), default=None)
        self.meter.add(self.table, rows, size)


class _Rows:
    """Reads the rows of the tables, the executions first: they tell the time."""

    def __init__(
        self, database: Database, found: Schema, prefix: str, limits: Thresholds, meter: Meter
    ) -> None:
        self.now: float | None = None
        self._database = database
        self._found = found
        self._prefix = prefix
        self._limits = limits
        self._meter = meter
        self._scans: list[tuple[scan.Scan[Rule | Probe], _Sums]] = []

    def execute_reads(self, statements: Sequence[str]) -> list[list[Any] | None]:
        """See `scan.Reader`."""
        asked = list(map(Query, statements))
        if not self._database.remote:
            return [*self._database.survey(asked)]
        _, *answers, _ = self._database.survey([Query("BEGIN"), *asked, Query("COMMIT")])
        return [*answers]

    def read(self, tables: Sequence[Table], now: float | None) -> None:
        """Ask every row of `tables`; `now` is the time, None to take that of the last commit."""
        executions = fold(f"{self._prefix}_executions")
        self.now = now
        first = [table for table in tables if fold(table.name) == executions]
        self._ask(first)
        if now is None:
            # A clock that was ahead once must not make everything old.
            times = [sums.newest for _, sums in self._scans if sums.newest is not None]
            self.now = min(times[0], time.time()) if times else None
        self._ask([table for table in tables if table not in first])

    def _ask(self, tables: Sequence[Table]) -> None:
        asked = rules(self._found, self._prefix, self._limits, self.now)
        promised = drift.expected("head", self._prefix)
        begun = []
        for table in tables:
            sums = _Sums(self._meter, table.name)
            own = asked.get(fold(table.name), [])
            want = promised.table(table.name)
            single = probes(table, want, self._prefix) if want else ()
            each: scan.Scan[Rule | Probe] = scan.Scan(
                table, (*single, *own), sums=_sums_of(table, self._prefix), add=sums.add
            )
            begun.append(each)
            self._scans.append((each, sums))
        scan.read(self, begun)

    def findings(self) -> Iterator[Finding]:
        """Yield what was found in the rows."""
        for each, sums in self._scans:
            for faulty in each.faulty():
                yield self._finding(each.table, faulty)
            yield from self._long(each.table, sums.rows)

    def _finding(self, table: Table, faulty: scan.Faulty[Rule | Probe]) -> Finding:
        asked = faulty.question
        if isinstance(asked, Rule):
            detail, remedy = asked.kind.summary, asked.remedy(table, self._prefix)
        else:
            wrong = difference(table, scan.Faulty(asked, *_rest(faulty)))
            detail = f"{wrong.name}: expected {wrong.expected}, found {wrong.found}"
            remedy = wrong.fix or _NOT_MENDED
        return Finding(
            kind=asked.kind,
            severity=asked.kind.severity if isinstance(asked.kind, Kind) else "error",
            table=table.name,
            count=faulty.rows,
            examples=faulty.examples[:NAMED],
            detail=detail,
            remedy=remedy,
        )

    def _long(self, table: Table, rows: int) -> Iterator[Finding]:
        queues = {"outbox": Kind.OUTBOX_LONG, "spawns": Kind.SPAWNS_LONG}
        kind = queues.get(fold(table.name).removeprefix(f"{fold(self._prefix)}_"))
        if kind is not None and rows > self._limits.queue:
            yield Finding(
                kind=kind,
                severity=kind.severity,
                table=table.name,
                count=rows,
                examples=(),
                detail=f"{kind.summary} Expected at most {self._limits.queue:,}.",
                remedy=kind.remedy,
            )

    def figures(self) -> Iterator[Figures]:
        """Yield the size of each table that was read."""
        for each, sums in self._scans:
            yield Figures(
                table=each.table.name, rows=sums.rows, bytes=sums.bytes, finished=sums.finished
            )


def _rest(faulty: scan.Faulty[Any]) -> tuple[int, tuple[str, ...], frozenset[str]]:
    return faulty.rows, faulty.examples, faulty.whats


def _sums_of(table: Table, prefix: str) -> tuple[str, ...]:
    stored = (column for column in table.columns if column.hidden == 0)
    sums = ("count(*)", f"coalesce(sum({' + '.join(map(_size, stored))}), 0)")
    has = fold(table.name) == fold(f"{prefix}_executions") and "data" in table.by_name
    return (*sums, FINISHED, NEWEST) if has else sums


def _size(column: Column) -> str:
    name = quote(column.name)
    if column.affinity in {"INTEGER", "REAL"}:
        return f"({name} IS NOT NULL) * 8"
    return f"coalesce(length(CAST({name} AS BLOB)), 0)"
