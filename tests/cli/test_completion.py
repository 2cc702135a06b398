"""Completion, in a real bash on a real terminal; the other shells ask as click's scripts do."""

from __future__ import annotations

import os
import pty
import select
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

BIN = Path(sys.executable).parent
PROMPT = "ready> "
CLEAR = "\x15"


class Terminal:
    """A bash that reads what is typed, and writes what a person would see."""

    def __init__(self) -> None:
        self.master, slave = pty.openpty()
        environment = {"PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}", "PS1": PROMPT}
        self.bash = subprocess.Popen(
            ["bash", "--norc", "--noprofile", "-i"],
            stdin=slave,
            stdout=slave,
            stderr=slave,
            env={**environment, "TERM": "dumb", "HOME": os.environ["HOME"]},
            start_new_session=True,
        )
        os.close(slave)

    def type(self, keys: str, until: str) -> str:
        """Type, and return what appears, up to and with `until`."""
        os.write(self.master, keys.encode())
        seen = ""
        while until not in seen:
            ready, _, _ = select.select([self.master], [], [], 30)
            assert ready, f"no {until!r} after {keys!r}, only {seen!r}"
            seen += os.read(self.master, 4096).decode()
        return seen

    def close(self) -> None:
        """End the shell."""
        os.close(self.master)
        self.bash.wait(timeout=30)


@pytest.fixture
def terminal() -> Iterator[Terminal]:
    """Yield a bash that completes our command."""
    terminal = Terminal()
    terminal.type("bind 'set bell-style none'; bind 'set enable-bracketed-paste off'\n", "off'")
    terminal.type('eval "$(harel-schema completion bash)"; echo so"urced"\n', "sourced")
    yield terminal
    terminal.close()


def test_bash_completes_verbs_options_choices_and_files(terminal: Terminal, tmp_path: Path) -> None:
    """A verb, one of its options, a choice, and a file that is a database."""
    (tmp_path / "state-of-affairs.db").touch()
    terminal.type("harel-schema dev\t", "harel-schema dev-server ")
    terminal.type("--di\t", "--dir ")
    terminal.type(f"{CLEAR}harel-schema completion fi\t", "fish ")
    terminal.type(f"{CLEAR}harel-schema check state-of\t", "state-of-affairs.db ")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_each_shell_gets_its_script(run, shell: str) -> None:
    """The script goes to stdout, names our command, and asks it in that shell's way."""
    ended = run("completion", shell)
    assert ended.code == 0
    assert ended.err == ""
    assert "harel-schema" in ended.out
    assert f"_HAREL_SCHEMA_COMPLETE={shell}_complete" in ended.out


def test_another_shell_is_refused(run) -> None:
    """The shells that there are stand in the error."""
    ended = run("completion", "tcsh")
    assert ended.code == 2
    assert "bash" in ended.err


def test_completing_a_verb_loads_no_verb() -> None:
    """A Tab key waits for neither Alembic nor SQLAlchemy, in whichever shell."""
    code = (
        "import sys; from harel_schema.cli import cli; from click.testing import CliRunner\n"
        "for shell, at in ('bash', '1'), ('zsh', '1'), ('fish', 'u'):\n"
        "    asks = {'_HS_COMPLETE': f'{shell}_complete', 'COMP_WORDS': 'hs u', 'COMP_CWORD': at}\n"
        "    print(CliRunner().invoke(cli, prog_name='hs', env=asks).output)\n"
        "print('sqlalchemy' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    *answers, loaded = done.stdout.split()
    assert answers[:2] == ["plain,upgrade", "plain,unfence"]
    assert answers[2:8] == ["plain", "upgrade", "_", "plain", "unfence", "_"]
    assert answers[8:] == ["plain,upgrade", "plain,unfence"]
    assert loaded == "False"


def test_the_command_starts_without_what_its_verbs_need() -> None:
    """Help, a refusal and a Tab key wait for none of the large libraries."""
    code = (
        "import sys, harel_schema.cli; "
        "print({'pydantic', 'sqlalchemy', 'sqlglot', 'harel_schema.drift'} & sys.modules.keys())"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"
