"""A drift as GitHub's workflow commands: annotations of a run.

https://docs.github.com/actions/reference/workflow-commands-for-github-actions. GitHub shows the
first ten annotations of each level of a step; all of them stand in its log.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from harel_schema.report.comparison import Comparison

__all__ = ["github_annotations"]


def github_annotations(report: Comparison) -> str:
    """Return an annotation a line: an error for what counts, a notice for the rest."""
    lines = [
        _command(
            "error",
            f"harel-schema {difference.kind}",
            f"{report.databases}: {difference}"
            + (f"\nfix: {difference.fix}" if difference.fix else ""),
        )
        for difference in report.counted
    ]
    lines += [
        _command("notice", "harel-schema", f"{report.databases}: {note}") for note in report.notes
    ]
    # A line of its own for the log. It begins with no colon, so it is no command.
    summary = f"harel-schema {report.command}: {report.databases}: {report.verdict}"
    return "\n".join([*lines, summary])


def _command(level: str, title: str, message: str) -> str:
    return f"::{level} title={_property(title)}::{_data(message)}"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
