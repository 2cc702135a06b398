"""A drift as GitHub's Markdown, for a comment on a pull request or the summary of a job."""

from __future__ import annotations

import re
from itertools import accumulate, takewhile
from typing import TYPE_CHECKING, Final

from harel_schema.names import one_line

if TYPE_CHECKING:
    from harel_schema.drift import Difference
    from harel_schema.report.comparison import Comparison

__all__ = ["drift_markdown"]

# By this a bot finds its comment again. GitHub takes 65,536 characters.
_MARK: Final = "<!-- harel-schema -->"
_ROOM: Final = 30_000


def drift_markdown(report: Comparison) -> str:
    """Return a heading with the verdict, a table of the differences, and what mends them.

    At most some 60,000 characters; what has no room is counted. Names cannot break out of the
    table, mention anybody or become HTML.
    """
    icon = "❌" if report.drift else "✅"
    parts = [f"{_MARK}\n### {icon} harel-schema {report.command}: {report.verdict}"]
    parts.append(_code(report.databases))
    if report.counted:
        parts.append(_table(report.counted))
        parts.append(_fixes(report.counted))
    parts += [f"> note: {_code(note)}" for note in report.notes]
    return "\n\n".join(filter(None, parts)) + "\n"


def _table(differences: tuple[Difference, ...]) -> str:
    lines = ["| kind | where | expected | found |", "|---|---|---|---|"]
    rows = [
        f"| {each.kind} | {_code(each.where)} | {_cell(each.expected)} | {_found(each)} |"
        for each in differences
    ]
    return "\n".join([*lines, *_fitting(rows)]) + _left_off(len(rows) - len(_fitting(rows)))


def _fixes(differences: tuple[Difference, ...]) -> str:
    # Several differences of one thing are mended by one statement.
    fixes = list(dict.fromkeys(each.fix for each in differences if each.fix))
    if not fixes:
        return ""
    shown = _fitting(fixes)
    text = "\n".join(shown)
    fence = "`" * max(3, 1 + max(map(len, re.findall("`+", text)), default=0))
    more = _left_off(len(fixes) - len(shown))
    block = f"{fence}sql\n{text}\n{fence}{more}"
    return f"<details><summary>What mends it</summary>\n\n{block}\n\n</details>"


def _fitting(lines: list[str]) -> list[str]:
    sizes = accumulate(len(line) + 1 for line in lines)
    return [line for line, _ in zip(lines, takewhile(_ROOM.__gt__, sizes), strict=False)]


def _left_off(number: int) -> str:
    return f"\n\n… and {number:,} more" if number else ""


def _cell(text: str | None) -> str:
    return "nothing" if text is None else _code(text)


def _found(difference: Difference) -> str:
    found = _cell(difference.found)
    if difference.rows is None:
        return found
    return f"{found} in {difference.rows:,}: {_code(', '.join(difference.examples))}"


def _code(text: str) -> str:
    """Return a code span of one line. A bar would end the cell of a table also in there."""
    line = one_line(text).replace("|", "\\|")
    marks = "`" * (1 + max(map(len, re.findall("`+", line)), default=0))
    pad = " " if line.startswith("`") or line.endswith("`") or not line else ""
    return f"{marks}{pad}{line}{pad}{marks}"
