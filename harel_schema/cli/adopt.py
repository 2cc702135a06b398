"""The verb that takes over a database of any release of harel: adopt."""

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
from harel_schema.cli.waits import wait_option

__all__ = ["adopt"]


@click.command(short_help="Bring what harel 0.1 to 0.9 wrote to head, with all its rows.")
@database_options
@prefix_option
@click.option("--dry-run", is_flag=True, help="Print what would be run, write nothing.")
@output_options
@wait_option
def adopt(
    *,
    target: str | None,
    auth_token: str | None,
    prefix: str,
    dry_run: bool,
    timeout: float,
    format_: Format,
    quiet: bool,
) -> None:
    """Bring a TARGET that harel 0.1 to 0.9 wrote to head, with all its rows and no others.

    The tables of harel before 0.7, which have no prefix, get one in a single transaction; then
    the schema is upgraded. Stop every harel before 0.7 first. Tables of other applications stay
    as they are, whatever their names. Run again, it changes nothing.
    """
    database = resolve_target(target, auth_token)
    result = migrate.adopt(database, prefix, timeout=timeout, dry_run=dry_run)
    Output(format_, quiet).result(result, report.adopted_text(result))
