"""Every block of the README and the docs that can be run is run, and prints what it says."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.docs.blocks import Block, Note, parts
from tests.docs.scene import Scene

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
RUN = {"console", "python"}
# Languages that show data, or a part of a file; nothing in them is a command.
SHOWN = {"ini", "json", "mermaid", "sql", "stm", "text", "toml", "yaml"}
# What differs from run to run: how long something took, and how fast it was.
VARYING = re.compile(r'(?<="seconds": )[\d.]+|\b\d[\d.,]*(?= ?(?:s|ms|µs|[kM]?B/s)\b)')


def pages_with_blocks() -> list[Path]:
    """Return the pages that have something to run."""
    return [
        page
        for page in PAGES
        if any(isinstance(p, Block) and p.language in RUN for p in parts(page.read_text("utf-8")))
    ]


def pattern(lines: list[str]) -> str:
    """Return what the output must match: ``…`` is any lines, or any text within one."""
    text = ""
    for line in lines:
        if line.strip() == "…":
            text += r"(?:.*\n)*?"
        else:
            text += ".*?".join(map(re.escape, varying(line).split("…"))) + r"\n"
    return text


def varying(text: str) -> str:
    """Return a text with a mark in the place of each figure that varies."""
    return VARYING.sub("#", text)


def python(scene: Scene, prelude: str, code: str, folder: Path) -> str:
    """Run a block of Python in a process of its own; return what it prints."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", scene.real(prelude + code)],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    return scene.shown(done.stdout)


# A page starts some twenty processes.
@pytest.mark.timeout(300)
@pytest.mark.parametrize("page", pages_with_blocks(), ids=lambda page: page.stem)
def test_a_page_does_what_it_says(page: Path, tmp_path: Path) -> None:
    """Its blocks, in order, in one folder: each command prints what stands below it."""
    prelude, leave_out = "", False
    with Scene(tmp_path, ROOT) as scene:
        for part in parts(page.read_text("utf-8")):
            match part:
                case Note("", text):
                    printed = scene.run(f"( {text} ) && echo ready")
                    assert printed.endswith("ready\n"), printed
                case Note("python", text):
                    prelude = text
                case Note("not run"):
                    leave_out = True
                    continue
                case Block() if leave_out:
                    pass
                case Block(_, str(title), text):
                    (tmp_path / title).parent.mkdir(parents=True, exist_ok=True)
                    (tmp_path / title).write_text(scene.real(text), "utf-8")
                case Block("console"):
                    for shown in part.commands():
                        printed = varying(scene.run(shown.command, len(shown.output)))
                        place = f"{page.name}:{part.line}: $ {shown.command}"
                        assert re.fullmatch(pattern(shown.output), printed), f"{place}\n{printed}"
                case Block("python", None, text):
                    python(scene, prelude, text, tmp_path)
                    prelude = ""
            leave_out = False


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_has_no_command_that_is_not_run(page: Path) -> None:
    """A command stands in a console block; no other kind of block could hide one."""
    text = page.read_text("utf-8")
    blocks = [part for part in parts(text) if isinstance(part, Block)]
    assert {block.language for block in blocks} <= RUN | SHOWN
    for block in blocks:
        if block.language == "yaml":
            yaml.safe_load(block.text)
    outside = re.sub(r"^( *)```.*?^\1```$", "", text, flags=re.DOTALL | re.MULTILINE)
    assert "```" not in outside
    assert re.findall(r"^ {4,}(?:\$ |harel-schema ).*", outside, re.MULTILINE) == []
