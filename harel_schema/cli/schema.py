"""The verbs that own the schema: upgrade, downgrade, current, history, stamp."""

from __future__ import annotations

import click

from harel_schema import migrate, report
from harel_schema.cli.options import (
    Format,
    Output,
    database_options,
    output_options,
    prefix_option,
    resolve_target,
)

__all__ = ["current", "downgrade", "history", "stamp", "upgrade"]

_REVISION = "A revision, or head, base, +1, -1."


@click.command()
@database_options
@prefix_option
@click.option("--revision", default="head", show_default=True, help=_REVISION)
@click.option("--dry-run", is_flag=True, help="Print the plan and its SQL; change nothing.")
@output_options
def upgrade(
    *,
    target: str | None,
    auth_token: str | None,
    prefix: str,
    revision: str,
    dry_run: bool,
    format_: Format,
    quiet: bool,
) -> None:
    """Bring the schema of TARGET to a revision, head by default.

    Each revision is one transaction together with its version row. A database that harel itself
    made is recognised by its tables and taken over; one whose tables differ is refused.
    """
    database = resolve_target(target, auth_token)
    output = Output(format_, quiet)
    if dry_run:
        plan = migrate.plan(database, revision, prefix)
        output.result(plan, report.plan_text(plan))
    else:
        result = migrate.upgrade(database, revision, prefix)
        output.result(result, report.migrated_text(result))


@click.command()
@database_options
@prefix_option
@click.option("--revision", required=True, help=_REVISION)
@click.option("--force", is_flag=True, help="Also drop tables that hold rows.")
@output_options
def downgrade(
    *,
    target: str | None,
    auth_token: str | None,
    prefix: str,
    revision: str,
    force: bool,
    format_: Format,
    quiet: bool,
) -> None:
    """Take the schema of TARGET back to an earlier revision.

    Tables that the later revisions made are dropped; while they hold rows this is refused.
    """
    database = resolve_target(target, auth_token)
    result = migrate.downgrade(database, revision, prefix, force=force)
    Output(format_, quiet).result(result, report.migrated_text(result))


@click.command()
@database_options
@prefix_option
@output_options
def current(
    *,
    target: str | None,
    auth_token: str | None,
    prefix: str,
    format_: Format,
    quiet: bool,
) -> None:
    """Show the revision of TARGET, head, and what is pending. Changes nothing."""
    database = resolve_target(target, auth_token)
    result = migrate.current(database, prefix)
    Output(format_, quiet).result(result, report.current_text(result))


@click.command()
@output_options
def history(*, format_: Format, quiet: bool) -> None:
    """List the revisions that this version knows, oldest first."""
    revisions = migrate.history()
    Output(format_, quiet).result(revisions, report.history_text(revisions))


@click.command()
@database_options
@prefix_option
@click.option("--revision", required=True, help=_REVISION)
@click.option("--purge", is_flag=True, help="Delete first what the version table holds.")
@output_options
def stamp(
    *,
    target: str | None,
    auth_token: str | None,
    prefix: str,
    revision: str,
    purge: bool,
    format_: Format,
    quiet: bool,
) -> None:
    """Write a revision into the version table of TARGET, without running anything."""
    database = resolve_target(target, auth_token)
    result = migrate.stamp(database, revision, prefix, purge=purge)
    Output(format_, quiet).result(result, report.migrated_text(result))
