"""Running a command's steps: each in one BEGIN IMMEDIATE transaction with its version row.

A command is planned first, on a connection that writes nothing. Each step of the plan then
begins its transaction, reads the version row again and goes on from where the database is
by now, so that of several processes each revision is run by exactly one.
"""

from __future__ import annotations

import logging
import warnings
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from alembic import context
from alembic.runtime.migration import StampStep
from sqlalchemy.exc import DBAPIError

from harel_schema.dbapi.waiting import PATIENCE
from harel_schema.errors import (
    BusyError,
    ConnectionLost,
    MigrationError,
    RequestTimeout,
    SchemaMismatch,
    TransactionLost,
)
from harel_schema.migrate import survey
from harel_schema.migrate.connect import check, label, open_database, own_errors, raw
from harel_schema.migrate.cost import Wait, large_tables, wait_for
from harel_schema.migrate.results import Step
from harel_schema.migrate.shape import Shapes
from harel_schema.migrate.versions import heads
from harel_schema.names import version_table
from harel_schema.revisions import identifiers
from harel_schema.tables import shared_metadata

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    import sqlalchemy as sa
    from alembic.runtime.migration import MigrationContext, MigrationStep
    from alembic.script import ScriptDirectory

    from harel_schema.migrate.connect import Database

    Work = Callable[[Any, MigrationContext], Iterable[MigrationStep]]

__all__ = ["Job", "options", "run"]

log = logging.getLogger("harel_schema.migrate")

# A server takes a transaction away after 5 s if another writer waits; a fresh one gets through.
_RETRIES = 5
# What Alembic calls the work of its commands that change a database.
_CHANGING = ("upgrade", "downgrade", "do_stamp")
_TRANSIENT = (BusyError, ConnectionLost, TransactionLost)


@dataclass
class Job:
    """One command of Alembic on one database, and what became of it."""

    database: Database
    prefix: str
    timeout: float = PATIENCE
    force: bool = False
    dry_run: bool = False
    compare: bool = False
    on_step: Callable[[Step], object] | None = None
    before: str | None = None
    after: str | None = None
    applied: list[str] = field(default_factory=list)
    adopted: list[str] = field(default_factory=list)
    predicted: tuple[str, ...] = ()
    pending: tuple[str, ...] = ()
    dropped: list[str] = field(default_factory=list)
    shape: tuple[str, ...] | None = None
    waits: dict[str, Wait] = field(default_factory=dict)


@dataclass(frozen=True)
class _Plan:
    """What a command wants to do: nothing, a stamp, or steps up or down the chain."""

    steps: list[MigrationStep]
    work: Work

    @property
    def command(self) -> str:
        """The command's name, as Alembic calls what it runs."""
        return _name(self.work)

    @property
    def is_stamp(self) -> bool:
        return bool(self.steps) and isinstance(self.steps[0], StampStep)

    @property
    def is_upgrade(self) -> bool:
        return bool(self.steps) and not self.is_stamp and self.steps[0].is_upgrade

    @property
    def destination(self) -> str | None:
        return _one(self.steps[-1].to_revisions_no_deps)

    def step_from(self, revision: str | None) -> MigrationStep | None:
        """Return the step that starts at `revision`, None where the plan has none."""
        starts = (step for step in self.steps if _one(step.from_revisions_no_deps) == revision)
        return next(starts, None)

    def taken_over(self, revision: str | None, there: tuple[str, ...]) -> tuple[str, ...]:
        """Return the revisions that the steps from `revision` on find in place, without a gap."""
        found: list[str] = []
        while (step := self.step_from(found[-1] if found else revision)) is not None:
            after = _one(step.to_revisions_no_deps)
            if after is None or after not in there:
                break
            found.append(after)
        return tuple(found)


@dataclass(frozen=True)
class _Done:
    """What one transaction did."""

    after: str | None
    applied: str | None = None
    adopted: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ()


