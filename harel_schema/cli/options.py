"""What the verbs share: naming a database, the format of the output, its stream."""

from __future__ import annotations

import json
import math
import os
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal, TextIO, TypeAlias, TypeVar

import click
from click.shell_completion import CompletionItem

from harel_schema import report
from harel_schema.errors import TargetError
from harel_schema.names import DEFAULT_PREFIX, PREFIX_VARIABLE, check_prefix
from harel_schema.target import TARGET_VARIABLE, TOKEN_VARIABLES, Target, with_environment_token

__all__ = [
    "PAGES",
    "Format",
    "Output",
    "complete_file",
    "database_options",
    "output_options",
    "page_options",
    "pair_options",
    "prefix_option",
    "quiet_option",
    "resolve_pair",
    "resolve_target",
    "save_option",
    "tell_report",
    "token_option",
    "wants_color",
    "write",
]

Format: TypeAlias = Literal["text", "json", "html"]

PAGES: Final = {".txt": "text", ".json": "json", ".html": "html"}
"""The endings of files to which `page_options` lets a report be saved, and the form of each."""

_F = TypeVar("_F", bound=Callable[..., object])

_SOURCE_TOKEN = "HAREL_SCHEMA_SOURCE_TOKEN"  # noqa: S105 - the variable's name
_DEST_TOKEN = "HAREL_SCHEMA_DEST_TOKEN"  # noqa: S105 - the variable's name
_TOKEN_HELP = "The token of {}. Better in {}: other users can see a command line."  # noqa: S105


@dataclass(frozen=True, slots=True)
class Output:
    """Where and how a verb reports: its result to stdout, everything else to stderr."""

    format: Format
    quiet: bool

    def result(self, result: object, text: str, **facts: object) -> None:
        """Print a result to stdout: its text for people, or itself as one JSON document."""
        click.echo(report.to_json(result, **facts) if self.format == "json" else text)

    def note(self, line: str) -> None:
        """Print a line about the work to stderr."""
        if not self.quiet:
            click.echo(line, err=True)

    def event(self, name: str, **fields: object) -> None:
        """Write what happened to stderr for a machine: one JSON object on a line."""
        self.note(json.dumps({"event": name, **fields}))

    @property
    def shows_progress(self) -> bool:
        """Whether there is a terminal on which a progress bar can be drawn."""
        return not self.quiet and sys.stderr.isatty()


def wants_color(stream: TextIO) -> bool:
    """Whether what is written to `stream` may be coloured: a terminal, and no NO_COLOR.

    See https://no-color.org.
    """
    plain = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    return not plain and stream.isatty()


def complete_file(ctx: click.Context, param: click.Parameter, typed: str) -> list[CompletionItem]:
    """Let the shell complete what names a database as the name of a file."""
    del ctx, param
    return [CompletionItem(typed, type="file")]


def database_options(function: _F) -> _F:
    """Add the argument TARGET and the option `--auth-token`.

    The token's variables are read by `resolve_target`: they must not break a local file.
    """
    target = click.argument(
        "target", envvar=TARGET_VARIABLE, required=False, shell_complete=complete_file
    )
    return target(token_option(function))


def token_option(function: _F) -> _F:
    """Add `--auth-token`."""
    return click.option(
        "--auth-token", metavar="TOKEN", help=_TOKEN_HELP.format("the server", TOKEN_VARIABLES[0])
    )(function)


def pair_options(first: str, second: str) -> Callable[[_F], _F]:
    """Add two arguments that name databases, and an option for the token of each."""

    def add(function: _F) -> _F:
        for option, name, variable in (
            ("--dest-token", second, _DEST_TOKEN),
            ("--source-token", first, _SOURCE_TOKEN),
        ):
            help_ = _TOKEN_HELP.format(name.upper(), variable)
            function = click.option(option, metavar="TOKEN", help=help_)(function)
        function = click.argument(second, shell_complete=complete_file)(function)
        return click.argument(first, shell_complete=complete_file)(function)

    return add


