"""The verbs that compare schemas: check, diff."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from harel_schema import drift, report
from harel_schema.cli.options import (
    Format,
    Output,
    database_options,
    output_options,
    pair_options,
    prefix_option,
    resolve_pair,
    resolve_target,
)

if TYPE_CHECKING:
    from harel_schema.drift import Drift

__all__ = ["check", "diff"]


@click.command()
@database_options
@prefix_option
@click.option("--strict", is_flag=True, help="Tables that are not harel's count too.")
@output_options
def check(
    *,
    target: str | None,
    auth_token: str | None,
    prefix: str,
    strict: bool,
    format_: Format,
    quiet: bool,
) -> int:
    """Compare the schema of TARGET with what its revision promises. Changes nothing.

    Exit 0: no drift; 1: each difference is named, with what mends it.
    """
    database = resolve_target(target, auth_token)
    found = drift.check(database, prefix=prefix, strict=strict)
    return _tell(found, str(database), Output(format_, quiet))


@click.command()
@pair_options("a", "b")
@prefix_option
@output_options
def diff(
    *,
    a: str,
    b: str,
    source_token: str | None,
    dest_token: str | None,
    prefix: str,
    format_: Format,
    quiet: bool,
) -> int:
    """Compare the schemas of two live databases, every table in them. Changes nothing.

    A is what is expected of B. Exit 0: the same; 1: each difference is named.
    """
    first, second = resolve_pair(a, b, source_token, dest_token)
    found = drift.diff(first, second, prefix=prefix)
    return _tell(found, f"{first} and {second}", Output(format_, quiet))


def _tell(found: Drift, what: str, output: Output) -> int:
    output.result(found, report.drift_text(found, what), drift=bool(found))
    return 1 if found else 0