def options(job: Job) -> dict[str, Any]:
    """Return what every `context.configure()` of ours is given."""
    meta = shared_metadata(job.prefix)
    owned = {name.lower() for name in meta.tables}
    return {
        "include_name": lambda name, kind, _: kind != "table" or name.lower() in owned,
        "prefix": job.prefix,
        "target_metadata": meta,
        "transaction_per_migration": True,
        "transactional_ddl": True,
        "version_table": version_table(job.prefix),
    }


def run(job: Job) -> None:
    """Run the command of Alembic's current environment on the job's database."""
    with (
        own_errors(),
        open_database(job.database, read_only=True, timeout=job.timeout) as connection,
    ):
        plan = _plan(job, connection)
        if plan.command == "upgrade":
            survey.refuse(raw(connection), job.prefix)
        # Where there are no steps, because the row says so, it is still to be true.
        if plan.command in _CHANGING and not plan.is_stamp and (plan.steps or not job.force):
            _foresee(job, plan, connection)
        if job.compare:
            job.shape = Shapes(_script(context.get_context()), job.prefix).differences(
                connection, job.before
            )
    check(job.database, write=bool(plan.steps), create=plan.is_upgrade)
    if not plan.steps or job.dry_run:
        return
    for attempt in range(_RETRIES + 1):
        try:
            with own_errors(), open_database(job.database, timeout=job.timeout) as connection:
                while _transaction(job, plan, connection):
                    pass
        except (ConnectionLost, TransactionLost) as error:
            if attempt == _RETRIES or isinstance(error, RequestTimeout):
                raise
            log.warning("%s: %s; trying again", label(job.database), error)
        else:
            return


def _plan(job: Job, connection: sa.Connection) -> _Plan:
    """Ask the command for its steps; a command that only looks does so here, and has none."""
    current = _configure(job, connection)
    work: Work = current.opts["fn"]
    found = () if current.purge else heads(current)
    job.before = job.after = _one(found)
    command = _name(work)
    if not found and command in _CHANGING and not job.force:
        survey.refuse_unversioned(raw(connection), job.prefix, down=command == "downgrade")
    with warnings.catch_warnings():
        # Autogenerate cannot compare such an index; `harel-schema check` does.
        warnings.filterwarnings("ignore", ".*expression-based index", Warning)
        return _Plan(list(work(found, current)), work)


def _foresee(job: Job, plan: _Plan, connection: sa.Connection) -> None:
    """Refuse what would fail later; note what an upgrade would do."""
    current = context.get_context()
    shapes = Shapes(_script(current), job.prefix)
    try:
        down = bool(plan.steps) and not plan.is_upgrade
        shapes.refuse_lie(connection, job.before, down=down)
        if plan.is_upgrade:
            _predict(job, plan, connection, shapes)
    except SchemaMismatch:
        # Another process may have migrated since we read the revision: a server has no snapshot
        # for both looks. Each step looks again in its transaction.
        if _one(heads(current)) == job.before:
            raise


def _predict(job: Job, plan: _Plan, connection: sa.Connection, shapes: Shapes) -> None:
    """Note what an upgrade would do, and how long its revisions take where that is long."""
    there = shapes.there(connection, job.before)
    names = [name for step in plan.steps for name in step.to_revisions_no_deps]
    job.predicted = tuple(name for name in names if name in there)
    job.pending = tuple(name for name in names if name not in there)
    shapes.refuse_taken(connection, job.pending)
    large = large_tables(connection, shapes.present(connection))
    if large:
        job.waits = {
            name: wait_for(connection, shapes.indexes_of(name), large) for name in job.pending
        }
    for name in job.waits:
        step = _told(job, plan, name)
        if step.is_long:
            log.info(
                "%s: writers will wait about %.0f s for %s (%s rows)",
                label(job.database), step.seconds, name, f"{step.rows:,}",
            )  # fmt: skip


