"""A copy that dies from outside, or finds no more room, is finished by the next one."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
from contextlib import suppress

import pytest

from harel_schema.testing import Server
from harel_schema.transfer import copy
from tests.transfer.support import contents, make_source

COPY = """
import resource, sys
from harel_schema.errors import HarelSchemaError
from harel_schema.transfer import Limits, copy

source, dest, room = sys.argv[1:]
if int(room):
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(room), int(room)))
try:
    copy(source, dest, limits=Limits(rows=20), progress=lambda step: print(step.phase, flush=True))
except HarelSchemaError as error:
    sys.exit(f"{type(error).__name__}: {error}")
"""


def command(source, dest, room=0):
    """Return the command that copies with a line on stdout for every batch."""
    return [sys.executable, "-c", COPY, str(source), str(dest), str(room)]


def kill_at(source, dest, number):
    """Kill a copy with SIGKILL after `number` batches; return whether it was still at work."""
    with subprocess.Popen(command(source, dest), stdout=subprocess.PIPE) as process:
        lines = iter(process.stdout)
        for line in lines:
            if line == b"copy\n":
                number -= 1
            if number < 0:
                break
        process.send_signal(signal.SIGKILL)
    return process.returncode == -signal.SIGKILL


@pytest.fixture(params=["to a server", "from a server"])
def ends(request, tmp_path, sqld_url):
    """Return a file with rows, and the two ends of a copy of them in either direction."""
    original = make_source(tmp_path / "original.db", executions=120)
    if request.param == "to a server":
        return original, original, sqld_url
    copy(original, sqld_url)
    return original, sqld_url, tmp_path / "dest.db"


def check_killed(ends, seed):
    """Kill a copy again and again, each time a little further, until it ends."""
    original, source, dest = ends
    chance = random.Random(seed)
    killed = 0
    while kill_at(source, dest, chance.randrange(25) + 15 * killed):
        killed += 1
    assert killed
    assert copy(source, dest).action == "already equal"
    assert contents(dest) == contents(original)


@pytest.mark.parametrize("seed", [1, 2])
def test_killed_from_outside(ends, seed):
    """SIGKILL at any moment, several times: the copy that is let through ends equal."""
    check_killed(ends, seed)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(100, 150))
def test_killed_from_outside_often(ends, seed):
    """As above, at many other moments."""
    check_killed(ends, seed)


@pytest.fixture(params=[f"{a} to {b}" for a in ("file", "server") for b in ("file", "server")])
def pair(request, tmp_path):
    """Return the ends of a copy of either kind."""
    first, second = request.param.split(" to ")
    source, dest = make_source(tmp_path / "source.db", executions=5), tmp_path / "dest.db"
    with Server(tmp_path / "server", admin=True, namespaces=True) as server:
        if first == "server":
            file, source = source, server.create_namespace("a")
            copy(file, source)
        yield source, server.create_namespace("b") if second == "server" else dest


def check_steps(pair, stride):
    """Kill a copy right before and right after its steps, and look at what is there then."""
    arguments = [*map(str, pair), str(stride)]
    ended = subprocess.run(
        [sys.executable, "-m", "tests.transfer.killing", *arguments],
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    steps = list(map(json.loads, ended.stdout.splitlines()))
    for found in steps:
        # Nobody opens half a copy; what is opened is whole.
        assert not found["opened"] or found["whole"], found
        assert (found["rerun"], found["equal"], found["unchanged"]) == (0, True, True), found
    assert [found["exit"] for found in steps] == [7] * (len(steps) - 1) + [0]
    assert len(steps) * stride > 20


def test_killed_around_some_steps(pair):
    """Before or after a transaction: the rerun ends equal, and a third run changes nothing."""
    check_steps(pair, 13)


@pytest.mark.soak
def test_killed_around_every_step(pair):
    """Before and after each of them."""
    check_steps(pair, 1)


def test_a_disk_that_fills_up(tmp_path, sqld_url):
    """Where a file cannot grow, one line says what to do; with more room the copy goes on."""
    source, dest = make_source(tmp_path / "source.db", executions=60), tmp_path / "dest.db"
    copy(source, sqld_url)
    for end in (source, sqld_url):
        with suppress(FileNotFoundError):
            dest.unlink()
        failed = subprocess.run(
            command(end, dest, 200_000), capture_output=True, text=True, check=False
        )
        assert failed.returncode == 1
        assert failed.stderr.startswith("TransferError: ")
        assert "free some disk space, and run the same command again" in failed.stderr
        assert failed.stderr.count("\n") == 1
        report = copy(end, dest)
        assert report.action == "resumed"
        assert report.written < report.rows
        assert contents(dest) == contents(source)
