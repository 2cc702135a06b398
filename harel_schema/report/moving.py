"""What a move, its end, and its undoing look like to people."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harel_schema.report.words import count

if TYPE_CHECKING:
    from harel_schema.move import AbortReport, MoveReport, UnfenceReport

__all__ = ["abort_text", "move_text", "unfence_text"]


def move_text(result: MoveReport) -> str:
    """Return a line a table, what was carried over after the copy, how long writers waited."""
    pair = f"{result.source} -> {result.dest}"
    lines = [f"  {table.name}: {count(table.rows, 'row')}" for table in result.tables]
    lines += [f"note: {note}" for note in result.notes]
    if result.dry_run:
        return "\n".join([*lines, f"{pair}: would be {result.action}; nothing was written"])
    if result.action == "moved":
        lines += _switched(result)
    return "\n".join([*lines, f"{pair}: {result.action} in {result.seconds:.1f} s"])


def _switched(result: MoveReport) -> list[str]:
    end = result.switch
    repaired = f", {count(result.repaired, 'row')} repaired" if result.repaired else ""
    changes = f"{count(end.changes, 'change')} in {count(end.rounds, 'round')}"
    return [
        f"  compared whole{repaired}",
        f"  carried over {changes}, and {end.last_changes:,} under the lock",
        f"  writers waited {end.pause * 1000:.0f} ms",
    ]


def abort_text(result: AbortReport) -> str:
    """Return what giving up a move did."""
    if not result.aborted:
        return f"{result.source}: no move to give up"
    reopened = " and open again" if result.unfenced else ""
    return (
        f"{result.source}: without a trace of the move{reopened}\n"
        f"note: {result.dest} keeps what it got; another move goes on with it, --replace drops it"
    )


def unfence_text(result: UnfenceReport) -> str:
    """Return what reopening a database did."""
    if result.moved_to is None:
        return f"{result.target}: has no fence"
    return (
        f"{result.target}: open again; what was written to {result.moved_to} since it was moved "
        "there is not in it"
    )
