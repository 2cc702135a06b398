"""One verb on many databases."""

from __future__ import annotations

import json
import os
import pty
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from harel_schema import migrate
from harel_schema.revisions import history
from harel_schema.testing import JwtKey, sqld_server
from tests.cli.conftest import COMMAND

if TYPE_CHECKING:
    from collections.abc import Iterable

CHAIN = [each.revision for each in history()]
HEAD = CHAIN[-1]
RAN = f"base -> {HEAD} (ran {', '.join(CHAIN)})"


def listed(names: Iterable[object], file: str = "fleet.txt") -> str:
    """Write a list of databases, and return its name."""
    Path(file).write_text("# the fleet\n\n" + "".join(f"  {name} \n" for name in names))
    return file


def test_each_database_has_a_line_and_the_last_one_is_a_summary(run) -> None:
    """Several databases are worked on in the order in which they are named."""
    migrate.upgrade("b.db")
    code, out, err = run("upgrade", "a.db", "b.db", "c.db")
    assert (code, err) == (0, "")
    assert out.splitlines() == [
        f"a.db: {RAN}",
        f"b.db: already at {HEAD}",
        f"c.db: {RAN}",
        "3 databases: 1 unchanged, 2 upgraded",
    ]


def test_the_exit_code_is_the_worst(run) -> None:
    """A difference is 1 and stops nothing; an error is 2."""
    for name in "abc":
        migrate.upgrade(f"{name}.db")
    with closing(sqlite3.connect("b.db")) as connection:
        connection.execute("DROP TABLE harel_trace")
    assert run("check", "a.db", "c.db").code == 0
    ended = run("check", "a.db", "b.db", "c.db")
    assert ended.code == 1
    assert ended.out.splitlines()[1:] == [
        f"b.db: 1 difference (revision {HEAD})",
        f"c.db: no drift (revision {HEAD})",
        "3 databases: 1 different, 2 no drift",
    ]
    assert run("check", "a.db", "missing.db", "b.db", "--keep-going").code == 2


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_an_error_stops_what_was_not_begun_unless_told_otherwise(run, jobs: str) -> None:
    """After a failed database no further one is begun; with --keep-going all are."""
    names = ["bad.db", *(f"{number}.db" for number in range(3 if jobs == "1" else 24))]
    with closing(sqlite3.connect("bad.db")) as connection:
        connection.execute("CREATE TABLE harel_trace (id)")
    file = listed(names)
    code, out, _ = run("upgrade", "--targets", file, "--jobs", jobs, "--format", "json")
    found = json.loads(out)
    assert code == 2
    assert found["summary"]["failed"] == 1
    # With more jobs, others are under way when the first one fails.
    assert found["summary"]["not begun"] in ([3] if jobs == "1" else range(1, 25))
    outcomes = {each["target"]: each["outcome"] for each in found["results"]}
    assert all(Path(name).exists() == (outcomes[name] != "not begun") for name in names)
    ended = run("upgrade", "--targets", file, "--jobs", jobs, "--keep-going")
    assert ended.code == 2
    assert "bad.db: error: the tables of the prefix harel have the shape of no" in ended.out
    assert all(Path(name).exists() for name in names)


def test_a_bad_line_is_named_before_anything_is_done(run) -> None:
    """A name that cannot be is refused with its line, and no database is touched."""
    file = listed(["a.db", "ftp://host"])
    code, out, err = run("upgrade", "--targets", file)
    assert (code, out) == (2, "")
    assert err.startswith("error: fleet.txt, line 4: ")
    assert not Path("a.db").exists()


def test_a_list_without_names_is_an_error(run) -> None:
    """An empty list is no fleet of none."""
    code, _, err = run("check", "--targets", listed([]))
    assert code == 2
    assert "names no database" in err


def test_a_database_that_is_named_twice_is_worked_on_once(run) -> None:
    """The same name again, as an argument or in the list, is one database."""
    out = run("upgrade", "a.db", "a.db", "--targets", listed(["b.db", "a.db"])).out
    assert out.splitlines()[-1] == "2 databases: 2 upgraded"


