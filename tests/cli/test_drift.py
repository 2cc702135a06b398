"""`check` and `diff` as their users and their CI meet them."""

from __future__ import annotations

import json
import os
import pty
import random
import sqlite3
import subprocess
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from harel_schema import dbapi, migrate
from harel_schema._version import __version__
from harel_schema.testing import JwtKey, sqld_server
from tests.cli.conftest import COMMAND
from tests.support import schemas

if TYPE_CHECKING:
    from pathlib import Path

FORMS = ["text", "json", "github", "sarif", "markdown", "html"]
ENDINGS = {"text": "txt", "json": "json", "sarif": "sarif", "markdown": "md", "html": "html"}
SECRET = "eyJhbGciOi.S3cr3t-tok_en"


@pytest.fixture
def whole(tmp_path: Path) -> Path:
    """Return a migrated file."""
    migrate.upgrade(tmp_path / "x.db")
    return tmp_path / "x.db"


@pytest.fixture
def drifted(whole: Path) -> Path:
    """Return a file that lacks an index, and has a row that does not fit."""
    with closing(sqlite3.connect(whole)) as connection:
        connection.executescript("""
            DROP INDEX harel_transport_messages_by_group;
            INSERT INTO harel_timers VALUES ('a', 'p', 'soon');
        """)
    return whole


@pytest.mark.parametrize("form", FORMS)
def test_every_form_names_the_difference_and_exits_1(run, drifted: Path, form: str) -> None:
    """Each form goes to stdout alone, and the exit code says that there is drift."""
    before = drifted.read_bytes()
    code, out, err = run("check", "x.db", "--format", form)
    assert (code, err) == (1, "")
    assert "index-missing" in out
    assert "harel_transport_messages_by_group" in out
    assert drifted.read_bytes() == before


@pytest.mark.parametrize("form", FORMS)
def test_every_form_says_when_there_is_none(run, whole: Path, form: str) -> None:
    """Without drift every form is still a whole document, and the exit code is 0."""
    code, out, err = run("check", "x.db", "--format", form)
    assert (code, err) == (0, "")
    if form in ("json", "sarif"):
        assert json.loads(out)
    else:
        assert "x.db" in out
        assert "no drift" in out


def test_rows_are_read_when_asked_for(run, drifted: Path) -> None:
    """--data adds the rows that do not fit; a schema without drift then fails too."""
    assert "data-storage-class" not in run("check", "x.db").out
    code, out, _ = run("check", "x.db", "--data")
    assert code == 1
    assert (
        "data-storage-class harel_timers.fire_at: expected real, found text in 1 row:"
        " execution_id='a' path='p'\n"
    ) in out


def test_sarif_names_this_version_and_is_valid(run, drifted: Path) -> None:
    """What --format sarif prints is SARIF by the official schema."""
    log = json.loads(run("check", "x.db", "--data", "--format", "sarif").out)
    assert schemas.problems(log, schemas.SARIF) == []
    assert log["runs"][0]["tool"]["driver"]["version"] == __version__


def test_diff_names_both_and_has_every_form(run, drifted: Path, tmp_path: Path) -> None:
    """The forms of diff are those of check, with both databases named."""
    migrate.upgrade(tmp_path / "y.db")
    found = json.loads(run("diff", "y.db", "x.db", "--format", "json").out)
    assert (found["command"], found["against"], found["target"]) == ("diff", "y.db", "x.db")
    for form in FORMS:
        code, out, _ = run("diff", "y.db", "x.db", "--format", form)
        assert code == 1
        assert "index-missing" in out
    assert "y.db and x.db: 1 difference" in run("diff", "y.db", "x.db").out


def test_saved_reports_are_what_is_printed(run, drifted: Path, tmp_path: Path) -> None:
    """--save writes the form of each ending, beside what goes to stdout."""
    saves = [part for ending in ENDINGS.values() for part in ("--save", f"r.{ending}")]
    assert "::error" in run("check", "x.db", "--format", "github", *saves).out
    for form, ending in ENDINGS.items():
        printed = run("check", "x.db", "--format", form).out
        assert (tmp_path / f"r.{ending}").read_text(encoding="utf-8") == printed


@pytest.mark.parametrize("file", ["r.pdf", "r", "no/such/folder/r.md", "."])
def test_what_cannot_be_saved_is_refused_first(run, whole: Path, file: str) -> None:
    """A file that no form fits, or that has no folder, is refused before anything is read."""
    code, out, err = run("check", "missing.db", "--save", file)
    assert (code, out) == (2, "")
    assert "missing.db" not in err
    assert err.count("\n") == 1


