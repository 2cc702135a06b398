"""A diagnosis as text for people."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from harel_schema.names import one_line
from harel_schema.report.words import count, painted, size, size_and_free

if TYPE_CHECKING:
    from harel_schema.doctor import Diagnosis, Figures

__all__ = ["doctor_text", "doctor_verdict"]

_COLORS: Final = {"error": 31, "warning": 33, "note": 36}
_REMEDY: Final = 32


def doctor_text(result: Diagnosis, *, color: bool = False) -> str:
    """Return a line a finding, each followed by what helps, a line a table, and the verdict.

    `color` is for a terminal.
    """
    lines = []
    for each in result.findings:
        lines.append(f"{painted(each.severity, _COLORS[each.severity], color=color)}: {each}")
        if each.remedy:
            remedy = painted("remedy", _REMEDY, color=color)
            lines.append(f"  {remedy}: {one_line(each.remedy)}")
    lines += [f"  {_figures(table)}" for table in result.tables]
    lines += [f"note: {note}" for note in result.notes]
    whole = f" ({size_and_free(result.bytes, result.free)})" if result.bytes else ""
    return "\n".join([*lines, f"{result.target}{whole}: {doctor_verdict(result)}"])


def _figures(table: Figures) -> str:
    finished = f", {table.finished:,} finished" if table.finished else ""
    return f"{table.table}: {count(table.rows, 'row')}{finished}, {size(table.bytes)}"


def doctor_verdict(result: Diagnosis) -> str:
    """Return the result in a few words."""
    counted = (
        count(len(found), noun)
        for noun in ("error", "warning", "note")
        if (found := result.of(noun))
    )
    return ", ".join(counted) or "sound"
