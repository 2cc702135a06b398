"""Processes of our own that may do less than this one."""

from __future__ import annotations

import ctypes
import json
import subprocess
import sys
from typing import TYPE_CHECKING

from tests.cli.conftest import Ended

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

COMMAND = "from harel_schema.cli import main; main()"
# One command line after another, in one process.
COMMANDS = """
import contextlib, io, json, sys
from harel_schema import cli

def ended(line):
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            cli.main(line)
        except SystemExit as ended:
            return [ended.code, out.getvalue(), err.getvalue()]

print(json.dumps([ended(line) for line in json.loads(sys.argv[1])]))
"""
# linux/prctl.h, linux/capability.h
_PR_CAPBSET_DROP = 24
_OVERRIDES = (1, 2)  # CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH


def without_override() -> None:
    """Let permission bits hold for the program that is executed next, though it is root's.

    For anybody else the call fails, and they hold anyway.
    """
    libc = ctypes.CDLL(None)
    for capability in _OVERRIDES:
        libc.prctl(_PR_CAPBSET_DROP, capability, 0, 0, 0)


def run(code: str, *args: object, limit: Callable[[], None] | None = None) -> Ended:
    """Run Python code in a process of its own, for which `limit` is called before it starts."""
    done = subprocess.run(
        [sys.executable, "-c", code, *map(str, args)],
        preexec_fn=limit,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    return Ended(done.returncode, done.stdout, done.stderr)


def run_verbs(lines: Sequence[Sequence[object]], *, limit: Callable[[], None]) -> list[Ended]:
    """Run command lines, all in one process for which `limit` is called before it starts."""
    done = run(COMMANDS, json.dumps([list(map(str, line)) for line in lines]), limit=limit)
    assert done.code == 0, done
    return [Ended(*each) for each in json.loads(done.out)]
