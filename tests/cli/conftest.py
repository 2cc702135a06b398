"""The command, run in this process."""

from __future__ import annotations

from typing import NamedTuple

import pytest

from harel_schema import cli


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
