"""The verbs that move and compare rows: copy, verify."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import click

from harel_schema import report, transfer
from harel_schema import verify as verification
from harel_schema._version import __version__
from harel_schema.cli.options import (
    PAGES,
    Format,
    Output,
    output_options,
    page_options,
    pair_options,
    prefix_option,
    resolve_pair,
    tell_report,
)
from harel_schema.cli.progress import progress_bar
from harel_schema.cli.waits import wait_option

if TYPE_CHECKING:
    from pathlib import Path
    from typing import Self

    from harel_schema.transfer import OnProgress, Progress

__all__ = ["copy", "verify"]

_GOES_ON = "run the same command again: it goes on where this one stopped"
_NOTHING = "nothing was written"


@click.command(short_help="Copy the rows from one database to another, exactly.")
@pair_options("source", "dest")
@prefix_option
@click.option("--replace", is_flag=True, help="Drop first what DEST has of these tables.")
@click.option("--merge", is_flag=True, help="Keep the rows of DEST and add those that it lacks.")
@click.option("--upgrade", is_flag=True, help="Bring DEST to head when the rows are there.")
@click.option("--all-tables", is_flag=True, help="Also copy the tables that are not harel's.")
@click.option("--dry-run", is_flag=True, help="Check everything, write nothing.")
@output_options
@wait_option
def copy(
    *,
    source: str,
    dest: str,
    source_token: str | None,
    dest_token: str | None,
    prefix: str,
    replace: bool,
    merge: bool,
    upgrade: bool,
    all_tables: bool,
    dry_run: bool,
    timeout: float,
    format_: Format,
    quiet: bool,
) -> None:
    """Copy harel's rows from SOURCE to DEST, exactly; SOURCE is not changed.

    A copy that was stopped goes on when it is run again, and a finished one changes nothing. A
    DEST that holds other rows is refused unless --replace or --merge says what to do with them.
    """
    first, second = resolve_pair(source, dest, source_token, dest_token)
    output = Output(format_, quiet)
    with progress_bar(output) as progress, _Watch(progress) as watch:
        result = transfer.copy(
            first,
            second,
            prefix=prefix,
            replace=replace,
            merge=merge,
            upgrade=upgrade,
            all_tables=all_tables,
            dry_run=dry_run,
            timeout=timeout,
            progress=watch,
        )
    output.result(result, report.copy_text(result), rows=result.rows, written=result.written)


@click.command(short_help="Compare two databases: schema, every row, sequences.")
@pair_options("a", "b")
@prefix_option
@click.option("--quick", is_flag=True, help="Compare sums only; says what it cannot see.")
@click.option("--all-tables", is_flag=True, help="Also compare the tables that are not harel's.")
@click.option(
    "--show",
    type=click.IntRange(min=0),
    default=10,
    show_default=True,
    metavar="ROWS",
    help="How many differing rows of a table are shown.",
)
@page_options
@wait_option
def verify(
    *,
    a: str,
    b: str,
    source_token: str | None,
    dest_token: str | None,
    prefix: str,
    quick: bool,
    all_tables: bool,
    show: int,
    timeout: float,
    format_: Format,
    save: tuple[Path, ...],
    quiet: bool,
) -> int:
    """Compare two databases: schema, every row to the bit, sequences. Changes nothing.

    Exit 0: the same; 1: each difference is named.
    """
    first, second = resolve_pair(a, b, source_token, dest_token)
    output = Output(format_, quiet)
    with progress_bar(output) as progress:
        result = verification.verify(
            first,
            second,
            prefix=prefix,
            show=show,
            quick=quick,
            all_tables=all_tables,
            timeout=timeout,
            progress=progress,
        )
    forms = {
        "text": partial(report.verify_text, result),
        "json": partial(report.to_json, result, equal=result.equal),
        "html": partial(report.verify_html, result, version=__version__),
    }
    tell_report(forms, format_, save, PAGES)
    if quick:
        output.note(verification.BLIND_SPOT)
    return 0 if result.equal else 1


class _Watch:
    """Knows how far a copy is, to say what an interrupt means; passes on to `progress`."""

    def __init__(self, progress: OnProgress | None) -> None:
        self._progress = progress
        self._writing = False

    def __call__(self, step: Progress) -> None:
        self._writing = self._writing or step.phase in {"copy", "finish"}
        if self._progress is not None:
            self._progress(step)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, exc_type: type[BaseException] | None, *exc_info: object) -> None:
        if exc_type is KeyboardInterrupt:
            raise KeyboardInterrupt(_GOES_ON if self._writing else _NOTHING) from None