def test_current_and_a_dry_run_take_a_fleet_too(run) -> None:
    """They say of each what they say of one, and change nothing."""
    migrate.upgrade("a.db", "0001")
    migrate.upgrade("b.db")
    assert run("current", "a.db", "b.db", "--verbose").out.splitlines() == [
        f"a.db: 0001, head {HEAD}, pending: {', '.join(CHAIN[1:])}, tables match",
        f"b.db: {HEAD} (head), tables match",
        f"2 databases: 1 at 0001, 1 at {HEAD}",
    ]
    assert run("upgrade", "a.db", "b.db", "--dry-run").out.splitlines() == [
        f"a.db: 0001, would run {', '.join(CHAIN[1:])}",
        "b.db: nothing to do",
        "2 databases: 1 to upgrade, 1 unchanged",
    ]
    assert migrate.current("a.db").revision == "0001"


def test_sql_opens_nothing(run, tmp_path: Path) -> None:
    """The SQL of the whole chain, or of a part of it, needs no database."""
    assert "CREATE TABLE harel_executions" in run("upgrade", "--sql").out
    part = run("upgrade", "x.db", "--sql", "--revision", "0001:0002", "--prefix", "app").out
    assert part.count("CREATE TABLE") == 1
    assert "CREATE TABLE app_definitions" in part
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("count", [16, pytest.param(200, marks=pytest.mark.soak)])
def test_many_files(run, count: int) -> None:
    """A fleet of local files is brought to head by several processes, and again is nothing."""
    file = listed(f"{number:03}.db" for number in range(count))
    code, out, _ = run("upgrade", "--targets", file, "--jobs", "2")
    lines = out.splitlines()
    assert code == 0
    assert lines[-1] == f"{count} databases: {count} upgraded"
    assert sorted(lines[:-1]) == [f"{number:03}.db: {RAN}" for number in range(count)]
    checked = run("check", "--targets", file, "--jobs", "2").out
    assert checked.endswith(f"{count} databases: {count} no drift\n")


@pytest.mark.parametrize("count", [8, pytest.param(50, marks=pytest.mark.soak)])
def test_namespaces_of_a_server(run, tmp_path: Path, monkeypatch, count: int) -> None:
    """A fleet of namespaces: the token comes from the environment and is shown nowhere."""
    key = JwtKey()
    token = key.token()
    monkeypatch.setenv("TURSO_AUTH_TOKEN", token)
    with sqld_server(tmp_path / "sqld", auth_key=key.public, admin=True, namespaces=True) as server:
        urls = [server.create_namespace(f"n{number}") for number in range(count)]
        file = listed(urls)
        ended = run("upgrade", "--targets", file, "--jobs", "2")
        assert ended.out.splitlines()[-1] == f"{count} databases: {count} upgraded", ended
        document = run("current", "--targets", file, "--jobs", "2", "--format", "json").out
    assert json.loads(document)["summary"] == {f"at {HEAD}": count}
    assert token not in ended.out + ended.err + document


def test_a_list_without_an_end_is_refused(run) -> None:
    """It is not read until the memory is full."""
    code, out, err = run("current", "--targets", "/dev/zero")
    assert (code, out) == (2, "")
    assert err.startswith("error: /dev/zero has more than 10,000,000 characters; list the ")


def test_ctrl_c_reaches_processes_that_have_just_begun() -> None:
    """A terminal sends it to each of them: one line is said, by the first, and no traceback."""
    command = [sys.executable, "-m", "harel_schema", "upgrade", "a.db", "b.db", "--jobs", "2"]
    with subprocess.Popen(
        command, start_new_session=True, stderr=subprocess.PIPE, text=True
    ) as process:
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
        # Two, and one of Python's own.
        while len(children.read_text().split()) < 3:
            assert process.poll() is None
        os.killpg(process.pid, signal.SIGINT)
        _, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (130, "\nerror: interrupted\n")


def test_a_bar_is_drawn_on_a_terminal_only(tmp_path: Path) -> None:
    """On a terminal stderr has a bar; the lines on stdout are the same without it."""
    main, terminal = pty.openpty()
    command = [*COMMAND, "upgrade"]
    with os.fdopen(terminal, "wb") as stderr:
        done = subprocess.run(
            [*command, "a.db", "b.db"],
            stdout=subprocess.PIPE,
            stderr=stderr,
            text=True,
            timeout=60,
            check=True,
        )
    drawn = os.read(main, 65536).decode()
    os.close(main)
    assert done.stdout.splitlines()[-1] == "2 databases: 2 upgraded"
    assert "of 2 databases" in drawn
