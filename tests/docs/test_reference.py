"""The pages that are made from the code are those of this code; what they name is there."""

from __future__ import annotations

import re
import subprocess
import sys
from typing import TYPE_CHECKING

import click
import pytest

from harel_schema import __version__
from harel_schema.cli import cli
from tests.docs.test_pages import PAGES, ROOT

if TYPE_CHECKING:
    from pathlib import Path

MADE = [
    "docs/images/schema.svg",
    "docs/reference/cli.md",
    "docs/reference/errors.md",
    "man/harel-schema.1",
]
REFERENCE = ROOT / "docs" / "reference"
VARIABLE = re.compile(r"\b(?:HAREL|TURSO)_[A-Z_]*[A-Z]\b|\bXDG_CACHE_HOME\b|\bNO_COLOR\b")
VERB = re.compile(r"`harel-schema ([a-z][a-z-]*)([^`]*)`")
# The macros of man(7) that the page uses, and a comment.
MACROS = {'.\\"', ".TH", ".SH", ".SS", ".PP", ".TP", ".br", ".BR"}


def verb(name: str) -> click.Command | None:
    """Return a verb of the command."""
    return cli.get_command(click.Context(cli), name)


def test_the_made_pages_are_of_this_version(tmp_path: Path) -> None:
    """`make generate` makes them again."""
    subprocess.run([sys.executable, "-m", "tools.reference", str(tmp_path)], check=True, cwd=ROOT)
    for name in MADE:
        assert (tmp_path / name).read_text("utf-8") == (ROOT / name).read_text("utf-8"), name


def test_every_verb_and_option_has_its_place() -> None:
    """On the page of the command line and in the manual."""
    page = (REFERENCE / "cli.md").read_text("utf-8")
    manual = (ROOT / "man" / "harel-schema.1").read_text("utf-8").replace("\\-", "-")
    for name in cli.list_commands(click.Context(cli)):
        command = verb(name)
        assert command is not None
        part = page.split(f"\n## {name}\n")[1].split("\n## ")[0]
        section = manual.split(f"\n.SS {name}\n")[1].split("\n.S")[0]
        for option in (o for p in command.params for o in p.opts if o.startswith("--")):
            assert option in part, f"{name} {option}"
            assert option in section, f"{name} {option}"


def test_the_manual_is_plain_man() -> None:
    """Known macros only, this version, and every hyphen one that can be searched and copied."""
    lines = (ROOT / "man" / "harel-schema.1").read_text("utf-8").splitlines()
    assert {line.split()[0] for line in lines if line.startswith((".", "'"))} == MACROS
    assert f"harel\\-schema {__version__}" in lines[1]
    for line in lines[1:]:
        assert re.sub(r"\\(?:\(..|f[BR]|&|e|-)", "", line).isascii(), line
        assert not re.search(r"(?<!\\)-", line), line


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_command_within_a_sentence_exists(page: Path) -> None:
    """A verb that a page names is one, and so is each option that stands beside it."""
    for name, rest in VERB.findall(page.read_text("utf-8")):
        command = verb(name)
        assert command is not None, name
        known = {option for parameter in command.params for option in parameter.opts} | {"--help"}
        assert set(re.findall(r"--[a-z-]+", rest)) <= known, f"{name}{rest}"


def test_every_variable_is_documented() -> None:
    """The page of the environment names what the package reads, and nothing else."""
    read = {
        name
        for path in (ROOT / "harel_schema").rglob("*.py")
        for name in VARIABLE.findall(path.read_text("utf-8"))
    }
    page = (REFERENCE / "environment.md").read_text("utf-8")
    assert {name for name in VARIABLE.findall(page) if name != "RUST_LOG"} == read
