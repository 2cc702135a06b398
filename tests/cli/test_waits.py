"""How long every verb waits for a lock or a silent server, and what it says of it."""

from __future__ import annotations

import json
import socket
import sqlite3
import time
from contextlib import closing
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING

import click
import pytest

from harel_schema import cli, migrate
from harel_schema.dbapi import waiting
from harel_schema.transfer import copy
from harel_schema.verify import verify
from tests.support.proxy import FaultyProxy, Hang, Pass
from tests.transfer.support import make_source

if TYPE_CHECKING:
    from collections.abc import Iterator

# Every verb that opens a database, by the database that it finds silent or locked.
LOOKING = ["current {}", "check {}", "doctor {}", "diagram {}"]
LOOKING += ["upgrade --dry-run {}", "diff {} x.db", "diff x.db {}"]
LOOKING += ["verify {} x.db", "verify x.db {}", "copy {} new.db", "move --dry-run {} new.db"]
CHANGING = ["upgrade {}", "downgrade --revision 0002 {}", "stamp --revision 0004 --force {}"]
CHANGING += ["adopt {}", "unfence {}", "copy x.db {}", "move x.db {}", "move {} new.db"]
CHANGING += ["move --abort {} x.db"]
APART = {"history", "dev-server", "completion", "help"}


@pytest.fixture(autouse=True)
def whole(tmp_path: Path) -> Path:
    """Return a file at head with rows in every table."""
    return make_source(tmp_path / "x.db")


@pytest.fixture
def silent() -> Iterator[str]:
    """Return the URL of a server that takes connections and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"http://127.0.0.1:{server.getsockname()[1]}"


@pytest.fixture
def locked(tmp_path: Path) -> Iterator[str]:
    """Return the name of a file that another connection has for itself."""
    migrate.upgrade(tmp_path / "locked.db")
    with closing(sqlite3.connect("locked.db", isolation_level=None)) as holder:
        holder.execute("BEGIN EXCLUSIVE")
        yield "locked.db"


def test_every_verb_has_the_option() -> None:
    """Each verb that takes a database has --timeout, with the one default."""
    context = click.Context(cli.cli)
    for name in set(cli.cli.list_commands(context)) - APART:
        command = cli.cli.get_command(context, name)
        defaults = {each.name: each.default for each in command.params}
        assert defaults.get("timeout") == waiting.PATIENCE, name


@pytest.mark.parametrize("line", LOOKING + CHANGING)
def test_a_silent_server_is_one_line(run, silent: str, line: str) -> None:
    """A server that never answers is named after --timeout seconds, with what to do."""
    started = time.monotonic()
    code, out, err = run(*line.format(silent).split(), "--timeout", "0.1")
    assert (code, out) == (2, "")
    assert err.startswith(f"error: {silent} did not answer for 0.1 s; ")
    assert "--timeout" in err
    assert err.count("\n") == 1
    assert time.monotonic() - started < 20


@pytest.mark.parametrize(
    ("verb", "answers"),
    [*product(["copy"], [1, 6, 12]), *product(["verify"], [1, 3]), *product(["move"], [1, 6, 14])],
)
def test_a_server_that_falls_silent(run, sqld_url: str, verb: str, answers: int) -> None:
    """Where a server stops to answer in the middle it is one line; run again, the job ends."""
    if verb == "verify":
        copy("x.db", sqld_url)
    with FaultyProxy(sqld_url) as proxy:
        proxy.script(*[Pass()] * answers, *[Hang() for _ in range(40)])
        code, out, err = run(verb, "x.db", proxy.url, "--timeout", "0.1")
        assert (code, out, err.count("\n")) == (2, "", 1)
        assert f"{proxy.url} did not answer for 0.1 s" in err
        proxy._faults.clear()
        assert run(verb, "x.db", proxy.url).code == 0
    assert not verify("x.db", sqld_url)


@pytest.mark.parametrize("line", LOOKING + CHANGING)
def test_a_locked_file_is_one_line(run, locked: str, line: str) -> None:
    """A file that somebody else holds is named after --timeout seconds, and left as it is."""
    before = Path(locked).stat()
    code, out, err = run(*line.format(locked).split(), "--timeout", "0.05")
    assert (code, out) == (2, "")
    assert "locked.db" in err
    assert "locked" in err.replace("locked.db", "")
    assert err.count("\n") == 1
    assert Path(locked).stat().st_mtime_ns == before.st_mtime_ns


def test_a_wait_is_told(run, locked: str, monkeypatch) -> None:
    """Who waits for longer than a second is told so; machines by an event, --quiet not at all."""
    monkeypatch.setattr(waiting, "_TOLD", 0.01)
    told = "locked.db: database is locked; waiting for it, at most 0.2 s"
    args = ["copy", locked, "new.db", "--timeout", "0.2"]
    assert run(*args).err.splitlines()[0] == told
    event = json.loads(run(*args, "--format", "json").err.splitlines()[0])
    assert event == {"event": "waiting", "message": told}
    assert run(*args, "--quiet").err.startswith("error: ")
    assert not waiting.log.handlers


def test_a_fleet_tells_of_waits_too(locked: str, capfd) -> None:
    """A process that works on one database of several says that it waits."""
    with pytest.raises(SystemExit) as ended:
        cli.main(["upgrade", locked, "x.db", "--jobs", "2", "--keep-going", "--timeout", "1.1"])
    assert ended.value.code == 2
    assert "locked.db: database is locked; waiting for it, at most 1.1 s" in capfd.readouterr().err


@pytest.mark.parametrize("seconds", ["0", "-1", "soon"])
def test_a_time_that_is_none_is_refused(run, seconds: str) -> None:
    """What is no positive number of seconds is refused in one line."""
    code, _, err = run("current", "x.db", "--timeout", seconds)
    assert (code, err.count("\n")) == (2, 1)
