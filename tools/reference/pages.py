"""The pages of the reference, as Markdown."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tools.reference.commands import Command
    from tools.reference.errors import ErrorClass

__all__ = ["command_line", "errors"]

MADE = "<!-- Made from the code by `make generate`. -->"
INTRODUCTION = (
    "Every error of this package is a `HarelSchemaError`. Its text is one line: what happened, and "
    "after a semicolon the next step, which is also its attribute `remedy`. On the command line an "
    "error ends with exit code 2. No error carries a token."
)


def command_line(whole: Command, verbs: list[Command]) -> str:
    """Return the page of the command line: what holds for all verbs, then each verb."""
    contents = [f"[`{verb.name}`](#{verb.name})" for verb in verbs]
    parts = ["# Command line", MADE, *_command(whole), " · ".join(contents)]
    for verb in verbs:
        parts += [f"## {verb.name}", *_command(verb)]
    return "\n\n".join(parts) + "\n"


def _command(command: Command) -> list[str]:
    rows = [f"| {_code(names)} | {_cell(text)} |" for names, text in command.options]
    return [
        _prose(command.summary),
        f"```text\n{command.usage}\n```",
        *map(_prose, command.paragraphs),
        "\n".join(["| option | what it does |", "|---|---|", *rows]),
    ]


def errors(tree: str, classes: list[ErrorClass]) -> str:
    """Return the page of the errors: the tree, then each class with what it says."""
    parts = [
        "# Errors",
        MADE,
        INTRODUCTION,
        f"```text\n{tree}\n```",
        "Below, `…` stands for what the message fills in: a name, a number, an address.",
    ]
    for each in classes:
        bases = ", ".join(f"`{base}`" for base in each.bases)
        parts += [f"## {each.name}", f"Based on {bases}.", each.text]
        if each.messages:
            rows = [f"| {_cell(said)} | {_cell(remedy)} |" for said, remedy in each.messages]
            parts.append("\n".join(["| message | what to do |", "|---|---|", *rows]))
    return "\n\n".join(parts) + "\n"


def _code(text: str) -> str:
    return f"`{text}`".replace("|", "\\|")


def _cell(text: str) -> str:
    return _prose(text).replace("|", "\\|")


def _prose(text: str) -> str:
    """Mark options, variables and addresses as code, outside of what is code already."""
    parts = re.split(r"(`[^`]*`)", text)
    words = r"(?<![\w`/-])(--[a-z][a-z-]*|[A-Z]+_[A-Z_]+|[a-z]+:/+[^\s;,]*[\w…])"
    parts[::2] = [re.sub(words, r"`\1`", part).replace("<", "&lt;") for part in parts[::2]]
    return "".join(parts)
