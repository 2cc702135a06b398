"""What click knows of the command line, as data."""

from __future__ import annotations

import inspect
from dataclasses import dataclass

import click

from harel_schema.cli import cli

__all__ = ["Command", "group", "verbs"]

NAME = "harel-schema"


@dataclass(frozen=True)
class Command:
    """A command: what is typed, the paragraphs of its help, its options with theirs."""

    name: str
    usage: str
    summary: str
    paragraphs: list[str]
    options: list[tuple[str, str]]


def group() -> Command:
    """Return the command itself."""
    return _described(cli, click.Context(cli, info_name=NAME, **cli.context_settings))


def verbs() -> list[Command]:
    """Return its verbs, in the order of its help."""
    root = click.Context(cli, info_name=NAME, **cli.context_settings)
    found = []
    for name in cli.list_commands(root):
        command = cli.get_command(root, name)
        if command is None:
            raise LookupError(name)
        found.append(_described(command, click.Context(command, info_name=name, parent=root)))
    return found


def _described(command: click.Command, ctx: click.Context) -> Command:
    text = inspect.cleandoc(command.help or "")
    summary, *paragraphs = (" ".join(part.split()) for part in text.split("\n\n"))
    records = [parameter.get_help_record(ctx) for parameter in command.get_params(ctx)]
    return Command(
        name=ctx.info_name or "",
        usage=" ".join([ctx.command_path, *command.collect_usage_pieces(ctx)]),
        summary=summary,
        paragraphs=paragraphs,
        # An argument has a record too, without a text.
        options=[(names, " ".join(text.split())) for names, text in filter(None, records) if text],
    )
