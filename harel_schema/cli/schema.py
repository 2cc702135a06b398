"""The verbs that own the schema: upgrade, downgrade, current, history, stamp."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import click

from harel_schema import migrate, report
from harel_schema.cli.fleet import Answer, Fleet, fleet_options, named, run
from harel_schema.cli.options import (
    Format,
    Output,
    database_options,
    output_options,
    prefix_option,
    resolve_target,
)
from harel_schema.cli.progress import step_bar
from harel_schema.cli.waits import wait_option

if TYPE_CHECKING:
    from harel_schema.target import Target

__all__ = ["current", "downgrade", "history", "stamp", "upgrade"]

_REVISION = "A revision, or head, base, +1, -1."


@click.command(short_help="Bring the schema to a revision, head by default.")
@fleet_options
@prefix_option
@click.option("--revision", default="head", show_default=True, metavar="REVISION", help=_REVISION)
@click.option("--dry-run", is_flag=True, help="Print the plan and its SQL; change nothing.")
@click.option(
    "--sql",
    is_flag=True,
    help="Print the SQL from base to the revision, or of a range such as 0001:head; open nothing.",
)
@output_options
@wait_option
def upgrade(
    *,
    fleet: Fleet | None,
    prefix: str,
    revision: str,
    dry_run: bool,
    sql: bool,
    timeout: float,
    format_: Format,
    quiet: bool,
) -> int:
    """Bring the schema of each TARGET to a revision, head by default.

    Each revision is one transaction together with its version row. A database that harel itself
    made is recognised by its tables and taken over; one whose tables differ is refused.
    """
    output = Output(format_, quiet)
    if sql:
        text = migrate.upgrade_sql(revision, prefix)
        output.result({"sql": text}, text.strip())
        return 0
    fleet = named(fleet)
    if fleet.alone is None:
        do = _plan if dry_run else _upgrade
        work = partial(do, revision=revision, prefix=prefix, timeout=timeout)
        return run(work, fleet, output)
    if dry_run:
        plan = migrate.plan(fleet.alone, revision, prefix, timeout=timeout)
        output.result(plan, report.plan_text(plan))
    else:
        with step_bar(output) as on_step:
            result = migrate.upgrade(
                fleet.alone, revision, prefix, timeout=timeout, on_step=on_step
            )
        output.result(result, report.migrated_text(result))
    return 0


def _upgrade(target: Target, *, revision: str, prefix: str, timeout: float) -> Answer:
    result = migrate.upgrade(target, revision, prefix, timeout=timeout)
    word = "upgraded" if result.before != result.after else "unchanged"
    return Answer(report.migrated_line(result), word, result)


def _plan(target: Target, *, revision: str, prefix: str, timeout: float) -> Answer:
    plan = migrate.plan(target, revision, prefix, timeout=timeout)
    word = "to upgrade" if plan.adopted or plan.pending else "unchanged"
    return Answer(report.plan_line(plan), word, plan)


@click.command(short_help="Take the schema back to an earlier revision.")
@database_options
@prefix_option
@click.option("--revision", required=True, metavar="REVISION", help=_REVISION)
@click.option("--force", is_flag=True, help="Also drop tables that hold rows.")
@output_options
@wait_option
def downgrade(
    *,
    target: str | None,
    auth_token: str | None,
    prefix: str,
    revision: str,
    force: bool,
    timeout: float,
    format_: Format,
    quiet: bool,
) -> None:
    """Take the schema of TARGET back to an earlier revision.

    Tables that the later revisions made are dropped; while they hold rows this is refused.
    """
    database = resolve_target(target, auth_token)
    result = migrate.downgrade(database, revision, prefix, timeout=timeout, force=force)
    Output(format_, quiet).result(result, report.migrated_text(result))


@click.command(short_help="Show the revision, head, and what is pending.")
@fleet_options
@prefix_option
@click.option("-v", "--verbose", is_flag=True, help="Also compare the tables with the revision.")
@output_options
@wait_option
def current(
    *,
    fleet: Fleet | None,
    prefix: str,
    verbose: bool,
    timeout: float,
    format_: Format,
    quiet: bool,
) -> int:
    """Show the revision of each TARGET, head, and what is pending. Changes nothing."""
    output, fleet = Output(format_, quiet), named(fleet)
    if fleet.alone is None:
        work = partial(_current, prefix=prefix, verbose=verbose, timeout=timeout)
        return run(work, fleet, output)
    result = migrate.current(fleet.alone, prefix, timeout=timeout, shape=verbose)
    output.result(result, report.current_text(result))
    return 0


def _current(target: Target, *, prefix: str, verbose: bool, timeout: float) -> Answer:
    result = migrate.current(target, prefix, timeout=timeout, shape=verbose)
    word = f"at {result.revision or 'no revision'}"
    return Answer(report.current_line(result), word, result)


@click.command()
@output_options
def history(*, format_: Format, quiet: bool) -> None:
    """List the revisions that this version knows, oldest first."""
    revisions = migrate.history()
    Output(format_, quiet).result(revisions, report.history_text(revisions))


@click.command(short_help="Write a revision into the version table, run nothing.")
@database_options
@prefix_option
@click.option("--revision", required=True, metavar="REVISION", help=_REVISION)
@click.option("--purge", is_flag=True, help="Delete first what the version table holds.")
@click.option("--force", is_flag=True, help="Also where the tables are not those of the revision.")
@output_options
@wait_option
def stamp(
    *,
    target: str | None,
    auth_token: str | None,
    prefix: str,
    revision: str,
    purge: bool,
    force: bool,
    timeout: float,
    format_: Format,
    quiet: bool,
) -> None:
    """Write a revision into the version table of TARGET, without running anything.

    Refused where the tables are not those of the revision, unless forced.
    """
    database = resolve_target(target, auth_token)
    result = migrate.stamp(database, revision, prefix, timeout=timeout, purge=purge, force=force)
    Output(format_, quiet).result(result, report.migrated_text(result))
