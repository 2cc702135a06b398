"""What is no whole database is named for what it is, and no lock is lost by looking."""

from __future__ import annotations

import gzip
import io
import os
import random
import sqlite3
import subprocess
import sys
import zipfile
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from harel_schema import dbapi, leases
from harel_schema.errors import NotADatabaseError
from harel_schema.target import Target

if TYPE_CHECKING:
    from pathlib import Path

# A writer of another process: exits 0 with the write lock, 1 when it is held.
WRITER = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1], timeout=0, isolation_level=None)
try:
    connection.execute("BEGIN IMMEDIATE")
except sqlite3.OperationalError:
    sys.exit(1)
"""


@pytest.fixture
def state(tmp_path: Path) -> Path:
    """Return a database file of several pages."""
    path = tmp_path / "state.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript("CREATE TABLE t (a); CREATE TABLE u (a); CREATE TABLE v (a)")
    return path


def zipped(content: bytes) -> bytes:
    """Return a zip archive with one file in it."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("state.db", content)
    return buffer.getvalue()


@pytest.mark.parametrize(
    ("spoil", "line"),
    [
        (lambda _: b"hello, these are notes \xe2\x82\xac" * 50, "it is text; check the path"),
        (lambda _: b"a\xc3\xa4" * 171, "it is text; check the path"),
        (lambda _: b"PRAGMA x;\nBEGIN TRANSACTION;\n", "it is a dump in SQL; make a database of"),
        (lambda _: random.Random(1).randbytes(8192), "it is encrypted, or something else; decrypt"),
        (gzip.compress, "it is packed with gzip; unpack it first"),
        (zipped, "it is packed with zip; unpack it first"),
        (lambda whole: bytes(len(whole)), "it begins with zeros; copy or download it again"),
        (lambda _: b"\xff\xfe\x01" * 200, "it is something else; check the path"),
    ],
    ids=["text", "cut text", "dump", "encrypted", "gzip", "zip", "zeros", "other"],
)
def test_what_is_no_database_is_named(state: Path, spoil, line: str) -> None:
    """Text, a dump, an encrypted file, an archive: each gets its own line and its next step."""
    state.write_bytes(spoil(state.read_bytes()))
    with pytest.raises(NotADatabaseError, match=r"^state\.db is not a SQLite database: ") as caught:
        Target.parse(state).check_readable()
    assert line in str(caught.value)
    assert caught.value.code == "SQLITE_NOTADB"


@pytest.mark.parametrize("kept", [16, 60, 99, 100, 511, 4096, 4097, -4096, -1])
def test_a_fragment_is_cut_off(state: Path, kept: int) -> None:
    """A file that is smaller than its own header says was not wholly copied."""
    whole = state.read_bytes()
    state.write_bytes(whole[:kept])
    with pytest.raises(NotADatabaseError, match=r"state\.db is cut off: [\d,]+ of ") as caught:
        Target.parse(state).check_readable()
    assert caught.value.code == "SQLITE_CORRUPT"
    with pytest.raises(NotADatabaseError, match="cut off"):
        Target.parse(state).check_writable()
    assert state.read_bytes() == whole[:kept]


@pytest.mark.parametrize("size", [512, 1024, 32768, 65536])
def test_whole_files_of_any_page_size_pass(tmp_path: Path, size: int) -> None:
    """The size of a whole file is what its header says, whatever its pages."""
    path = tmp_path / "state.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(f"PRAGMA page_size = {size}; CREATE TABLE t (a)")
    Target.parse(path).check_readable()
    os.truncate(path, path.stat().st_size - 1)
    with pytest.raises(NotADatabaseError, match="cut off"):
        Target.parse(path).check_readable()


def test_what_a_journal_still_holds_is_not_missing(state: Path) -> None:
    """Beside a -wal or a journal, the file alone says nothing about its size."""
    os.truncate(state, 4096)
    for suffix in ("-wal", "-journal"):
        beside = state.with_name(state.name + suffix)
        beside.write_bytes(b"x")
        Target.parse(state).check_readable()
        beside.unlink()


@pytest.mark.parametrize("driver", [None, "sqlite3", "libsql", "libsql_experimental"])
def test_looking_at_a_file_keeps_the_locks_of_this_process(state: Path, driver) -> None:
    """Whoever holds the write lock in this process, by ours or not, holds it after a check."""
    connection = dbapi.connect(state, driver=driver) if driver else sqlite3.connect(state)
    with closing(connection):
        connection.execute("BEGIN IMMEDIATE")
        Target.parse(state).check_readable()
        Target.parse(state).check_writable()
        assert subprocess.run([sys.executable, "-c", WRITER, state], check=False).returncode == 1
    assert subprocess.run([sys.executable, "-c", WRITER, state], check=False).returncode == 0


def test_a_head_is_read_once_nobody_has_the_file_open(state: Path) -> None:
    """A file is read only while this process has it open under none of its names."""
    other = state.with_name("other.db")
    other.hardlink_to(state)
    assert leases.read_head(other, 6) == b"SQLite"
    with closing(dbapi.connect(state)):
        assert leases.read_head(other, 6) is None
    with closing(sqlite3.connect(state)):
        assert leases.read_head(other, 6) is None
    assert leases.read_head(state, 6) == b"SQLite"
