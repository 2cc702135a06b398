"""How long a verb waits for a lock or a silent server, and the line that says so meanwhile."""

from __future__ import annotations

import logging
from contextlib import contextmanager
from functools import wraps
from typing import TYPE_CHECKING, Any

import click

from harel_schema.cli.options import Output, Seconds
from harel_schema.dbapi import waiting

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["tell", "wait_option"]


def wait_option(function: Callable[..., object]) -> Callable[..., object]:
    """Add `--timeout`, and tell on stderr when the verb waits for a lock.

    With `--format json` that is an event, with `--quiet` nothing.
    """

    @wraps(function)
    def call(**options: Any) -> object:
        with _told(Output(options.get("format_", "text"), options.get("quiet", False))):
            return function(**options)

    return click.option(
        "--timeout",
        type=Seconds(min_open=True),
        default=round(waiting.PATIENCE),
        show_default=True,
        metavar="SECONDS",
        help="How long to wait for a lock, or for a server that is silent.",
    )(call)


def tell(output: Output) -> logging.Handler:
    """Write a line to stderr for every wait of this process from now on."""
    handler = _Waits(output)
    waiting.log.addHandler(handler)
    waiting.log.setLevel(logging.INFO)
    return handler


@contextmanager
def _told(output: Output) -> Iterator[None]:
    level = waiting.log.level
    handler = tell(output)
    try:
        yield
    finally:
        waiting.log.removeHandler(handler)
        waiting.log.setLevel(level)


class _Waits(logging.Handler):
    def __init__(self, output: Output) -> None:
        super().__init__()
        self._output = output

    def emit(self, record: logging.LogRecord) -> None:
        """Write a wait as a note, or as an event for machines."""
        text = record.getMessage()
        if self._output.format == "json":
            self._output.event("waiting", message=text)
        else:
            self._output.note(text)
