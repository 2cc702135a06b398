"""Killed anywhere, a move leaves one database open, and the next run ends it."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from tests.transfer.support import make_source

ENDS = {"file": ("moving.db", "dest.db"), "to server": ("moving.db", ""), "back": ("", "dest.db")}


@pytest.fixture
def killings(request, tmp_path):
    """Return what `tests.move.killing` found at each step."""

    def killings(ends, *, what="commits", phase="check", stride=1):
        original = make_source(tmp_path / "original.db")
        source, dest = (name or request.getfixturevalue("sqld_url") for name in ENDS[ends])
        command = [sys.executable, "-m", "tests.move.killing"]
        command += map(str, (original, source, dest, what, phase, stride))
        ended = subprocess.run(command, capture_output=True, text=True, check=False)
        assert ended.returncode == 0, ended.stderr
        return list(map(json.loads, ended.stdout.splitlines()))

    return killings


def check(found):
    """See that never both ends are open, never neither has all rows, and that a rerun finishes."""
    assert found["ready"] == 0
    if found["open"]:
        assert found["usable"] is False, found
    else:
        assert (found["open"], found["equal"]) == (False, True), found
    # What the source took after the kill is at the destination after the rerun.
    assert (found["rerun"], found["late"]) == (0, found["open"]), found
    assert (found["still open"], found["verified"], found["taken"]) == (False, True, True), found


# A server keeps the lock of a client that is gone for 5 s, so few of its steps are tried here.
@pytest.mark.parametrize(("ends", "stride"), [("file", 1), ("to server", 1), ("back", 5)])
def test_killed_while_switching_over(killings, ends, stride):
    """Right before and right after each commit and request of the last phase."""
    steps = killings(ends, phase="switch", stride=stride)
    for found in steps:
        check(found)
    assert [found["exit"] for found in steps] == [7] * (len(steps) - 1) + [0]
    assert {found["open"] for found in steps} == {True, False}


def test_killed_before(killings):
    """Around some commits of the other phases."""
    steps = killings("file", stride=7)
    for found in steps:
        check(found)
    assert len(steps) > 5


@pytest.mark.soak
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("ends", ENDS)
@pytest.mark.parametrize("what", ["commits", "statements"])
def test_killed_at_every_step(killings, ends, what):
    """Around each statement, each transaction and each request."""
    for found in killings(ends, what=what):
        check(found)
