"""The verb that draws a schema: diagram."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from harel_schema import diagram as drawing
from harel_schema import report
from harel_schema.cli.options import (
    check_file,
    database_options,
    prefix_option,
    quiet_option,
    resolve_target,
    write,
)
from harel_schema.cli.waits import wait_option

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["diagram"]

_FORMATS: Final[dict[str, Callable[[drawing.Diagram], str]]] = {
    "mermaid": report.mermaid,
    "svg": report.svg,
    "json": lambda found: found.model_dump_json(indent=2),
}
_ENDINGS: Final = {".mmd": "mermaid", ".svg": "svg", ".json": "json"}


@click.command(short_help="Draw the schema as Mermaid or SVG, differences marked.")
@database_options
@prefix_option
@click.option("--all-tables", is_flag=True, help="Also draw the tables that are not harel's.")
@click.option(
    "--format",
    "format_",
    type=click.Choice(list(_FORMATS)),
    help="The form of the picture.  [default: that of FILE's ending, or mermaid]",
)
@click.option(
    "-o",
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help=f"Write to FILE, not to stdout: {', '.join(_ENDINGS)}.",
)
@quiet_option
@wait_option
def diagram(
    *,
    target: str | None,
    auth_token: str | None,
    prefix: str,
    all_tables: bool,
    format_: str | None,
    output: Path | None,
    timeout: float,
    quiet: bool,
) -> None:
    """Draw the schema of TARGET, and mark what is not as its revision promises. Changes nothing.

    Exit 0, with differences too: `check` is what fails.
    """
    del quiet  # waits are all there is to note, and `wait_option` does that
    if output is not None:
        check_file(output, {output.suffix: format_} if format_ else _ENDINGS)
    form = format_ or (_ENDINGS[output.suffix] if output else "mermaid")
    database = resolve_target(target, auth_token)
    found = drawing.read(database, prefix=prefix, all_tables=all_tables, timeout=timeout)
    text = _FORMATS[form](found)
    if output is None:
        click.echo(text)
    else:
        write(output, text)
