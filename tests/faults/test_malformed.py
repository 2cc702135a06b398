"""Whatever a verb is handed, it ends with 0, 1 or 2, in one line, and leaves nothing behind."""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import sys
import warnings
from contextlib import suppress
from typing import TYPE_CHECKING

import click
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harel_schema import LibsqlStore, cli
from harel_schema.errors import CursorError, HarelSchemaError
from harel_schema.models import Event, Execution
from harel_schema.testing import sqld_server
from tests.cli.conftest import COMMAND, Ended
from tests.faults.leaks import nothing_left
from tests.faults.malformed import SECRET, command_lines, files, texts
from tests.support.text import any_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

VERBS = cli.cli.list_commands(click.Context(cli.cli))
LOOKING = {"check", "current", "diagram", "diff", "doctor", "history", "verify"}
# What SQLite keeps beside a file belongs to whoever opens it.
BESIDE = ("-wal", "-shm", "-journal", "-info", "-sync")
CONTROL = r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028\u2029]"


@pytest.fixture(scope="module")
def servers(tmp_path_factory, originals) -> Iterator[list[str]]:
    """Yield the addresses of a server, of one that answers nonsense, and of none."""
    command = [sys.executable, "-m", "tests.faults.nonsense"]
    pipe = subprocess.PIPE
    with (
        sqld_server(tmp_path_factory.mktemp("sqld")) as server,
        subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as nonsense,
    ):
        address = nonsense.stdout.readline().strip()
        yield [server.url, f"{server.url}?authToken={SECRET}", address]
        nonsense.stdin.close()


def contents(folder: Path) -> dict[Path, str]:
    """Return a digest of each file, without what SQLite keeps beside it."""
    return {
        path: hashlib.sha256(path.read_bytes()).hexdigest()
        for path in folder.iterdir()
        if path.is_file() and not path.is_symlink() and not path.name.endswith(BESIDE)
    }


def check(line: list[str], ended: Ended, before: dict[Path, str], folder: Path) -> None:
    """See that a run kept what is promised."""
    said = f"{line}\n{ended}"
    assert ended.code in (0, 1, 2), said
    errors = re.findall(r"(?m)^error: .*$", ended.err)
    if ended.code != 2:
        assert errors == [], said
    elif not of_several(ended):
        assert len(errors) == 1, said
    assert "Traceback" not in ended.out + ended.err, said
    assert "a defect" not in ended.out + ended.err, said
    assert "panicked" not in ended.err, said
    assert SECRET not in ended.out + ended.err, said
    assert not re.search(CONTROL, ended.out + ended.err), said
    after = contents(folder)
    kept = set(before) if unchanging(line, ended) else set(before) & written_nothing(line, folder)
    assert {path for path in kept if after.get(path) != before[path]} == set(), said
    for path in after:
        assert path in before or SECRET.encode() not in path.read_bytes(), said


def of_several(ended: Ended) -> bool:
    """Tell whether a verb has said of each of several databases how it ended."""
    return " databases: " in ended.out or '"summary"' in ended.out


def unchanging(line: list[str], ended: Ended) -> bool:
    """Tell whether this run must not have changed any file: it only looks, or it was refused."""
    refused = ended.code == 2 and not of_several(ended)
    return line[0] in LOOKING or "--dry-run" in line or refused


def written_nothing(line: list[str], folder: Path) -> set[Path]:
    """Return the files that a verb that writes does not write to: the source of a copy."""
    return {folder / line[1]} if line[0] == "copy" else set()


@pytest.fixture
def try_verb(originals, servers, try_often, capfd, monkeypatch) -> Callable[[str, int], None]:
    """Return what hands a verb one malformed command line after another."""
    monkeypatch.setenv("TURSO_AUTH_TOKEN", SECRET)

    def try_verb(verb: str, examples: int) -> None:
        def once(draw, folder) -> None:
            line = draw(command_lines(verb, originals, folder, servers))
            before = contents(folder)
            capfd.readouterr()
            with nothing_left(), warnings.catch_warnings(record=True) as warned:
                warnings.simplefilter("always")
                code = exit_code(line)
            assert [str(each.message) for each in warned] == [], line
            check(line, Ended(code, *capfd.readouterr()), before, folder)

        try_often(examples, once)

    return try_verb


def exit_code(line: list[str]) -> int:
    """Run the command in this process."""
    try:
        cli.main(line)
    except SystemExit as ended:
        return int(ended.code or 0)
    raise AssertionError(line)


@pytest.mark.parametrize("verb", VERBS)
def test_a_verb_takes_anything(verb, try_verb) -> None:
    """A few command lines of every kind."""
    try_verb(verb, 7)


@pytest.mark.soak
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("verb", VERBS)
def test_a_verb_takes_a_thousand(verb, try_verb) -> None:
    """A thousand of them."""
    try_verb(verb, 1000)


def alone(line: list[str]) -> Ended:
    """Run the command in a process of its own."""
    done = subprocess.run(
        [*COMMAND, *line],
        capture_output=True,
        timeout=100,
        check=False,
        env=os.environ | {"TURSO_AUTH_TOKEN": SECRET},
    )
    return Ended(
        done.returncode, *(s.decode("utf-8", "replace") for s in (done.stdout, done.stderr))
    )


@pytest.mark.parametrize("examples", [1, pytest.param(100, marks=pytest.mark.soak)])
@pytest.mark.timeout(1800)
def test_a_process_takes_anything(examples, originals, servers, try_often) -> None:
    """The same in processes of their own, where interpreter and drivers end too."""

    def once(draw, folder) -> None:
        line = draw(command_lines(draw(st.sampled_from(VERBS)), originals, folder, servers))
        before = contents(folder)
        check(line, alone(line), before, folder)

    try_often(examples, once)


@pytest.mark.parametrize("examples", [50, pytest.param(10_000, marks=pytest.mark.soak)])
def test_a_cursor_may_be_anything(examples) -> None:
    """A text that no listing gave is `CursorError`, and never a page of something."""
    with LibsqlStore("state.db") as store:
        for number in range(3):
            store.save(Execution(id=f"e{number}", definition_id="d"))
        given_out = store.list_executions(limit=1).next_cursor

        @settings(max_examples=examples)
        @given(st.one_of(texts(), st.integers(0, len(given_out) - 1), any_text()))
        def run(cursor) -> None:
            if isinstance(cursor, int):
                flipped = "A" if given_out[cursor] != "A" else "B"
                cursor = given_out[:cursor] + flipped + given_out[cursor + 1 :]
            if cursor in ("", given_out):
                return
            with pytest.raises(CursorError) as refused:
                store.list_executions(limit=1, cursor=cursor)
            assert str(refused.value).isprintable()

        run()


@pytest.mark.timeout(600)
@pytest.mark.parametrize("examples", [10, pytest.param(1000, marks=pytest.mark.soak)])
@pytest.mark.parametrize("driver", ["libsql", "sqlite3"])
def test_a_store_opens_anything(driver, examples, originals, try_often) -> None:
    """A store works on a file, or says what is wrong with an error of ours, and leaves nothing."""

    def once(draw, folder) -> None:
        path = folder / draw(files(originals, folder))
        with nothing_left(), warnings.catch_warnings(), suppress(HarelSchemaError):
            warnings.simplefilter("ignore")
            with LibsqlStore(path, driver=driver) as store:
                store.load("e0001")
                store.commit(Execution(id="new", definition_id="d"), [(None, Event(kind="k"))])
                store.list_executions()
                store.pending_outbox()
                store.read_trace("e0001")

    try_often(examples, once)
