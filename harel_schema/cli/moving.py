"""The verbs that move a live store: move, unfence."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

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
from harel_schema.errors import HarelSchemaError
from harel_schema.move.progress import Stage, stage

if TYPE_CHECKING:
    from collections.abc import Iterator

    from harel_schema.target import Target

__all__ = ["move", "unfence"]

_AGAIN: Final = "run the same command again, which {}, or with --abort, which {}"
_STAGES: Final[dict[Stage, str]] = {
    "not begun": "nothing was written",
    "begun": "{source} is open and whole, {dest} cannot be opened yet; "
    + _AGAIN.format("goes on", "gives the move up"),
    "fenced": "{source} takes no more writes, {dest} holds every row and is not open yet; "
    + _AGAIN.format("opens it", "opens {source} again"),
    "moved": "the move is finished: {source} takes no more writes, {dest} is open",
}
_UNKNOWN: Final = _AGAIN.format("goes on where this one stopped", "gives the move up")
# Seconds that an end may take to say how far a move is that was interrupted.
_GLANCE: Final = 5.0


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
    with progress_bar(output) as progress, _told(first, second, prefix):
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


@contextmanager
def _told(source: Target, dest: Target, prefix: str) -> Iterator[None]:
    """Say what an interrupt means: both ends are asked."""
    try:
        yield
    except KeyboardInterrupt:
        try:
            text = _STAGES[stage(source, dest, prefix=prefix, timeout=_GLANCE)]
        except HarelSchemaError:
            text = _UNKNOWN
        raise KeyboardInterrupt(text.format(source=source, dest=dest)) from None


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
