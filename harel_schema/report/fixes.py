"""What mends a drift, as a script to read and then to run."""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING, Final

from harel_schema.names import one_line, prefix_argument

if TYPE_CHECKING:
    from harel_schema.drift import Difference
    from harel_schema.report.comparison import Comparison

__all__ = ["fix_command", "fix_plan"]

# Stands for the database, where it is not the last word of a command.
_TARGET: Final = " TARGET"
_DROPS: Final = re.compile(r"DROP TABLE|ALTER TABLE .* DROP COLUMN")


def fix_plan(report: Comparison) -> str:
    """Return SQL whose comments say what it is for; commands, and what nothing mends, are comments.

    One transaction, in the order in which it can run. A statement that loses rows says so.
    """
    statements = [each for each in report.counted if each.fix and each.fix.endswith(";")]
    commands = [each for each in report.differences if each.fix and not each.fix.endswith(";")]
    unmended = [each for each in report.counted if not each.fix]
    lines = [f"-- {report.databases}: {report.verdict}"]
    for each in unmended:
        lines += ["", f"-- no statement mends this: {each}"]
    if statements:
        lines += ["", "BEGIN IMMEDIATE;", *_script(statements), "", "COMMIT;"]
    for each in commands:
        lines += ["", f"-- {each}", f"-- run: {fix_command(each, report)}"]
    return "\n".join(lines)


def _script(differences: list[Difference]) -> list[str]:
    lines: list[str] = []
    seen: set[str | None] = set()
    for each in differences:
        lines += ["", f"-- {each}"]
        if each.fix in seen:
            lines.append("-- mended by a statement above")
            continue
        seen.add(each.fix)
        if each.fix and _DROPS.match(each.fix):
            lines.append("-- what it holds is lost")
        lines.append(each.fix or "")
    return lines


def fix_command(difference: Difference, report: Comparison) -> str:
    """Return what mends a difference; a command of this tool with the database named."""
    fix = difference.fix or ""
    if not fix.startswith("harel-schema "):
        return fix
    option = prefix_argument(report.prefix)
    if _TARGET in fix:
        return one_line(fix.replace(_TARGET, f" {shlex.quote(report.target)}") + option)
    return one_line(f"{fix.removesuffix(option)} {shlex.quote(report.target)}{option}")
