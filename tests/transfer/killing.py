"""Runs a copy again and again, ended without a word at one step after another.

Started as ``python -m tests.transfer.killing SOURCE DEST STRIDE``, where both are files or servers.
A step is a transaction of a file or a request to a server, and the copy is killed right before it
and right after: for each of them, or each STRIDEth, a child process copies and ends there by
`os._exit`. Then a store tries to open the destination, and more children copy to the end, and once
again. Prints one JSON object a step.
"""

from __future__ import annotations

import sys

from harel_schema import LibsqlStore, drift, errors
from harel_schema.transfer import Limits, copy
from tests.move.killing import asked, each_step, in_child, kill_at, wipe
from tests.transfer.support import contents, definitions

LIMITS = Limits(rows=4)


def is_opened(dest: str) -> bool:
    """Whether a store takes it for a database."""
    try:
        LibsqlStore(dest, create_schema=False, driver="sqlite3").close()
    except errors.HarelSchemaError:
        return False
    return True


def is_equal(source: str, dest: str) -> bool:
    """Whether both hold the same, down to the definitions."""
    return definitions(source) == definitions(dest) and contents(source) == contents(dest)


def one_step(source: str, dest: str, number: int) -> dict[str, object]:
    """Kill a copy at a step; return what is true then, and after the next runs."""

    def killed() -> None:
        kill_at(number, "commits")
        copy(source, dest, limits=LIMITS)

    found: dict[str, object] = {"step": number}
    in_child(lambda: wipe(dest))
    found["exit"] = in_child(killed)
    found["opened"] = asked(lambda: is_opened(dest))
    if found["opened"]:
        found["whole"] = asked(lambda: is_equal(source, dest))
    found["rerun"] = in_child(lambda: copy(source, dest, limits=LIMITS))
    found["equal"] = asked(lambda: is_equal(source, dest))
    found["unchanged"] = asked(lambda: copy(source, dest).action == "already equal")
    return found


def main() -> None:
    """Go through the steps until a copy gets to its end."""
    source, dest, stride = sys.argv[1:]
    # Made once here, and not in every child.
    drift.expected("head", "harel")
    each_step(lambda number: one_step(source, dest, number), int(stride))


if __name__ == "__main__":
    main()
