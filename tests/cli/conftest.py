"""The command, run in this process."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from harel_schema import cli

if TYPE_CHECKING:
    from collections.abc import Callable

COMMAND = [sys.executable, "-c", "from harel_schema.cli import main; main()"]


class Ended(NamedTuple):
    """How a run of the command ended."""

    code: int
    out: str
    err: str


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]):
    """Run the command in this process."""

    def run(*args: object) -> Ended:
        with pytest.raises(SystemExit) as ended:
            cli.main(list(map(str, args)))
        out, err = capsys.readouterr()
        return Ended(ended.value.code, out, err)

    return run


def interrupted(
    *args: object, when: Callable[[dict[str, Any]], bool], timeout: float = 60
) -> Ended:
    """Run the command in a process of its own, and send SIGINT at the first such event."""
    command = [*COMMAND, *map(str, args), "--format", "json"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr is not None
        for line in process.stderr:
            if when(json.loads(line)):
                process.send_signal(signal.SIGINT)
                break
        out, err = process.communicate(timeout=timeout)
    return Ended(process.returncode, out, err)
