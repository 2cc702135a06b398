"""A drift as text for people."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harel_schema.report.words import count

if TYPE_CHECKING:
    from harel_schema.drift import Difference, Drift

__all__ = ["difference_lines", "drift_text"]


def drift_text(drift: Drift, what: str) -> str:
    """Return a line a difference, each followed by what mends it, and a summary.

    `what` names the databases that were compared.
    """
    counted = [each for each in drift if each.counts]
    notes = [each for each in drift if not each.counts]
    lines = [line for each in counted for line in difference_lines(each)]
    lines += [f"note: {each}" for each in notes]
    if drift.others:
        lines.append(f"note: not harel's, not compared: {', '.join(drift.others)}")
    revision = f" (revision {drift.revision})" if drift.revision else ""
    verdict = f"{count(len(counted), 'difference')}" if counted else "no drift"
    lines.append(f"{what}: {verdict}{revision}")
    return "\n".join(lines)


def difference_lines(difference: Difference) -> list[str]:
    """Return the line of a difference, and one with what mends it."""
    line = [str(difference)]
    if difference.fix:
        line.append(f"  fix: {difference.fix}")
    return line
