"""Rows of our own tables that nobody of us wrote: versions, ledgers of copies, marks of moves."""

from __future__ import annotations

import shutil
import sqlite3
import warnings
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import strategies as st

from harel_schema import LibsqlStore, diagram, doctor, drift, migrate
from harel_schema.errors import HarelSchemaError
from harel_schema.introspect import quote
from harel_schema.move import abort, move, unfence
from harel_schema.transfer import copy
from harel_schema.verify import verify
from tests.faults.leaks import nothing_left
from tests.support.text import any_text

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

VERSION = "harel_alembic_version"
TABLES = [
    *(("copied.db", "harel_copy_ledger"), ("moved.db", "harel_move"), ("moving.db", "harel_move")),
    *(("moving.db", "harel_move_log"), ("head.db", VERSION), ("moving.db", VERSION)),
]
CELLS = st.one_of(
    st.sampled_from(["", "head", "0001", "source", "dest", "complete", "harel_trace", b"", 0, 1]),
    *(st.none(), st.integers(-(2**63), 2**63 - 1), st.floats(allow_nan=False)),
    *(any_text(max_size=8), st.binary(max_size=20)),
)


def copied(database: str) -> None:
    """Copy to what a copy has begun to fill; what says that it is done holds every row."""
    copy("head.db", "copied.db")
    assert verify("head.db", "copied.db"), database


def moved(database: str) -> None:
    """Go on with a move; after it the destination holds every row."""
    move("moving.db", "moved.db")
    assert verify("moving.db", "moved.db"), database


def opened(database: str) -> None:
    """Open a store, and read."""
    with LibsqlStore(database) as store:
        store.list_executions()


CALLS: list[Callable[[str], object]] = [
    *(copied, copied, moved, moved, opened),
    *(migrate.current, migrate.plan, migrate.upgrade, migrate.adopt, unfence),
    lambda database: migrate.downgrade(database, "0001", force=True),
    lambda database: migrate.stamp(database, "0003"),
    lambda _: abort("moving.db", "moved.db"),
    *(drift.check, doctor.diagnose, diagram.read),
    lambda database: verify(database, "head.db"),
]


def scramble(draw: Any, path: str, table: str) -> None:
    """Change cells of a table, take a row away, or add one."""
    name = quote(table)
    with closing(sqlite3.connect(path)) as connection, connection:
        columns = [column for _, column, *_ in connection.execute(f"PRAGMA table_info({name})")]
        kind = draw(st.sampled_from(["change"] * 4 + ["delete", "insert"]))
        if kind == "insert":
            marks = ", ".join("?" * len(columns))
            row = [draw(CELLS) for _ in columns]
            connection.execute(f"INSERT OR REPLACE INTO {name} VALUES ({marks})", row)
        elif kind == "delete":
            connection.execute(f"DELETE FROM {name}")
        else:
            column = quote(draw(st.sampled_from(columns)))
            some = draw(st.sampled_from(["1", f"{column} = (SELECT {column} FROM {name} LIMIT 1)"]))
            sql = f"UPDATE OR REPLACE {name} SET {column} = ? WHERE {some}"
            connection.execute(sql, (draw(CELLS),))


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("examples", [20, pytest.param(2000, marks=pytest.mark.soak)])
def test_rows_of_ours_may_be_anything(examples, originals, try_often) -> None:
    """What reads them says so in one line, or does the whole of what it should."""

    def once(draw: Any, folder: Path) -> None:
        for name in ("head.db", "copied.db", "moving.db", "moved.db"):
            shutil.copy(originals / name, folder)
        database, table = draw(st.sampled_from(TABLES))
        for _ in range(draw(st.integers(1, 3))):
            try:
                scramble(draw, database, table)
            except sqlite3.Error:
                continue
        call = draw(st.sampled_from(CALLS))
        with nothing_left(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                call(database)
            except HarelSchemaError as error:
                assert str(error).isprintable()  # noqa: PT017

    try_often(examples, once)
