"""The command as its users meet it: what it prints, where, and how it ends."""

from __future__ import annotations

import json
import os
import re
import sqlite3
import subprocess
from typing import TYPE_CHECKING, Any

import click
import pytest

from harel_schema import cli
from harel_schema.revisions import history
from tests.cli.conftest import COMMAND

if TYPE_CHECKING:
    from pathlib import Path

CHAIN = [each.revision for each in history()]
HEAD = CHAIN[-1]
SECRET = "eyJhbGciOi.S3cr3t-tok_en"


def verbs() -> list[str]:
    """Return the names of all verbs."""
    return cli.cli.list_commands(click.Context(cli.cli))


@pytest.mark.parametrize("verb", verbs())
def test_every_verb_has_a_help(run, verb: str) -> None:
    """--help of a verb says what it does, and describes each of its options."""
    ended = run(verb, "--help")
    assert ended.code == 0
    assert f"Usage: harel-schema {verb}" in ended.out
    command = cli.cli.get_command(click.Context(cli.cli), verb)
    assert command is not None
    undescribed = [p.name for p in command.params if isinstance(p, click.Option) and not p.help]
    assert undescribed == []


def test_no_verb_shows_the_help(run) -> None:
    """Without a verb the help goes to stderr, and the exit code says that nothing was done."""
    code, out, err = run()
    assert (code, out) == (2, "")
    assert err.startswith("Usage: harel-schema")
    assert all(verb in err for verb in verbs())


def test_upgrade_then_nothing_to_do(run) -> None:
    """An upgrade brings a new file to head, and does nothing the second time."""
    assert run("upgrade", "x.db") == (0, f"x.db: base -> {HEAD} (ran {', '.join(CHAIN)})\n", "")
    assert run("upgrade", "x.db") == (0, f"x.db: already at {HEAD}\n", "")
    assert run("current", "x.db") == (0, f"x.db: {HEAD} (head)\n", "")
    assert run("check", "x.db") == (0, f"x.db: no drift (revision {HEAD})\n", "")


def test_up_down_and_stamp(run) -> None:
    """A downgrade goes back, current says what is pending, a stamp moves the version row alone."""
    run("upgrade", "x.db")
    down = run("downgrade", "x.db", "--revision", "0001").out
    first, *dropped = down.splitlines()
    assert first == f"x.db: {HEAD} -> 0001 (ran {', '.join(CHAIN[:0:-1])})"
    assert "  dropped harel_definitions (0 rows)" in dropped
    pending = f"x.db: 0001, head {HEAD}, pending: {', '.join(CHAIN[1:])}\n"
    assert run("current", "x.db").out == pending
    assert run("stamp", "x.db", "--revision", "0002").code == 2
    stamped = run("stamp", "x.db", "--revision", "0002", "--force").out
    assert stamped == "x.db: 0001 -> 0002\n"
    ended = run("check", "x.db")
    assert ended.code == 1
    assert "table-missing harel_definitions" in ended.out


def test_history_lists_the_chain(run) -> None:
    """History needs no database and lists the oldest revision first."""
    lines = run("history").out.splitlines()
    assert [line.split()[0] for line in lines] == CHAIN


def test_dry_run_makes_no_file(run, tmp_path: Path) -> None:
    """A dry run prints the SQL and makes nothing."""
    ended = run("upgrade", "x.db", "--dry-run")
    assert ended.code == 0
    assert "CREATE TABLE harel_executions" in ended.out
    assert list(tmp_path.iterdir()) == []


def test_json_is_one_document(run) -> None:
    """--format json prints one document with stable keys and nothing else to stdout."""
    upgraded = json.loads(run("upgrade", "x.db", "--format", "json").out)
    assert upgraded["applied"] == CHAIN
    assert json.loads(run("current", "x.db", "--format", "json").out)["pending"] == []
    assert json.loads(run("check", "x.db", "--format", "json").out)["drift"] is False
    assert len(json.loads(run("history", "--format", "json").out)) == len(CHAIN)


