"""A disk that is full and files that cannot be written."""

from __future__ import annotations

import re
import sqlite3
from contextlib import closing

import pytest

from harel_schema import migrate
from tests.faults.ledger import audit, read
from tests.faults.limited import COMMAND, run, run_verbs, without_override
from tests.transfer.support import contents, make_source

# A file cannot grow beyond so many bytes: what a full disk does, without one.
LIMIT = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, ({room}, {room}))\n"
WORK = """
import sys
from pathlib import Path
from harel_schema import LibsqlStore
from harel_schema.errors import Error
from tests.faults.ledger import Ledger, advance

database, driver, commits = sys.argv[1:]
with LibsqlStore(database, driver=driver) as store:
    ledger = Ledger(Path("ledger"))
    for number in range(int(commits)):
        try:
            advance(store, "e", ledger, "w")
        except Error as error:
            print(error)
            sys.exit(7)
"""


def edit_outside(path, statement: str) -> None:
    """Run a statement that no transaction can hold."""
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(statement)


@pytest.mark.parametrize("driver", ["libsql", "sqlite3"])
def test_a_commit_finds_no_room(driver, tmp_path) -> None:
    """The commit that does not fit fails whole, in one clear line; with room the next one works."""
    database = tmp_path / "state.db"
    assert run(WORK, database, driver, 3).code == 0
    full = run(LIMIT.format(room=1_000_000) + WORK, database, driver, 10_000)
    assert full.code == 7, full
    assert re.fullmatch(r"state\.db: [^\n]*; (free|see)[^\n]*\n", full.out), full
    acknowledged = read(tmp_path / "ledger")
    assert len(acknowledged) > 10
    assert audit(database, acknowledged) == []
    assert run(WORK, database, driver, 3).code == 0
    assert len(read(tmp_path / "ledger")) == len(acknowledged) + 3
    assert audit(database, read(tmp_path / "ledger")) == []


def test_an_upgrade_finds_no_room(tmp_path) -> None:
    """It is refused or rolled back, in one line; with room it goes on."""
    database = make_source(tmp_path / "state.db", executions=900)
    migrate.downgrade(database, "0003")
    edit_outside(database, "VACUUM")
    before = contents(database)
    room = database.stat().st_size
    full = run(LIMIT.format(room=room) + COMMAND, "upgrade", database)
    assert full.code == 2, full
    assert re.fullmatch(r"error: [^\n]*; [^\n]*\n", full.err), full
    assert contents(database) == before
    assert migrate.current(database, shape=True).shape == ()
    assert migrate.upgrade(database).applied == ("0004",)
    assert contents(database) == {**before, **contents(database)}


@pytest.fixture(params=["DELETE", "WAL"])
def database(request, tmp_path):
    """Return a file of either journal mode, in a folder of its own."""
    folder = tmp_path / "folder"
    folder.mkdir()
    path = make_source(folder / "state.db", executions=3)
    migrate.downgrade(path, "0003")
    edit_outside(path, f"PRAGMA journal_mode = {request.param}")
    return path


LOOKING = [["current"], ["check"], ["diagram"]]
WRITING = [
    ["upgrade"],
    ["upgrade", "--dry-run"],
    ["downgrade", "--revision=0001", "--force"],
    ["stamp", "--revision=0001", "--force"],
    ["adopt"],
]


def ends(database, lines) -> tuple[list[int], list[str]]:
    """Run verbs that may not override permissions; return their codes and their lines of error."""
    ended = run_verbs([[verb, database, *more] for verb, *more in lines], limit=without_override)
    said = [each.err.removesuffix("\n") for each in ended if each.code]
    assert all(re.fullmatch("error: .*; .*", each) for each in said), said
    return [each.code for each in ended], said


def test_a_file_that_cannot_be_written(database, tmp_path) -> None:
    """What looks at it works; what would write says so before it does."""
    database.chmod(0o444)
    before = database.read_bytes()
    copying, moving = ["copy", tmp_path / "copy.db"], ["move", tmp_path / "moved.db"]
    codes, said = ends(database, [*LOOKING, copying, *WRITING, moving])
    assert codes == [0, 0, 0, 0, 2, 2, 2, 2, 2, 2]
    assert ["no permission to write" in each for each in said] == [True] * len(WRITING) + [False]
    assert "allow writing to the file" in said[-1]
    assert database.read_bytes() == before


def test_a_folder_that_cannot_be_written(database) -> None:
    """The same; but a file in WAL mode cannot even be read there, and the line says why."""
    wal = database.read_bytes()[18] == 2
    before = database.read_bytes()
    database.parent.chmod(0o555)
    try:
        codes, said = ends(database, [*LOOKING, *WRITING])
        opened = run(WORK, database, "libsql", 1, limit=without_override)
    finally:
        database.parent.chmod(0o755)
    assert codes == [2 if wal else 0] * len(LOOKING) + [2] * len(WRITING)
    assert all(("in WAL mode" if wal else "no permission") in each for each in said)
    assert opened.code == 1
    assert "no permission to write" in opened.err
    assert database.read_bytes() == before
    assert [path.name for path in database.parent.iterdir()] == [database.name]
