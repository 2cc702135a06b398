"""What the libsql libraries do by themselves, measured, so that we notice when it changes.

Each test has a twin elsewhere in this folder that shows that ours does not do it. When one of
these fails, upstream has mended something, and the code that goes around it may go too.
"""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys

import pytest

from harel_schema.dbapi.libsql import load

pytestmark = pytest.mark.parametrize("library", ["libsql", "libsql_experimental"])


@pytest.fixture
def raw(library):
    """Return a connection of the library itself, in autocommit, with a table t."""
    connection = load(library).connect(":memory:", isolation_level=None)
    connection.execute("CREATE TABLE t (a)")
    return connection


def test_a_large_int_is_bound_as_a_real(raw):
    """An int outside 32 bits becomes a REAL, and 2**53 + 1 loses a digit."""
    found = raw.execute("SELECT typeof(?1), CAST(?1 AS INTEGER)", (2**53 + 1,)).fetchone()
    assert found == ("real", 2**53)


def test_failures_are_value_errors(raw):
    """Every failure is a ValueError, a broken constraint and a missing table alike."""
    for sql in ("SELECT * FROM nope", "INSERT INTO t VALUES (1, 2)"):
        with pytest.raises(ValueError, match="t") as caught:
            raw.execute(sql)
        assert type(caught.value) is ValueError


def test_use_after_close_is_a_base_exception(library):
    """A closed connection panics: a BaseException that no `except Exception` catches."""
    code = f"""
import {library}
connection = {library}.connect(":memory:")
connection.close()
try:
    connection.execute("SELECT 1")
except Exception:
    raise SystemExit(1)
except BaseException as error:
    raise SystemExit(0 if type(error).__name__ == "PanicException" else 2)
"""
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, stderr=subprocess.DEVNULL, check=False)
    assert done.returncode == 0


def test_begin_comes_by_the_first_word(library):
    """The implicit BEGIN comes before INSERT, and not before DDL, REPLACE, WITH or a comment."""
    connection = load(library).connect(":memory:")
    found = []
    for sql in (
        "CREATE TABLE t (a)",
        "REPLACE INTO t VALUES (1)",
        "WITH x AS (SELECT 1) INSERT INTO t SELECT * FROM x",
        "/* c */ INSERT INTO t VALUES (1)",
        "INSERT INTO t VALUES (1)",
    ):
        connection.execute(sql)
        found.append(connection.in_transaction)
        connection.rollback()
    assert found == [False, False, False, False, True]


def test_executescript_swallows_errors(raw):
    """The connection's executescript stops half way and says nothing."""
    raw.executescript("INSERT INTO t VALUES (1); selec; INSERT INTO t VALUES (2)")
    assert raw.execute("SELECT a FROM t").fetchall() == [(1,)]


def test_rowcount_adds_up(raw):
    """Rowcount is a sum over the life of a cursor, and not the number of RETURNING's rows."""
    cursor = raw.cursor()
    cursor.execute("INSERT INTO t VALUES (1)")
    cursor.execute("INSERT INTO t VALUES (2)")
    assert cursor.rowcount == 2
    returning = raw.cursor()
    returning.execute("UPDATE t SET a = 3 RETURNING a")
    assert (returning.fetchall(), returning.rowcount) == ([(3,), (3,)], 1)


def test_fetching_past_the_end_runs_again(raw):
    """A second fetchall of INSERT … RETURNING inserts a second row."""
    cursor = raw.cursor()
    cursor.execute("INSERT INTO t VALUES (1) RETURNING a")
    cursor.fetchall()
    cursor.fetchall()
    assert raw.execute("SELECT count(*) FROM t").fetchone() == (2,)


def test_text_is_cut_at_a_nul(raw):
    """Text is stored whole and read up to its first NUL."""
    found = raw.execute("SELECT ?1, CAST(?1 AS BLOB)", ("a\0b",)).fetchone()
    assert found == ("a", b"a\0b")


def test_too_few_parameters_are_null(raw):
    """A missing parameter is NULL, and one too many is ignored."""
    assert raw.execute("SELECT ?, ?", (1,)).fetchone() == (1, None)
    assert raw.execute("SELECT ?", (1, 2)).fetchone() == (1,)


def test_parameters_and_cursors_are_less_than_stdlib(raw):
    """No mapping, no bytearray, no iteration; fetchall is None after DDL."""
    for parameters in ({"a": 1}, (bytearray(b"x"),)):
        with pytest.raises((ValueError, TypeError)):
            raw.execute("SELECT :a", parameters)
    cursor = raw.execute("SELECT 1")
    with pytest.raises(TypeError):
        iter(cursor)
    assert raw.execute("CREATE TABLE u (a)").fetchall() is None


def test_foreign_keys_are_on(raw):
    """Foreign keys are enforced from the start."""
    assert raw.execute("PRAGMA foreign_keys").fetchone() == (1,)


def test_locks_of_two_libraries_cancel(library, tmp_path):
    """Stdlib sqlite3 and the library both get the write lock of one file in one process."""
    path = str(tmp_path / "state.db")
    one = sqlite3.connect(path, isolation_level=None)
    two = load(library).connect(path, isolation_level=None)
    one.execute("BEGIN IMMEDIATE")
    two.execute("BEGIN IMMEDIATE")
    assert one.in_transaction
    assert two.in_transaction
    two.close()
    one.close()


@pytest.mark.parametrize("level", ["debug", "off"])
def test_logs_go_to_stdout(library, level):
    """Both libraries log to stdout what RUST_LOG asks for when they are imported."""
    code = f"""
import contextlib, {library}
with contextlib.suppress(ValueError):
    {library}.connect("replica.db", sync_url="http://127.0.0.1:1")
"""
    done = subprocess.run(
        [sys.executable, "-c", code], env={"RUST_LOG": level}, capture_output=True, check=True
    )
    assert (done.stdout != b"") is (level == "debug")


@pytest.mark.parametrize("level", ["debug", None])
def test_ours_keeps_stdout_clean(library, level):
    """Loaded by ours nothing reaches stdout, whatever RUST_LOG says, and its value stays."""
    code = f"""
import contextlib, os
from harel_schema.dbapi.libsql import load
with contextlib.suppress(ValueError):
    load({library!r}).connect("replica.db", sync_url="http://127.0.0.1:1")
raise SystemExit(0 if os.environ["RUST_LOG"] == {level or "off"!r} else 1)
"""
    env = {"PYTHONPATH": os.environ["PYTHONPATH"]} | ({"RUST_LOG": level} if level else {})
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, check=True)
    assert (done.stdout, done.stderr) == (b"", b"")


def test_sync_speaks_one_protocol(library, sqld, tmp_path):
    """Of the two libraries only the older one syncs with the open-source server."""
    path = str(tmp_path / "replica.db")

    def connect():
        load(library).connect(path, sync_url=sqld.url).close()

    if library == "libsql":
        with pytest.raises(ValueError, match="404"):
            connect()
    else:
        connect()
