"""The help of every verb, read by somebody who knows the others; and what no option takes."""

from __future__ import annotations

import re
import subprocess
import sys
from itertools import pairwise
from typing import TYPE_CHECKING

import click
import pytest

from harel_schema import __version__
from harel_schema.cli import cli

if TYPE_CHECKING:
    from pathlib import Path

CONTEXT = click.Context(cli, info_name="harel-schema")
VERBS = cli.list_commands(CONTEXT)
# What several verbs have, in the order in which each of them lists it.
COMMON = [
    *("auth_token", "source_token", "dest_token", "targets", "jobs", "keep_going", "prefix"),
    *("format_", "save", "quiet", "timeout"),
]


def options(verb: str) -> dict[str, click.Option]:
    """Return the options of a verb by the names of their parameters."""
    command = cli.get_command(CONTEXT, verb)
    assert command is not None
    return {str(each.name): each for each in command.params if isinstance(each, click.Option)}


@pytest.mark.parametrize("verb", VERBS)
def test_common_options_come_in_one_order(verb: str) -> None:
    """Who looks for one finds it where it was in the help of another verb."""
    found = [COMMON.index(name) for name in options(verb) if name in COMMON]
    assert all(a < b for a, b in pairwise(found))
    if "prefix" in options(verb):
        assert {"quiet", "timeout", "format_"} <= set(options(verb))


@pytest.mark.parametrize("verb", VERBS)
def test_a_value_is_called_what_it_is(run, verb: str) -> None:
    """SECONDS, ROWS, NAME: not what click calls the type."""
    shown = run(verb, "--help").out
    assert not re.search(r"--\S+ (TEXT|INTEGER|FLOAT|INTEGER RANGE|FLOAT RANGE)\b", shown)
    assert "000000" not in shown, "an end of a range that nobody meets"


def test_what_a_verb_does_fits_its_line(run) -> None:
    """No sentence in the list of the verbs is cut off, on a terminal of 80 columns."""
    shown = run("--help").out.split("Commands:\n")[1].splitlines()
    assert [line.split()[0] for line in shown] == VERBS
    assert [line for line in shown if "..." in line or len(line) > 80] == []


@pytest.mark.parametrize("option", ["--timeout", "--max-age"])
@pytest.mark.parametrize("value", ["nan", "-NaN", "inf", "1e400", "1e10", "-1", "soon", ""])
def test_no_length_of_time(run, tmp_path: Path, option: str, value: str) -> None:
    """Infinite, negative, or no number: one line that names the option, and nothing is read."""
    code, out, err = run("doctor", tmp_path / "none.db", option, value)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert err.startswith(f"error: Invalid value for '{option}': ")


def test_the_package_can_be_run() -> None:
    """`python -m harel_schema` is the command, for where no script of it is on the PATH."""
    asked = [sys.executable, "-m", "harel_schema", "--version"]
    ran = subprocess.run(asked, check=True, capture_output=True, text=True)
    assert ran.stdout == f"harel-schema {__version__}\n"