def test_diff_of_two_databases(run) -> None:
    """Diff says what the second lacks, and exits 1."""
    run("upgrade", "a.db")
    run("upgrade", "b.db", "--revision", "0001")
    assert run("diff", "a.db", "a.db").code == 0
    ended = run("diff", "a.db", "b.db")
    assert ended.code == 1
    assert "table-missing harel_definitions" in ended.out


def test_the_environment_names_the_database(run, monkeypatch: pytest.MonkeyPatch) -> None:
    """HAREL_SCHEMA_TARGET and HAREL_PREFIX are the defaults."""
    monkeypatch.setenv("HAREL_SCHEMA_TARGET", "env.db")
    monkeypatch.setenv("HAREL_PREFIX", "app")
    assert run("upgrade").out.startswith(f"env.db: base -> {HEAD}")
    assert run("check", "--prefix", "app").code == 0
    assert run("check", "--prefix", "other").code == 1


BAD = [
    ["nope"],
    ["upgrade", "--no-such-option"],
    ["downgrade", "x.db", "y.db", "--revision", "base"],
    ["upgrade", "--targets", "missing.txt"],
    ["upgrade", "x.db", "--jobs", "0"],
    ["upgrade", "--sql", "--revision", "9999"],
    ["check", "x.db", "y.db", "--format", "sarif"],
    ["upgrade"],
    ["upgrade", "x.db", "--revision", "9999"],
    ["upgrade", "x.db", "--revision", ""],
    ["upgrade", "x.db", "--prefix", "no-dash"],
    ["upgrade", "x.db", "--prefix", "sqlite"],
    ["upgrade", "no/such/folder/x.db"],
    ["upgrade", "."],
    ["upgrade", "notes.txt"],
    ["upgrade", "ftp://host"],
    ["upgrade", "x.db", "--auth-token", SECRET],
    ["upgrade", f"https://u:{SECRET}@host"],
    ["downgrade", "missing.db", "--revision", "base"],
    ["downgrade", "x.db"],
    ["current", "missing.db"],
    ["current", "notes.txt"],
    ["stamp", "x.db", "--revision", "9999"],
    ["check", "missing.db"],
    ["check", "notes.txt"],
    ["check", "http://127.0.0.1:1"],
    ["check", f"http://127.0.0.1:1?authToken={SECRET}"],
    ["check", "x.db", "--format", "yaml"],
    ["diff", "missing.db", "also-missing.db"],
    ["copy", "missing.db", "x.db"],
    ["copy", "notes.txt", "x.db"],
    ["copy", "x.db"],
    ["verify", "missing.db", "x.db"],
    ["verify", "notes.txt", "missing.db"],
    ["dev-server", "--port", "70000"],
    ["dev-server", "--dir", "no/such/folder"],
]


@pytest.mark.parametrize(
    ("verb", "said"),
    [
        ("chek", "No such command 'chek', but there is 'check'; see 'harel-schema --help'"),
        ("xyzzy", "No such command 'xyzzy'; see 'harel-schema --help'"),
    ],
)
def test_a_verb_that_is_nearly_one_is_named(run, verb: str, said: str) -> None:
    """A slip of the fingers is answered with the verb that was meant."""
    assert run(verb, "x.db") == (2, "", f"error: {said}\n")


@pytest.mark.parametrize("args", BAD, ids=" ".join)
def test_bad_input_is_one_line_and_exit_2(run, tmp_path: Path, args: list[str]) -> None:
    """Bad input ends with exit 2 and one line on stderr; nothing is written, no secret shown."""
    (tmp_path / "notes.txt").write_text("these are my notes, not a database\n")
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    code, out, err = run(*args)
    assert (code, out) == (2, "")
    assert re.fullmatch(r"error: [^\n]+\n", err)
    assert SECRET not in err
    assert "a defect" not in err
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before


@pytest.mark.parametrize("args", [["no\x90pe"], ["stamp", "x.db", "--revision", "\x1b[2J\x90"]])
def test_an_error_cannot_command_the_terminal(run, args: list[str]) -> None:
    """What a line quotes may hold control characters: they are shown, and not sent."""
    run("upgrade", "x.db")
    code, _, err = run(*args)
    assert code == 2
    assert r"\x90" in err
    assert err.rstrip("\n").isprintable()


