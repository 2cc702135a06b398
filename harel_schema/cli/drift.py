"""The verbs that compare schemas: check, diff."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Final, TypeVar, cast

import click

from harel_schema import drift, report
from harel_schema._version import __version__
from harel_schema.cli.fleet import Answer, Fleet, fleet_options, named, run
from harel_schema.cli.options import (
    Format,
    Output,
    format_option,
    pair_options,
    prefix_option,
    quiet_option,
    resolve_pair,
    save_option,
    tell_report,
)
from harel_schema.cli.waits import wait_option
from harel_schema.report.comparison import Comparison
from harel_schema.report.words import verdict

if TYPE_CHECKING:
    from pathlib import Path

    from harel_schema.target import Target

__all__ = ["check", "diff"]

_F = TypeVar("_F", bound=Callable[..., object])

# Each form of a report that needs nothing but the differences.
_FORMATS: Final[dict[str, Callable[[Comparison], str]]] = {
    "text": report.drift_text,
    "json": lambda found: found.model_dump_json(indent=2),
    "github": report.github_annotations,
    "sarif": lambda found: report.sarif(found, version=__version__),
    "markdown": report.drift_markdown,
    "fixes": report.fix_plan,
}
_PRINTED: Final = ("text", "json", "github", "sarif", "markdown", "html")
_ENDINGS: Final = {
    ".txt": "text",
    ".json": "json",
    ".sarif": "sarif",
    ".md": "markdown",
    ".html": "html",
}


def _report_options(function: _F) -> _F:
    """Add `--format`, `--save`, `--fix-plan` and `--quiet`."""
    function = click.option(
        "--fix-plan",
        is_flag=True,
        help="Print what mends the differences, as an SQL script. It is never run.",
    )(quiet_option(function))
    return format_option(*_PRINTED)(save_option(_ENDINGS)(function))


@click.command(short_help="Compare the schema with what its revision promises.")
@fleet_options
@prefix_option
@click.option("--strict", is_flag=True, help="Tables that are not harel's count too.")
@click.option("--data", is_flag=True, help="Also read every row, and count those that do not fit.")
@_report_options
@wait_option
def check(
    *,
    fleet: Fleet | None,
    prefix: str,
    strict: bool,
    data: bool,
    format_: str,
    save: tuple[Path, ...],
    fix_plan: bool,
    timeout: float,
    quiet: bool,
) -> int:
    """Compare the schema of each TARGET with what its revision promises. Changes nothing.

    Exit 0: no drift; 1: each difference is named, with what mends it.
    """
    form = _form(format_, fix_plan=fix_plan)
    fleet = named(fleet)
    asked = partial(drift.examine, prefix=prefix, strict=strict, data=data, timeout=timeout)
    if fleet.alone is not None:
        examined = asked(fleet.alone)
        whole = Comparison.of(examined.drift, str(fleet.alone), prefix=prefix)
        return _tell(whole, examined, form, save, all_tables=strict)
    if save or form not in ("text", "json"):
        context = click.get_current_context()
        raise click.UsageError("several databases are reported as text or json only", context)
    return run(partial(_check, asked), fleet, Output(cast("Format", form), quiet=quiet))


def _check(asked: Callable[[Target], drift.Examined], target: Target) -> Answer:
    found = asked(target).drift
    counted = sum(each.counts for each in found)
    line = verdict(counted, found.revision)
    return Answer(line, "different" if found else "no drift", found, code=1 if found else 0)


@click.command(short_help="Compare the schemas of two databases.")
@pair_options("a", "b")
@prefix_option
@_report_options
@wait_option
def diff(
    *,
    a: str,
    b: str,
    source_token: str | None,
    dest_token: str | None,
    prefix: str,
    format_: str,
    save: tuple[Path, ...],
    fix_plan: bool,
    timeout: float,
    quiet: bool,
) -> int:
    """Compare the schemas of two live databases, every table in them. Changes nothing.

    A is what is expected of B. Exit 0: the same; 1: each difference is named.
    """
    del quiet  # waits are all there is to note, and `wait_option` does that
    form = _form(format_, fix_plan=fix_plan)
    first, second = resolve_pair(a, b, source_token, dest_token)
    examined = drift.examine_pair(first, second, prefix=prefix, timeout=timeout)
    whole = Comparison.of(examined.drift, str(second), prefix=prefix, against=str(first))
    return _tell(whole, examined, form, save, all_tables=True)


def _form(format_: str, *, fix_plan: bool) -> str:
    """Return what is printed: one thing."""
    if fix_plan and format_ != "text":
        raise click.UsageError(f"--fix-plan is SQL, not {format_}", click.get_current_context())
    return "fixes" if fix_plan else format_


def _tell(
    found: Comparison,
    examined: drift.Examined,
    form: str,
    save: tuple[Path, ...],
    *,
    all_tables: bool,
) -> int:
    forms = {name: partial(make, found) for name, make in _FORMATS.items()}
    forms["html"] = partial(_html, found, examined, all_tables=all_tables)
    tell_report(forms, form, save, _ENDINGS, partial(report.drift_text, found, color=True))
    return 1 if found.drift else 0


def _html(found: Comparison, examined: drift.Examined, *, all_tables: bool) -> str:
    from harel_schema import diagram  # noqa: PLC0415 - it brings SQLAlchemy along

    drawn = diagram.draw(examined, found.target, prefix=found.prefix, all_tables=all_tables)
    return report.drift_html(found, drawn, version=__version__)
