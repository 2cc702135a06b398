"""The verb that examines a store: doctor."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import click

from harel_schema import doctor as examining
from harel_schema import report
from harel_schema._version import __version__
from harel_schema.cli.options import (
    PAGES,
    Format,
    Output,
    Seconds,
    database_options,
    page_options,
    prefix_option,
    resolve_target,
    tell_report,
)
from harel_schema.cli.progress import progress_bar
from harel_schema.cli.waits import wait_option

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["doctor"]

_DEFAULT = examining.Thresholds()


@click.command(short_help="Examine a store: is it sound, what waits, how large is it?")
@database_options
@prefix_option
@click.option(
    "--max-age",
    type=Seconds(),
    default=round(_DEFAULT.age),
    show_default=True,
    metavar="SECONDS",
    help="How long events and children may wait, and timers be overdue.",
)
@click.option(
    "--max-queue",
    type=click.IntRange(min=0),
    default=_DEFAULT.queue,
    show_default=True,
    metavar="ROWS",
    help="How many events may wait in the outbox, and how many children to be created.",
)
@click.option(
    "--trace-max",
    type=click.IntRange(min=0),
    default=_DEFAULT.trace,
    show_default=True,
    metavar="STEPS",
    help="How many steps the workers keep in the trace of an execution; 0: all.",
)
@click.option(
    "--live",
    is_flag=True,
    help="Measure ages by the clock: the workers are meant to be running. Else they are measured "
    "at the newest commit, so that a backup raises no alarm.",
)
@page_options
@wait_option
def doctor(
    *,
    target: str | None,
    auth_token: str | None,
    prefix: str,
    max_age: float,
    max_queue: int,
    trace_max: int,
    live: bool,
    timeout: float,
    format_: Format,
    save: tuple[Path, ...],
    quiet: bool,
) -> int:
    """Examine the store in TARGET: is it sound, what waits, how large is it? Changes nothing.

    Asks for damage, and every row: what `check --data` asks of a row by itself (storage classes,
    JSON, statuses), and what must hold between rows: companions have their execution, children
    their parent, counters are ahead of their tables, queues are short and young. `check` is about
    the schema, and exits 1 for any difference; of that, doctor says only that there is one.

    Exit 0: no error, perhaps warnings; 1: an error. Each finding has its count, three examples,
    and what helps.
    """
    database = resolve_target(target, auth_token)
    output = Output(format_, quiet)
    with progress_bar(output) as progress:
        result = examining.diagnose(
            database,
            prefix=prefix,
            thresholds=examining.Thresholds(max_age, max_queue, trace_max),
            live=live,
            timeout=timeout,
            progress=progress,
        )
    forms = {
        "text": partial(report.doctor_text, result),
        "json": partial(report.to_json, result),
        "html": partial(report.doctor_html, result, version=__version__),
    }
    colored = partial(report.doctor_text, result, color=True)
    tell_report(forms, format_, save, PAGES, colored)
    return 0 if result.sound else 1