class Seconds(click.ParamType):  # type: ignore[type-arg]
    """A length of time, up to some thirty years: more than that no clock of the system takes."""

    name = "seconds"

    def __init__(self, *, min_open: bool = False) -> None:
        # Not the base class: a help need not say where the range ends.
        self._range = click.FloatRange(min=0, max=1e9, min_open=min_open)

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Return the seconds; what is no number is in no range, and click lets it pass."""
        seconds: float = self._range.convert(value, param, ctx)
        if math.isnan(seconds):
            self.fail(f"{value} is not a number of seconds.", param, ctx)
        return seconds


def prefix_option(function: _F) -> _F:
    """Add `--prefix`, the first part of every table's name."""
    return click.option(
        "--prefix",
        envvar=PREFIX_VARIABLE,
        metavar="NAME",
        default=DEFAULT_PREFIX,
        show_default=True,
        callback=lambda _ctx, _param, value: check_prefix(value),
        help="The first part of every table's name (HAREL_PREFIX).",
    )(function)


def output_options(function: _F) -> _F:
    """Add `--format` and `--quiet`."""
    return format_option("text", "json")(quiet_option(function))


def quiet_option(function: _F) -> _F:
    """Add `--quiet`."""
    return click.option("-q", "--quiet", is_flag=True, help="No progress, no notes.")(function)


def page_options(function: _F) -> _F:
    """Add `--format`, with a page of HTML among the forms, `--save` and `--quiet`."""
    return format_option("text", "json", "html")(save_option(PAGES)(quiet_option(function)))


def format_option(*forms: str) -> Callable[[_F], _F]:
    """Add `--format`, of which the first form is the default."""
    return click.option(
        "--format",
        "format_",
        type=click.Choice(forms),
        default=forms[0],
        show_default=True,
        help="What is printed to stdout.",
    )


def save_option(endings: Mapping[str, str]) -> Callable[[_F], _F]:
    """Add `--save`, for files of which `endings` says what form they are to have."""
    return click.option(
        "--save",
        multiple=True,
        type=click.Path(dir_okay=False, path_type=Path),
        metavar="FILE",
        callback=lambda _ctx, _param, paths: tuple(check_file(path, endings) for path in paths),
        help=f"Also write the report to FILE, in the form of its ending: {', '.join(endings)}.",
    )


def check_file(path: Path, endings: Mapping[str, str]) -> Path:
    """Refuse, before anything is read, a file that no form fits or that cannot be written."""
    if path.suffix not in endings:
        raise TargetError(
            f"{path}: no form of a report ends in {path.suffix!r}",
            remedy=f"use {', '.join(endings)}",
        )
    if not path.absolute().parent.is_dir():
        raise TargetError(f"{path}: the folder does not exist", remedy="create it first")
    return path


def tell_report(
    forms: Mapping[str, Callable[[], str]],
    form: str,
    paths: Iterable[Path],
    endings: Mapping[str, str],
    colored: Callable[[], str] | None = None,
) -> None:
    """Write a report to each of the files, in the form of its ending, and to stdout in `form`.

    On a terminal its text is what `colored` gives, where there is that.
    """
    for path in paths:
        write(path, forms[endings[path.suffix]]())
    if colored is None or form != "text" or not wants_color(sys.stdout):
        colored = forms[form]
    click.echo(colored().rstrip("\n"))


def write(path: Path, text: str) -> None:
    """Write to a file what would be printed."""
    path.write_text(text.rstrip("\n") + "\n", encoding="utf-8")


def resolve_target(text: str | None, auth_token: str | None) -> Target:
    """Read TARGET; a token of the environment is for a server that was given none."""
    if text is None:
        raise click.UsageError(f"no database is named: give TARGET, or set {TARGET_VARIABLE}")
    return with_environment_token(Target.parse(text, auth_token=auth_token), *TOKEN_VARIABLES)


def resolve_pair(
    source: str, dest: str, source_token: str | None, dest_token: str | None
) -> tuple[Target, Target]:
    """Read two targets, each with its own token.

    The token of a lone database serves a pair only when one of the two is a server: it is not
    handed to a second one that it was not meant for.
    """
    first = Target.parse(source, auth_token=source_token)
    second = Target.parse(dest, auth_token=dest_token)
    lone = () if first.kind == second.kind == "remote" else TOKEN_VARIABLES
    return (
        with_environment_token(first, _SOURCE_TOKEN, *lone),
        with_environment_token(second, _DEST_TOKEN, *lone),
    )
