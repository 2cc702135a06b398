"""A progress bar on stderr, for long work on a terminal."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.console import Console
from rich.filesize import decimal
from rich.progress import (
    BarColumn,
    Progress,
    ProgressColumn,
    Task,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.progress_bar import ProgressBar

from harel_schema.cli.events import EventWriter

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from harel_schema.cli.options import Output
    from harel_schema.migrate import Step as Revision
    from harel_schema.transfer import OnProgress
    from harel_schema.transfer import Progress as Step

__all__ = ["fleet_bar", "progress_bar", "step_bar"]


@contextmanager
def progress_bar(output: Output) -> Iterator[OnProgress | None]:
    """Give the callback that draws a bar, or None where there is no terminal to draw on.

    The bar shows the phase, the table, rows, bytes, rows a second, and the time that is left.
    With `--format json` there are events instead, wherever stderr goes.
    """
    if output.format == "json" and not output.quiet:
        yield EventWriter(output)
        return
    if not output.shows_progress:
        yield None
        return
    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.completed:,.0f} rows"),
        TextColumn("{task.fields[size]}"),
        TextColumn("{task.fields[rate]}"),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
    )
    with bar:
        task = bar.add_task("", total=None, size="", rate="")

        def show(step: Step) -> None:
            speed = bar.tasks[0].speed
            bar.update(
                task,
                description=f"{step.phase} {step.table}".strip(),
                completed=step.rows_done,
                total=step.rows_total,
                size=decimal(step.bytes_done),
                rate=f"{speed:,.0f} rows/s" if speed else "",
            )

        yield show


@contextmanager
def fleet_bar(output: Output, total: int) -> Iterator[Callable[[], object]]:
    """Give the function that counts one database more on a bar, where there is a terminal."""
    if not output.shows_progress:
        yield lambda: None
        return
    bar = Progress(
        TextColumn("{task.completed:,.0f} of {task.total:,.0f} databases"),
        BarColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
    )
    with bar:
        task = bar.add_task("", total=total)
        yield lambda: bar.advance(task)


@contextmanager
def step_bar(output: Output) -> Iterator[Callable[[Revision], object]]:
    """Give the callback that says how long a revision keeps writers waiting, and draws its time.

    One statement does most of the work and tells nothing meanwhile: the bar goes by the clock.
    """

    def say(step: Revision) -> None:
        if step.is_long:
            rows = f"{step.rows:,} rows"
            output.note(f"{step.revision}: writers wait about {step.seconds:.0f} s ({rows})")

    if not output.shows_progress:
        yield say
        return
    bar = Progress(
        TextColumn("{task.description}"),
        _Clock(),
        TimeElapsedColumn(),
        console=Console(stderr=True),
        transient=True,
    )
    with bar:

        def show(step: Revision) -> None:
            say(step)
            for task in bar.task_ids:
                bar.remove_task(task)
            name = f"{step.revision} ({step.number} of {step.total})"
            bar.add_task(name, total=step.seconds or None)

        yield show


class _Clock(ProgressColumn):
    """A bar that is as full as the time that was expected has passed."""

    def render(self, task: Task) -> ProgressBar:
        """Return the bar; one without an end where the time is not known."""
        return ProgressBar(total=task.total, completed=task.elapsed or 0.0, pulse=not task.total)
