"""Alembic's commands as functions: they return frozen results and print nothing."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, TypeAlias

from alembic import command
from alembic.util import CommandError

from harel_schema import dbapi
from harel_schema.dbapi.waiting import PATIENCE
from harel_schema.errors import MigrationError
from harel_schema.migrate.connect import label
from harel_schema.migrate.environment import JOB
from harel_schema.migrate.results import Current, Migrated, Plan, Step
from harel_schema.migrate.runner import Job
from harel_schema.names import DEFAULT_PREFIX, check_prefix
from harel_schema.revisions import ALEMBIC, alembic_config, history
from harel_schema.target import Target

if TYPE_CHECKING:
    import os
    from collections.abc import Callable

    from alembic.config import Config

__all__ = ["current", "downgrade", "plan", "stamp", "upgrade", "upgrade_sql"]

Named: TypeAlias = "Target | str | os.PathLike[str] | dbapi.Connection"


def upgrade(
    database: Named,
    revision: str = "head",
    prefix: str = DEFAULT_PREFIX,
    *,
    timeout: float = PATIENCE,
    on_step: Callable[[Step], object] | None = None,
) -> Migrated:
    """Upgrade to `revision`, each step in one transaction together with its version row.

    `database` is a target, its text, or an open connection that is in no transaction. A database
    without a version row whose tables have exactly a revision's shape is taken over at it.
    `timeout` is how many seconds to wait for a lock, or for a silent server; an open connection
    has its own. `on_step` is called before each revision is run, in its transaction.

    Raises `SchemaMismatch` when there are tables of no revision's shape, `UnknownRevision` when
    the database is ahead, `MigrationError` when a step fails (nothing of it is kept), and the
    errors of `Target` and `dbapi`.
    """
    job = _job(database, prefix, timeout)
    job.on_step = on_step
    return _migrate(job, f"upgraded to {revision!r}", lambda c: command.upgrade(c, revision))


def downgrade(
    database: Named,
    revision: str,
    prefix: str = DEFAULT_PREFIX,
    *,
    timeout: float = PATIENCE,
    force: bool = False,
) -> Migrated:
    """Downgrade to `revision` (``base``: before the first one), each step in one transaction.

    Raises `MigrationError` when a table that would be dropped holds rows, unless `force`; and
    what `upgrade` raises.
    """
    job = _job(database, prefix, timeout, force=force)
    return _migrate(job, f"downgraded to {revision!r}", lambda c: command.downgrade(c, revision))


def stamp(  # noqa: PLR0913 - keyword-only options of one verb
    database: Named,
    revision: str,
    prefix: str = DEFAULT_PREFIX,
    *,
    timeout: float = PATIENCE,
    purge: bool = False,
    force: bool = False,
) -> Migrated:
    """Write `revision` into the version table, without running anything.

    `purge` first deletes what the version table holds, also what cannot be understood. Raises
    `SchemaMismatch` when the tables have not the shape of `revision`, unless `force`;
    `MigrationError` for an unknown revision, and what `upgrade` raises.
    """
    job = _job(database, prefix, timeout, force=force)
    return _migrate(
        job, f"stamped as {revision!r}", lambda config: command.stamp(config, revision, purge=purge)
    )


def current(
    database: Named,
    prefix: str = DEFAULT_PREFIX,
    *,
    timeout: float = PATIENCE,
    shape: bool = False,
) -> Current:
    """Return the revision of a database and what is pending; changes nothing.

    With `shape`, also whether its tables are those of its revision. Raises `UnknownRevision` when
    the database is ahead, `MigrationError` when its version table cannot be understood, and the
    errors of `Target` and `dbapi`.
    """
    job = _job(database, prefix, timeout)
    job.compare = shape
    _run(job, f"{label(job.database)} cannot be read", command.current)
    chain = tuple(each.revision for each in history())
    pending = chain[chain.index(job.before) + 1 if job.before else 0 :]
    return Current(label(job.database), job.prefix, job.before, chain[-1], pending, job.shape)


def plan(
    database: Named,
    revision: str = "head",
    prefix: str = DEFAULT_PREFIX,
    *,
    timeout: float = PATIENCE,
) -> Plan:
    """Return what `upgrade` would do with the same arguments, and its SQL; changes nothing.

    A file that does not exist is planned as an empty database. Raises what `upgrade` raises
    before it writes.
    """
    job = _job(database, prefix, timeout)
    job.dry_run = True
    what = f"{label(job.database)} cannot be upgraded to {revision!r}"
    _run(job, what, lambda config: command.upgrade(config, revision))
    adopted = job.predicted
    sql, at = [], job.before or "base"
    for each in sorted((*adopted, *job.pending), key=[r.revision for r in history()].index):
        make = _stamp_sql if each in adopted else upgrade_sql
        sql.append(make(f"{at}:{each}", prefix))
        at = each
    seconds = max((wait.seconds for wait in job.waits.values()), default=0.0)
    return Plan(
        label(job.database), job.prefix, job.before, adopted, job.pending, "".join(sql), seconds
    )


def upgrade_sql(revision: str = "head", prefix: str = DEFAULT_PREFIX) -> str:
    """Return the SQL text of an upgrade, from base or as a range (``0001:head``).

    Each revision is one transaction together with its version row. Raises `TargetError` for a
    bad prefix and `MigrationError` for an unknown revision.
    """
    return _sql(prefix, revision, lambda c: command.upgrade(c, revision, sql=True))


def _stamp_sql(revision: str, prefix: str) -> str:
    return _sql(prefix, revision, lambda config: command.stamp(config, revision, sql=True))


def _sql(prefix: str, revision: str, work: Callable[[Config], object]) -> str:
    buffer = io.StringIO()
    config = alembic_config()
    config.output_buffer = buffer
    job = Job(Target.parse(":memory:"), check_prefix(prefix))
    _run(job, f"no SQL leads to {revision!r}", work, config)
    return buffer.getvalue()


def _job(database: Named, prefix: str, timeout: float, *, force: bool = False) -> Job:
    if isinstance(database, dbapi.Connection):
        if database.in_transaction:
            raise MigrationError(
                "the connection is in a transaction", remedy="commit or roll back first"
            )
        return Job(database, check_prefix(prefix), timeout, force=force)
    return Job(Target.parse(database), check_prefix(prefix), timeout, force=force)


def _migrate(job: Job, what: str, work: Callable[[Config], object]) -> Migrated:
    _run(job, f"{label(job.database)} cannot be {what}", work)
    return Migrated(
        target=label(job.database),
        prefix=job.prefix,
        before=job.before,
        after=job.after,
        applied=tuple(job.applied),
        adopted=tuple(job.adopted),
        dropped=tuple(job.dropped),
    )


def _run(
    job: Job, what: str, work: Callable[[Config], object], config: Config | None = None
) -> None:
    """Run a command; `what` is said where it does not fit the chain of revisions."""
    config = config or alembic_config()
    config.attributes[JOB] = job
    with ALEMBIC:
        try:
            work(config)
        # Alembic asserts, instead of saying so, on texts like "", "@" and "head+1".
        except (CommandError, AssertionError) as error:
            start = f" from {job.before}" if job.before else ""
            raise MigrationError(
                f"{what}{start}",
                remedy="`harel-schema history` lists the revisions",
            ) from error
