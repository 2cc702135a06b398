"""What a page shows: its fenced blocks, and the notes for this suite that stand before them.

A note is a comment, which no reader sees:

    <!-- test: cp "$CHECKOUT/old.db" state.db -->   a command that is run first
    <!-- test python: store = ... -->               code that is run first
    <!-- test not run: it installs packages -->     the next block is not run, and why
"""

from __future__ import annotations

import re
import textwrap
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Iterator

PART = re.compile(
    r"^(?P<indent> *)```(?P<info>[^\n`]+)\n(?P<body>.*?)^(?P=indent)```$"
    r"|<!-- test(?P<kind>| python| not run):(?P<note>.*?)-->",
    re.DOTALL | re.MULTILINE,
)
Kind = Literal["", "python", "not run"]


@dataclass(frozen=True)
class Note:
    """A comment for this suite."""

    kind: Kind
    text: str


@dataclass(frozen=True)
class Shown:
    """A command of a console block, with the lines that it is said to print."""

    command: str
    output: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Block:
    """A fenced block: its language, the name of the file that it shows, its text, its place."""

    language: str
    title: str | None
    text: str
    line: int

    def commands(self) -> list[Shown]:
        """Return the commands of a console block; a line after ``> `` goes on with the command."""
        found: list[Shown] = []
        for line in self.text.splitlines():
            if line.startswith("$ "):
                found.append(Shown(line[2:].split("   # ")[0]))
            elif line.startswith("> ") and not found[-1].output:
                found[-1] = Shown(f"{found[-1].command}\n{line[2:]}")
            else:
                found[-1].output.append(line)
        return found


def parts(page: str) -> Iterator[Block | Note]:
    """Yield the blocks and notes of a page, in order."""
    for found in PART.finditer(page):
        if found["info"] is None:
            note = textwrap.dedent(found["note"].strip("\n"))
            yield Note(found["kind"].strip(), f"{note.strip()}\n")
            continue
        language, _, options = found["info"].partition(" ")
        title = re.search(r'title="(.+?)"', options)
        text = textwrap.dedent(found["body"])
        line = page.count("\n", 0, found.start()) + 1
        yield Block(language, title[1] if title else None, text, line)
