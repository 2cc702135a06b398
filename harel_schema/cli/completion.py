"""The verb that prints the script for a shell's completion."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

__all__ = ["completion"]

_SHELLS = ("bash", "zsh", "fish")


@click.command(short_help="Print the script that completes the command in a shell.")
@click.argument("shell", type=click.Choice(_SHELLS))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> None:
    """Print the script that lets SHELL complete verbs, options and files.

    For bash put `eval "$(harel-schema completion bash)"` into ~/.bashrc, for zsh the same with zsh
    into ~/.zshrc; for fish write what it prints to ~/.config/fish/completions/harel-schema.fish.
    """
    root = ctx.find_root()
    name = root.info_name or ""
    variable = f"_{name}_COMPLETE".replace("-", "_").upper()
    maker = get_completion_class(shell)
    if maker is None:
        raise click.UsageError(f"this version of click knows no completion for {shell}")
    click.echo(maker(root.command, {}, name, variable).source())