@pytest.mark.parametrize(
    "args",
    [
        ["downgrade", "x.db", f"libsql://user:{SECRET}@host", "--revision", "base"],
        ["copy", "x.db", "y.db", SECRET],
        ["completion", f"state.db?auth_token={SECRET}"],
        ["check", "x.db", "--save", f"authToken={SECRET}"],
        ["check", "x.db", f"--format={SECRET}"],
    ],
    ids=" ".join,
)
def test_a_token_in_the_wrong_place_is_not_shown(run, args: list[str]) -> None:
    """The line that refuses an argument quotes it, without the token in it."""
    code, out, err = run(*args)
    assert code == 2
    assert "***" in err
    assert SECRET not in out + err


def test_a_list_that_is_no_text_is_named(run, tmp_path: Path) -> None:
    """A database where a list of databases should be is one clear line."""
    (tmp_path / "x.db").write_bytes(b"SQLite format 3\0\xff\xfe")
    code, out, err = run("check", "--targets", "x.db")
    assert (code, out) == (2, "")
    assert err == "error: x.db is no text; list the databases, one a line\n"


def test_a_defect_ends_in_one_line_too(run, monkeypatch: pytest.MonkeyPatch) -> None:
    """An error that nobody foresaw is one line that says how to report it."""

    def break_(*_args: object) -> None:
        raise ZeroDivisionError("by zero")

    monkeypatch.setattr("harel_schema.migrate.history", break_)
    code, out, err = run("history")
    assert (code, out) == (2, "")
    assert err.startswith("error: unexpected ZeroDivisionError: by zero; a defect")
    monkeypatch.setenv("HAREL_SCHEMA_TRACEBACK", "1")
    assert "Traceback" in run("history").err


def alone(*args: str, shell: str = '"$@"', **options: Any) -> subprocess.CompletedProcess[str]:
    """Run the command in a process of its own, by way of a shell."""
    root = os.path.dirname(os.path.dirname(cli.__path__[0]))  # noqa: PTH120
    return subprocess.run(
        ["/bin/sh", "-c", shell, "sh", *COMMAND, *args],
        env={**os.environ, "PYTHONPATH": root},
        stderr=subprocess.PIPE,
        text=True,
        timeout=60,
        check=False,
        **options,
    )


def test_a_closed_pipe_is_quiet_and_no_difference() -> None:
    """`harel-schema … | head -0` says nothing on stderr; exit 1 would mean a difference."""
    reader, writer = os.pipe()
    os.close(reader)
    try:
        done = alone("history", stdout=writer)
    finally:
        os.close(writer)
    assert (done.returncode, done.stderr) == (2, "")


@pytest.mark.parametrize(
    ("args", "shell", "code"),
    [(["history"], '"$@" >&-', 0), (["check", "none.db"], '"$@" 2>&-', 2)],
    ids=["stdout", "stderr"],
)
def test_a_closed_stream_changes_no_exit_code(args: list[str], shell: str, code: int) -> None:
    """A stream that was closed from the beginning is met in silence."""
    done = alone(*args, shell=shell, stdout=subprocess.PIPE)
    assert (done.returncode, done.stdout, done.stderr) == (code, "", "")


@pytest.mark.parametrize("format_", ["text", "json", "github", "sarif", "markdown"])
def test_a_name_that_is_no_utf8_is_shown_in_every_format(run, tmp_path: Path, format_: str) -> None:
    """Bytes of a file's name that are no text are escaped, on a terminal and in documents."""
    name = os.fsdecode(b"bad\xff.db")
    sqlite3.connect(tmp_path / name).close()
    run("upgrade", name)
    ended = run("check", name, "--format", format_, "--save", "report.json")
    assert (ended.code, ended.err) == (0, "")
    assert r"bad\udcff.db" in ended.out.replace(r"\\", "\\")
    assert json.loads((tmp_path / "report.json").read_text(encoding="utf-8"))["drift"] is False