def test_a_plan_is_printed_and_never_run(run, drifted: Path) -> None:
    """--fix-plan prints SQL that mends the database once somebody runs it."""
    before = drifted.read_bytes()
    code, out, err = run("check", "x.db", "--fix-plan")
    assert (code, err) == (1, "")
    assert drifted.read_bytes() == before
    with closing(sqlite3.connect(drifted)) as connection:
        connection.executescript(out)
    assert run("check", "x.db").code == 0
    assert run("check", "x.db", "--fix-plan").out.startswith("-- x.db: no drift")


def test_a_plan_has_one_form(run, drifted: Path) -> None:
    """A plan is SQL; asked for in another form it is refused."""
    code, out, err = run("check", "x.db", "--fix-plan", "--format", "json")
    assert (code, out) == (2, "")
    assert err.startswith("error: --fix-plan is SQL, not json")


def on_terminal(*arguments: str, **environment: str) -> str:
    """Run the command with a terminal as its stdout and stderr, and return what it shows."""
    ours, theirs = pty.openpty()
    command = [*COMMAND, *arguments]
    settings = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "TERM")}
    with subprocess.Popen(
        command, stdout=theirs, stderr=theirs, env={**settings, "TERM": "xterm", **environment}
    ):
        os.close(theirs)
        shown = b""
        while True:
            try:
                part = os.read(ours, 65536)
            except OSError:  # the other end is closed
                break
            if not part:
                break
            shown += part
    os.close(ours)
    return shown.decode()


def test_colour_is_for_terminals_that_want_it(run, drifted: Path) -> None:
    """A terminal gets colour, unless NO_COLOR or a dumb terminal says otherwise; a pipe never."""
    assert "\x1b[31mindex-missing\x1b[0m" in on_terminal("check", "x.db")
    assert "\x1b[31merror\x1b[0m: " in on_terminal("check", "missing.db")
    for quiet in ({"NO_COLOR": "1"}, {"TERM": "dumb"}):
        assert "\x1b" not in on_terminal("check", "x.db", **quiet)
        assert "\x1b" not in on_terminal("check", "missing.db", **quiet)
    assert "\x1b" not in run("check", "x.db").out


# How a file is spoiled, and what the one line says of it.
SPOILED = {
    "text": (lambda _: b"these are my notes", "is not a SQLite database: it is text"),
    "encrypted": (
        lambda whole: random.Random(1).randbytes(len(whole)),
        "is not a SQLite database: it is encrypted",
    ),
    "half-downloaded": (lambda whole: whole[: len(whole) // 2], "is cut off: "),
    "cut by a byte": (lambda whole: whole[:-1], "is cut off: "),
    "damaged": (lambda whole: whole[:4096] + bytes(len(whole) - 4096), "malformed"),
}


@pytest.mark.parametrize("verb", ["check", "diff"])
@pytest.mark.parametrize("case", SPOILED)
def test_what_is_wrong_with_a_file_is_said(run, whole: Path, verb: str, case: str) -> None:
    """A file that is no database, encrypted or not wholly there: exit 2, one line, no change."""
    spoil, line = SPOILED[case]
    whole.write_bytes(spoil(whole.read_bytes()))
    before = {path: path.read_bytes() for path in whole.parent.iterdir()}
    code, out, err = run(verb, *["x.db"] * (2 if verb == "diff" else 1))
    assert (code, out) == (2, "")
    assert err.startswith("error: x.db")
    assert line in err
    assert err.count("\n") == 1
    assert {path: path.read_bytes() for path in whole.parent.iterdir()} == before


def test_a_locked_file_is_said_to_be_locked(run, whole: Path) -> None:
    """A writer that holds the file is named as the reason, after --timeout seconds."""
    with closing(sqlite3.connect(whole, isolation_level=None)) as writer:
        writer.execute("BEGIN EXCLUSIVE")
        code, out, err = run("check", "x.db", "--timeout", "0.01")
    assert (code, out) == (2, "")
    assert "locked" in err
    assert err.count("\n") == 1


def test_a_server_that_is_not_there_is_unreachable(run) -> None:
    """A server that does not answer is one line that names it."""
    code, out, err = run("check", "http://127.0.0.1:1")
    assert (code, out) == (2, "")
    assert err.startswith("error: cannot connect to http://127.0.0.1:1: ")
    assert err.count("\n") == 1


def test_a_refused_token_is_a_401_and_never_shown(run) -> None:
    """A server that wants another token says so in one line; no form of a report shows a token."""
    key = JwtKey()
    with sqld_server(auth_key=key.public) as server:
        code, out, err = run("check", server.url, "--auth-token", SECRET)
        assert (code, out) == (2, "")
        assert "401" in err
        assert SECRET not in err
        token = key.token()
        with closing(dbapi.connect(server.url, auth_token=token)) as connection:
            connection.executescript(";".join(migrate.schema_sql()))
        for form in FORMS:
            code, out, err = run("check", f"{server.url}?authToken={token}", "--format", form)
            assert (code, err) == (0, "")
            assert token not in out
