"""`check` and `diff` change nothing, and say what is wrong with what is no database."""

from __future__ import annotations

import hashlib
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from harel_schema import dbapi, migrate
from harel_schema.drift import Drift, Kind, check, diff
from harel_schema.errors import (
    BusyError,
    DatabaseError,
    HarelSchemaError,
    InterfaceError,
    NotADatabaseError,
    TargetError,
)
from harel_schema.sql import REVISION

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def state(tmp_path: Path) -> Path:
    """Return a migrated database file, in a folder of its own."""
    path = tmp_path / "data" / "state.db"
    path.parent.mkdir()
    migrate.upgrade(path)
    return path


def journal(path: Path, mode: str) -> sqlite3.Connection:
    """Open a file in a journal mode."""
    connection = sqlite3.connect(path, isolation_level=None)
    assert connection.execute(f"PRAGMA journal_mode = {mode}").fetchone()[0] == mode
    return connection


def files(path: Path) -> dict[str, str]:
    """Return the digest of every file beside a database."""
    return {
        each.name: hashlib.sha256(each.read_bytes()).hexdigest() for each in path.parent.iterdir()
    }


@pytest.mark.parametrize("mode", ["delete", "wal", "persist"])
def test_checking_changes_no_byte_and_leaves_no_file(state: Path, mode):
    """A file is read as it is, and nothing appears beside it, in any journal mode."""
    journal(state, mode).close()
    before = files(state)
    assert not check(state)
    assert files(state) == before


def test_a_database_that_is_written_to_is_read_beside_its_writer(state: Path):
    """A writer's open transaction in WAL mode neither stops a check nor shows in it."""
    with closing(journal(state, "wal")) as writer:
        writer.execute("BEGIN IMMEDIATE")
        writer.execute("DROP TABLE harel_trace")
        assert not check(state)
        writer.execute("COMMIT")
        assert [d.kind for d in check(state)] == [Kind.TABLE_MISSING]


def test_a_wal_that_a_crash_left_is_read_and_kept(state: Path, tmp_path: Path):
    """What stands only in a left-over -wal counts, and is not folded into the file."""
    with closing(journal(state, "wal")) as writer:
        writer.execute("DROP TABLE harel_trace")
        crashed = tmp_path / "crashed" / "state.db"
        crashed.parent.mkdir()
        for suffix in ("", "-wal"):
            crashed.with_name(crashed.name + suffix).write_bytes(
                state.with_name(state.name + suffix).read_bytes()
            )
    before = files(crashed)
    assert [d.name for d in check(crashed)] == ["harel_trace"]
    after = files(crashed)
    after.pop("state.db-shm", None)
    assert after == before


def test_a_locked_database_is_busy(state: Path):
    """A writer that holds the exclusive lock makes a check fail in time, and says so."""
    with closing(journal(state, "delete")) as writer:
        writer.execute("BEGIN EXCLUSIVE")
        with pytest.raises(BusyError):
            check(state, timeout=0.01)


def bad(whole: bytes) -> dict[str, tuple[bytes | None, type[HarelSchemaError]]]:
    """Return files that are no database, and the error that says which of these they are."""
    return {
        "text.db": (b"hello world, this is text", NotADatabaseError),
        "encrypted.db": (hashlib.sha512(b"x").digest() * 200, NotADatabaseError),
        "half.db": (whole[: len(whole) // 2], DatabaseError),
        "header.db": (whole[:60], DatabaseError),
        "cut.db": (whole[:-100], NotADatabaseError),
        "missing.db": (None, TargetError),
        "no/such/folder.db": (None, TargetError),
    }


def test_what_is_no_database_is_refused_in_one_line(state: Path, tmp_path: Path):
    """A text file, an encrypted one, a fragment, nothing: each its error, and nothing is made."""
    for name, (content, error) in bad(state.read_bytes()).items():
        path = tmp_path / name
        if content is not None:
            path.write_bytes(content)
        with pytest.raises(error) as refused:
            check(path)
        assert "\n" not in str(refused.value)
        assert path.name in str(refused.value)
        assert path.exists() == (content is not None)
    assert not [each for each in tmp_path.iterdir() if each.name.endswith(("-wal", "-journal"))]


def test_a_directory_is_refused(tmp_path: Path):
    """A directory is no database."""
    with pytest.raises(TargetError, match="directory"):
        check(tmp_path)


def test_an_empty_file_is_an_empty_database(tmp_path: Path):
    """SQLite takes an empty file for an empty database: all of head is missing."""
    path = tmp_path / "empty.db"
    path.touch()
    drift = check(path)
    assert {d.kind for d in drift} == {Kind.VERSION_MISSING, Kind.TABLE_MISSING}
    assert len(drift) == 1 + 9
    assert path.read_bytes() == b""


def test_a_file_that_is_open_with_another_library_is_checked_by_its_connection(state: Path):
    """Two libraries would cancel each other's locks, so the one that has the file reads it."""
    with closing(dbapi.connect(state, driver="libsql")) as connection:
        with pytest.raises(InterfaceError):
            dbapi.connect(state, driver="sqlite3")
        assert not check(state)
        assert not check(connection)


def test_a_bad_prefix_is_refused_before_anything_is_opened(tmp_path: Path):
    """A prefix that cannot name tables is a TargetError."""
    with pytest.raises(TargetError):
        check(tmp_path / "missing.db", prefix="a-b")


def test_two_equal_databases_do_not_differ(state: Path, tmp_path: Path):
    """`diff` of equal schemas is falsy, whatever rows are in them."""
    other = tmp_path / "other.db"
    migrate.upgrade(other)
    with closing(sqlite3.connect(other)) as connection, connection:
        connection.execute("INSERT INTO harel_outbox (event) VALUES ('{}')")
    drift = diff(state, other)
    assert not drift
    assert list(drift) == []
    assert drift == Drift()


def test_two_databases_differ_in_anybody_s_tables(state: Path, tmp_path: Path):
    """`diff` compares every table, expects what the first one has, and names the revisions."""
    other = tmp_path / "other.db"
    migrate.upgrade(other, "0001")
    with closing(sqlite3.connect(other)) as connection, connection:
        connection.execute("CREATE TABLE people (id INTEGER PRIMARY KEY)")
    found = [(d.kind.value, d.name, d.expected, d.found) for d in diff(state, other)]
    assert found[0] == ("version-different", "harel_alembic_version", REVISION, "0001")
    assert found[-1] == ("table-extra", "people", None, "(id INTEGER)")
    columns = "(definition_id TEXT, version INTEGER, digest TEXT, source TEXT, published_at REAL)"
    assert ("table-missing", "harel_definitions", columns, None) in found
