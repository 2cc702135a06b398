"""A drift as text for people."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harel_schema.names import one_line
from harel_schema.report.fixes import fix_command
from harel_schema.report.words import painted

if TYPE_CHECKING:
    from harel_schema.drift import Difference
    from harel_schema.report.comparison import Comparison

__all__ = ["difference_lines", "drift_text"]

_RED, _GREEN, _CYAN = 31, 32, 36


def drift_text(report: Comparison, *, color: bool = False) -> str:
    """Return a line a difference, each followed by what mends it, and a summary.

    `color` is for a terminal.
    """
    lines = [
        line
        for each in report.counted
        for line in difference_lines(each, fix_command(each, report), color=color)
    ]
    lines += [f"{painted('note', _CYAN, color=color)}: {note}" for note in report.notes]
    verdict = painted(report.verdict, _RED if report.drift else _GREEN, color=color)
    return "\n".join([*lines, f"{report.databases}: {verdict}"])


def difference_lines(
    difference: Difference, fix: str | None = None, *, color: bool = False
) -> list[str]:
    """Return the line of a difference, and one with what mends it, or with `fix`."""
    kind, _, rest = str(difference).partition(" ")
    lines = [f"{painted(kind, _RED, color=color)} {rest}"]
    if fix := fix or difference.fix:
        lines.append(f"  {painted('fix', _GREEN, color=color)}: {one_line(fix)}")
    return lines
