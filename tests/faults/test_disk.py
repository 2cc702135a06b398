"""A disk that is full and files that cannot be written."""

from __future__ import annotations

import re
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from harel_schema import LibsqlStore, migrate
from harel_schema.devserver import BINARY_VARIABLE, find_sqld
from harel_schema.errors import Error, OperationalError, TargetError, TransferError
from harel_schema.testing import sqld_server
from harel_schema.transfer import copy
from harel_schema.verify import verify
from tests.cli.conftest import run  # noqa: F401 - a fixture
from tests.faults.ledger import Ledger, advance, audit, read
from tests.faults.limited import ignoring, room, without_override
from tests.transfer.support import contents, make_source

if TYPE_CHECKING:
    from pathlib import Path


def edit_outside(path, statement: str) -> None:
    """Run a statement that no transaction can hold."""
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(statement)


def commit_until_full(store, ledger: Ledger) -> Error:
    """Commit until one fails; return why."""
    while True:
        try:
            advance(store, "e", ledger, "w")
        except Error as error:
            return error


def one_line(error: BaseException) -> str:
    """Return what an error says: a line, and what to do."""
    said = str(error)
    assert re.fullmatch(r"[^\n]*; (free|see)[^\n]*", said), said
    return said


@pytest.mark.parametrize("driver", ["libsql", "sqlite3"])
def test_a_commit_finds_no_room(driver, tmp_path) -> None:
    """The commit that does not fit fails whole, in one clear line; with room the next one works."""
    ledger = Ledger(tmp_path / "ledger")
    database = tmp_path / "state.db"
    with LibsqlStore(database, driver=driver) as store:
        with room(1_000_000):
            assert one_line(commit_until_full(store, ledger)).startswith("state.db: ")
        acknowledged = read(tmp_path / "ledger")
        assert len(acknowledged) > 10
        advance(store, "e", ledger, "w")
    assert len(read(tmp_path / "ledger")) == len(acknowledged) + 1
    assert audit(database, read(tmp_path / "ledger")) == []


def test_a_servers_disk_is_full(tmp_path, monkeypatch) -> None:
    """Commits and a copy fail whole, in a line of ours; with room both go on where they were."""
    monkeypatch.setenv(BINARY_VARIABLE, str(ignoring(find_sqld(), tmp_path / "limited")))
    ledger = Ledger(tmp_path / "ledger")
    source = make_source(tmp_path / "source.db", executions=60, prefix="other")
    with sqld_server(tmp_path / "sqld") as server, LibsqlStore(server.url) as store:
        with room(1_000_000, server.pid):
            assert "the server" in one_line(commit_until_full(store, ledger))
            acknowledged = read(tmp_path / "ledger")
            assert len(acknowledged) > 10
            with pytest.raises(TransferError, match=r"free some .* run the same command again"):
                copy(source, server.url, prefix="other")
            assert audit(server.url, acknowledged) == []
        advance(store, "e", ledger, "w")
        assert len(read(tmp_path / "ledger")) == len(acknowledged) + 1
        assert audit(server.url, read(tmp_path / "ledger")) == []
        copy(source, server.url, prefix="other")
        assert verify(source, server.url, prefix="other").equal


def test_an_upgrade_finds_no_room(tmp_path) -> None:
    """It is refused or rolled back, in one line; with room it goes on."""
    database = make_source(tmp_path / "state.db", executions=900)
    migrate.downgrade(database, "0003")
    edit_outside(database, "VACUUM")
    before = contents(database)
    with room(database.stat().st_size), pytest.raises(OperationalError) as full:
        migrate.upgrade(database)
    one_line(full.value)
    assert contents(database) == before
    assert migrate.current(database, shape=True).shape == ()
    assert migrate.upgrade(database).applied == ("0004",)
    assert contents(database) == {**before, **contents(database)}


@pytest.fixture(params=["DELETE", "WAL"])
def database(request, tmp_path, monkeypatch) -> Path:
    """Return a file of either journal mode, in a folder of its own."""
    folder = tmp_path / "folder"
    folder.mkdir()
    path = make_source(folder / "state.db", executions=3)
    migrate.downgrade(path, "0003")
    edit_outside(path, f"PRAGMA journal_mode = {request.param}")
    monkeypatch.chdir(tmp_path)
    return path


LOOKING = [["current"], ["check"], ["diagram"]]
WRITING = [
    ["upgrade"],
    ["upgrade", "--dry-run"],
    ["downgrade", "--revision=0001", "--force"],
    ["stamp", "--revision=0001", "--force"],
    ["adopt"],
]


@pytest.fixture
def ends(run, database):  # noqa: F811
    """Run verbs that may not override permissions; return their codes and their lines of error."""

    def ends(lines) -> tuple[list[int], list[str]]:
        ended = without_override(lambda: [run(verb, database, *more) for verb, *more in lines])
        said = [each.err.removesuffix("\n") for each in ended if each.code]
        assert all(re.fullmatch("error: .*; .*", each) for each in said), said
        return [each.code for each in ended], said

    return ends


def test_a_file_that_cannot_be_written(database, ends) -> None:
    """What looks at it works; what would write says so before it does."""
    database.chmod(0o444)
    before = database.read_bytes()
    codes, said = ends([*LOOKING, ["copy", "copy.db"], *WRITING, ["move", "moved.db"]])
    assert codes == [0, 0, 0, 0, 2, 2, 2, 2, 2, 2]
    assert ["no permission to write" in each for each in said] == [True] * len(WRITING) + [False]
    assert "allow writing to the file" in said[-1]
    assert database.read_bytes() == before


def test_a_folder_that_cannot_be_written(database, ends) -> None:
    """The same; but a file in WAL mode cannot even be read there, and the line says why."""
    wal = database.read_bytes()[18] == 2
    before = database.read_bytes()
    database.parent.chmod(0o555)
    try:
        codes, said = ends([*LOOKING, *WRITING])
        with pytest.raises(TargetError, match="no permission to write"):
            without_override(lambda: LibsqlStore(database))
    finally:
        database.parent.chmod(0o755)
    assert codes == [2 if wal else 0] * len(LOOKING) + [2] * len(WRITING)
    assert all(("in WAL mode" if wal else "no permission") in each for each in said)
    assert database.read_bytes() == before
    assert [path.name for path in database.parent.iterdir()] == [database.name]
