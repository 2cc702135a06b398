"""What every benchmark prints: a figure a line, and beside it what it is compared with.

With BENCHMARK_FIGURES set to a file each figure is also appended to it, as a line of JSON, from
which `run.py` makes RESULTS.md.
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median, quantiles
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

VARIABLE = "BENCHMARK_FIGURES"


@dataclass(frozen=True)
class Figure:
    """One result.

    `value` and `beside` are readable texts with their units. `ratio` is the first as a multiple of
    the second, `low` and `high` its quartiles where there were several rounds. `goal` is what it
    is to reach: the least ratio, or with `most` the greatest.
    """

    what: str
    value: str
    beside: str = ""
    ratio: float | None = None
    low: float | None = None
    high: float | None = None
    goal: float | None = None
    most: bool = False

    @property
    def met(self) -> bool | None:
        """Whether the goal was reached; None without one."""
        if self.goal is None or self.ratio is None:
            return None
        return self.ratio <= self.goal if self.most else self.ratio >= self.goal

    @property
    def cells(self) -> tuple[str, str, str, str, str]:
        """The figure as the cells of a table."""
        ratio = "" if self.ratio is None else f"{self.ratio:,.2f}"
        spread = "" if self.low is None else f"{self.low:.2f} to {self.high:.2f}"
        sign = "at most" if self.most else "at least"
        goal = "" if self.goal is None else f"{sign} {self.goal:g}: {'yes' if self.met else 'no'}"
        return (
            self.what,
            self.value,
            self.beside,
            f"{ratio} {spread and f'({spread})'}".strip(),
            goal,
        )


def show(figure: Figure) -> None:
    """Print a figure, and keep it for `run.py`."""
    what, value, beside, ratio, goal = figure.cells
    print(f"{what:<44} {value:>10}  {beside:<38} {ratio:<22} {goal}".rstrip(), flush=True)
    if path := os.environ.get(VARIABLE):
        with Path(path).open("a", encoding="utf-8") as file:
            file.write(json.dumps(asdict(figure)) + "\n")


def compared(  # noqa: PLR0913 - the parts of a line
    what: str,
    ours: Sequence[float],
    name: str,
    theirs: Sequence[float],
    *,
    unit: str = "/s",
    goal: float | None = None,
    most: bool = False,
) -> Figure:
    """Return the figure of rounds that took turns: medians, and the quartiles of the ratios.

    A ratio is that of two neighbours in a round, so that a busy machine slows both down.
    """
    ratios = [a / b for a, b in zip(ours, theirs, strict=True)]
    low = high = None
    if len(ratios) > 2:
        low, _, high = quantiles(ratios, n=4)
    return Figure(
        what,
        f"{number(median(ours))}{unit}",
        f"{name} {number(median(theirs))}{unit}",
        median(ratios),
        low,
        high,
        goal,
        most,
    )


def number(value: float) -> str:
    """Return a number with three digits that count."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