def _transaction(job: Job, plan: _Plan, connection: sa.Connection) -> bool:
    """Run a stamp or the next step; return whether there may be another one."""
    with connection.begin() as transaction:
        done = _stamp(job, plan, connection) if plan.is_stamp else _step(job, plan, connection)
        if done is None:
            transaction.rollback()
            return False
    # Only what is committed counts.
    job.after = done.after
    if done.adopted:
        job.adopted += done.adopted
        log.info("%s: taken over as it is at %s", label(job.database), done.adopted[-1])
    if done.applied:
        job.applied.append(done.applied)
        verb = "upgraded" if plan.is_upgrade else "downgraded"
        what = f", dropped {', '.join(done.dropped)}" if done.dropped else ""
        log.info("%s: %s to %s%s", label(job.database), verb, done.after or "base", what)
        job.dropped += done.dropped
    return not plan.is_stamp


def _stamp(job: Job, plan: _Plan, connection: sa.Connection) -> _Done:
    if not job.force:
        shapes = Shapes(_script(_configure(job, connection)), job.prefix)
        shapes.refuse_stamp(connection, plan.destination)
    _run(job, connection, plan.work, "the stamp")
    return _Done(after=plan.destination)


def _step(job: Job, plan: _Plan, connection: sa.Connection) -> _Done | None:
    current = _configure(job, connection)
    script = _script(current)
    shapes = Shapes(script, job.prefix)
    revision = _one(heads(current))
    there = shapes.there(connection, revision) if plan.is_upgrade else ()
    adopted = plan.taken_over(revision, there)
    if adopted:
        current.stamp(script, adopted[-1])
        revision = adopted[-1]
    step = plan.step_from(revision)
    if step is None:
        _check_arrival(job, plan, identifiers(script), revision)
        job.after = revision
        return _Done(after=revision, adopted=adopted) if adopted else None
    after = _one(step.to_revisions_no_deps)
    if plan.is_upgrade and job.on_step is not None and after is not None:
        job.on_step(_told(job, plan, after))
    applied, dropped = (after if plan.is_upgrade else revision), tuple[str, ...]()
    if not plan.is_upgrade:
        if not job.force:
            shapes.refuse_loss(connection, revision, plan.destination)
        dropped = shapes.dropped(connection, revision, after)
    _run(job, connection, lambda *_: [step], f"revision {applied}")
    return _Done(after, applied=applied, adopted=adopted, dropped=dropped)


def _told(job: Job, plan: _Plan, revision: str) -> Step:
    names = [_one(each.to_revisions_no_deps) for each in plan.steps]
    wait = job.waits.get(revision, Wait())
    return Step(revision, names.index(revision) + 1, len(names), wait.seconds, wait.rows)


def _check_arrival(job: Job, plan: _Plan, chain: tuple[str, ...], revision: str | None) -> None:
    """Raise `MigrationError` if another process took the database off the plan's way."""
    at, end = (chain.index(name) if name else -1 for name in (revision, plan.destination))
    if (plan.is_upgrade and at < end) or (not plan.is_upgrade and at > end):
        raise MigrationError(
            f"{label(job.database)}: another process moved it to {revision or 'base'} meanwhile",
            remedy="run it again when the other one has ended",
        )


def _run(job: Job, connection: sa.Connection, work: Work, what: str) -> None:
    """Let Alembic run the steps and write the version row, in the transaction that is open."""
    _configure(job, connection, fn=work)
    try:
        context.run_migrations()
    except DBAPIError as error:
        if isinstance(error.orig, _TRANSIENT):
            raise
        raise MigrationError(
            f"{label(job.database)}: {what} failed and was rolled back: {error.orig}",
            remedy="`harel-schema check` names what is in the way",
        ) from error


def _configure(job: Job, connection: sa.Connection, **more: Any) -> MigrationContext:
    context.configure(connection=connection, **options(job), **more)
    return context.get_context()


def _name(work: Work) -> str:
    return getattr(work, "__name__", "")


def _script(current: MigrationContext) -> ScriptDirectory:
    if current.script is None:
        raise TypeError("Alembic's context has no script directory")
    return current.script


def _one(revisions: tuple[str, ...]) -> str | None:
    return revisions[0] if revisions else None
