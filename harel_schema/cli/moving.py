"""The verbs that move a live store: move, unfence."""

from __future__ import annotations

import click

from harel_schema import move as moving
from harel_schema import report
from harel_schema.cli.options import (
    Format,
    Output,
    database_options,
    output_options,
    pair_options,
    prefix_option,
    resolve_pair,
    resolve_target,
)
from harel_schema.cli.progress import progress_bar
from harel_schema.cli.waits import wait_option

__all__ = ["move", "unfence"]


@click.command(short_help="Move the rows while workers go on, then stop the old place.")
@pair_options("source", "dest")
@prefix_option
@click.option("--replace", is_flag=True, help="Drop first what DEST has of these tables.")
@click.option("--abort", is_flag=True, help="Give up an unfinished move; SOURCE is as before.")
@click.option("--dry-run", is_flag=True, help="Check everything, write nothing.")
@output_options
@wait_option
def move(
    *,
    source: str,
    dest: str,
    source_token: str | None,
    dest_token: str | None,
    prefix: str,
    replace: bool,
    abort: bool,
    dry_run: bool,
    timeout: float,
    format_: Format,
    quiet: bool,
) -> None:
    """Move harel's rows from SOURCE to DEST while workers go on, then stop them on SOURCE.

    Workers wait for a moment at the end only. From then on each of their writes to SOURCE fails
    and names DEST. A move that was stopped goes on when it is run again; `move DEST SOURCE` is
    the way back.
    """
    if abort and (replace or dry_run):
        raise click.UsageError("--abort goes with neither --replace nor --dry-run")
    first, second = resolve_pair(source, dest, source_token, dest_token)
    output = Output(format_, quiet)
    if abort:
        given_up = moving.abort(first, second, prefix=prefix, timeout=timeout)
        output.result(given_up, report.abort_text(given_up))
        return
    with progress_bar(output) as progress:
        result = moving.move(
            first,
            second,
            prefix=prefix,
            replace=replace,
            dry_run=dry_run,
            timeout=timeout,
            progress=progress,
        )
    output.result(result, report.move_text(result), rows=result.rows)


@click.command(short_help="Let workers write again to a database that was moved.")
@database_options
@prefix_option
@output_options
@wait_option
def unfence(
    *,
    target: str | None,
    auth_token: str | None,
    prefix: str,
    timeout: float,
    format_: Format,
    quiet: bool,
) -> None:
    """Let workers write again to a database that was moved.

    What was written to the place it was moved to is not in it: `move` brings that back.
    """
    database = resolve_target(target, auth_token)
    result = moving.unfence(database, prefix=prefix, timeout=timeout)
    Output(format_, quiet).result(result, report.unfence_text(result))
