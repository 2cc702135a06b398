"""Killed, stopped or cut off at any moment, nothing acknowledged is lost and nothing half done."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest


@pytest.fixture
def rounds(tmp_path):
    """Return what runs rounds of `tests.faults.killing`, and sees that nothing was wrong."""

    def rounds(modes, number, seed=7):
        command = [sys.executable, "-m", "tests.faults.killing", modes, tmp_path, number, seed]
        done = subprocess.run([*map(str, command)], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        found = list(map(json.loads, done.stdout.splitlines()))
        assert [each["wrong"] for each in found] == [[]] * len(found)
        for mode in modes.split(","):
            own = [each for each in found if each["mode"] == mode]
            assert len(own) >= number
            assert own[-1]["acknowledged"] > number
        assert "Traceback" not in done.stderr

    return rounds


@pytest.mark.parametrize("modes", ["libsql,sqlite3,server", "replica"])
def test_workers_are_killed(modes, rounds):
    """`kill -9` of all workers, a few times in each mode."""
    rounds(modes, 2)


def test_the_server_fails_under_them(rounds):
    """It is killed and started again, or stands still, while workers go on."""
    rounds("server-killed,stopped:0.1", 2)


@pytest.mark.soak
@pytest.mark.timeout(3600)
@pytest.mark.parametrize(
    ("mode", "number"),
    [("libsql", 100), ("sqlite3", 100), ("server", 80), ("replica", 40)],
)
def test_workers_are_killed_often(mode, number, rounds):
    """320 rounds."""
    rounds(mode, number, seed=number)


@pytest.mark.soak
@pytest.mark.timeout(3600)
@pytest.mark.parametrize(
    ("mode", "number"), [("server-killed", 40), ("stopped:6", 3), ("stopped:12", 3)]
)
def test_the_server_fails_under_them_often(mode, number, rounds):
    """40 kills; stopped for longer than a transaction (5 s) and a stream (10 s) may live."""
    rounds(mode, number)
