"""A diagnosis as text for people."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from harel_schema.names import one_line
from harel_schema.report.words import count, size

if TYPE_CHECKING:
    from harel_schema.doctor import Diagnosis, Figures

__all__ = ["doctor_text", "doctor_verdict"]

_COLORS: Final = {"error": 31, "warning": 33, "note": 36, "remedy": 32}


def doctor_text(result: Diagnosis, *, color: bool = False) -> str:
    """Return a line a finding, each followed by what helps, a line a table, and the verdict.

    `color` is for a terminal.
    """
    lines = []
    for each in result.findings:
        lines.append(f"{_paint(each.severity, color=color)}: {each}")
        if each.remedy:
            lines.append(f"  {_paint('remedy', color=color)}: {one_line(each.remedy)}")
    lines += [f"  {_figures(table)}" for table in result.tables]
    lines += [f"note: {note}" for note in result.notes]
    free = f", {size(result.free)} of it free" if result.free else ""
    whole = f" ({size(result.bytes)}{free})" if result.bytes else ""
    return "\n".join([*lines, f"{result.target}{whole}: {doctor_verdict(result)}"])


def _figures(table: Figures) -> str:
    finished = f", {table.finished:,} finished" if table.finished else ""
    return f"{table.table}: {count(table.rows, 'row')}{finished}, {size(table.bytes)}"


def doctor_verdict(result: Diagnosis) -> str:
    """Return the result in a few words."""
    counted = (
        count(len(found), noun)
        for noun in ("error", "warning", "note")
        if (found := [each for each in result.findings if each.severity == noun])
    )
    return ", ".join(counted) or "sound"


def _paint(word: str, *, color: bool) -> str:
    return f"\x1b[{_COLORS[word]}m{word}\x1b[0m" if color else word
