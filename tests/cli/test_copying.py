"""The command copy while it runs: its events, its bar, and Ctrl-C."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import sqlite3
import subprocess
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from harel_schema.transfer import copy
from tests.cli.conftest import COMMAND, interrupted
from tests.transfer.support import contents, make_source

if TYPE_CHECKING:
    from pathlib import Path

ROWS = 40_000
FILL = """
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT ?)
INSERT INTO harel_trace SELECT 'e' || i, i, hex(zeroblob(100)) FROM n
"""


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """Return a file that takes a second to copy."""
    path = make_source(tmp_path / "source.db", executions=3)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(FILL, (ROWS,))
    return path


@pytest.fixture(params=["file", "server"])
def dest(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Return an empty destination of either kind."""
    if request.param == "server":
        return str(request.getfixturevalue("sqld_url"))
    return str(tmp_path / "dest.db")


def events(text: str) -> list[dict[str, object]]:
    """Return the lines that are events."""
    return [json.loads(line) for line in text.splitlines() if line.startswith("{")]


def test_ctrl_c_stops_and_says_how_to_go_on(source: Path, dest: str) -> None:
    """SIGINT ends with 130 and one line; the same command then ends in an equal database."""
    ended = interrupted(
        "copy",
        source,
        dest,
        when=lambda event: event["phase"] == "copy" and event["rows_done"] > 5_000,
    )
    assert (ended.code, ended.out) == (130, "")
    assert ended.err.strip().splitlines()[-1] == (
        "error: interrupted; run the same command again: it goes on where this one stopped"
    )
    report = copy(source, dest)
    assert report.action == "resumed"
    assert 5_000 < report.rows - report.written < report.rows
    assert contents(dest) == contents(source)


def test_ctrl_c_before_the_first_write(source: Path, tmp_path: Path) -> None:
    """While it still checks, SIGINT leaves nothing behind, and the line says so."""
    dest = tmp_path / "dest.db"
    ended = interrupted("copy", source, dest, when=lambda event: event["phase"] == "check")
    assert ended.code == 130
    assert ended.err.strip().splitlines()[-1] == "error: interrupted; nothing was written"
    assert not dest.exists()


def test_events_are_lines_of_json(source: Path, dest: str) -> None:
    """With --format json, stderr has an event a line that counts up, stdout one document."""
    command = [*COMMAND, "copy", str(source), dest, "--format", "json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    found = events(done.stderr)
    assert len(found) == len(done.stderr.splitlines())
    assert list(dict.fromkeys(each["phase"] for each in found)) == ["check", "copy", "finish"]
    copied = [each for each in found if each["phase"] == "copy"]
    assert copied[-1]["rows_done"] == copied[-1]["rows_total"]
    assert [each["rows_done"] for each in copied] == sorted(each["rows_done"] for each in copied)
    assert json.loads(done.stdout)["action"] == "copied"


def test_quiet_writes_no_events(run, tmp_path: Path) -> None:
    """With --quiet, stderr stays empty."""
    source = make_source(tmp_path / "source.db", executions=3)
    ended = run("copy", source, tmp_path / "dest.db", "--format", "json", "--quiet")
    assert (ended.code, ended.err) == (0, "")


def test_a_bar_is_drawn_on_a_terminal(source: Path, tmp_path: Path) -> None:
    """On a terminal, stderr shows phase, table, rows, bytes and rate, and stdout the result."""
    ours, theirs = pty.openpty()
    command = [*COMMAND, "copy", str(source), str(tmp_path / "dest.db")]
    env = {**os.environ, "TERM": "xterm", "COLUMNS": "120"}
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=theirs, env=env) as process:
        os.close(theirs)
        drawn = drain(ours)
        out, _ = process.communicate(timeout=60)
    os.close(ours)
    assert process.returncode == 0
    assert re.search(r"copy harel_trace .*[\d,]+ rows .*MB .*rows/s", drawn)
    assert "\x1b" not in out.decode()
    assert out.decode().splitlines()[-1].startswith("source.db -> dest.db: copied")


def drain(terminal: int) -> str:
    """Return all that was written to a terminal until its last writer closed it."""
    parts = []
    while select.select([terminal], [], [], 60)[0]:
        try:
            part = os.read(terminal, 65_536)
        except OSError:  # Linux says so at the end
            break
        if not part:
            break
        parts.append(part)
    return b"".join(parts).decode()
