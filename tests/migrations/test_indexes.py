"""The indexes of 0004: which statement uses which, and what the store gets with and without."""

from __future__ import annotations

import dataclasses
import json
import re
import sqlite3
from contextlib import closing
from itertools import combinations, product
from typing import Any

import pytest
from harel.engine.execution import Execution
from harel.engine.store import SqliteStore
from hypothesis import given, settings
from hypothesis import strategies as st

from harel_schema import LibsqlStore, dbapi, migrate, paging
from harel_schema.calls import OWN, Calls
from harel_schema.models import Status
from harel_schema.sql import REVISION, Statements, many, statements
from tests.migrations.conftest import HEAD

# These read a whole table, in its own order and up to a limit, and filter nothing.
IN_ORDER = {"pending_outbox", "pending_spawns"}
# Not on the hot path: once an opening.
OPENING = {"revision", "made", "tables"}
PARTS = {"list_head", "list_definition", "list_status", "list_roots", "list_after", "list_tail"}
HOT = {f.name for f in dataclasses.fields(Statements)} - IN_ORDER - OPENING - PARTS - {"prefix"}


def listing(**filters: Any) -> tuple[str, tuple[Any, ...]]:
    """Return the statement of one page."""
    given = {"status": None, "definition_id": None, "roots_only": False, "cursor": None, **filters}
    return Calls("harel", OWN).list_executions(limit=10, **given).statement


def text(name: str) -> str:
    """Return a statement by its name; one for many rows with two of them."""
    sql: str = getattr(statements(), name)
    one = {together: each for each, together in statements().together.items()}.get(sql, sql)
    return many(sql, one.count("?"), 2)


def plan(connection: Any, sql: str, args: tuple[Any, ...] | None = None) -> list[str]:
    """Return the lines of SQLite's plan of a statement."""
    args = (None,) * sql.count("?") if args is None else args
    return [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {sql}", args).fetchall()]


@pytest.fixture
def migrated(database):
    """Return a connection to a database at head."""
    migrate.upgrade(database.target)
    with closing(dbapi.connect(database.target)) as connection:
        yield connection


def test_no_hot_statement_scans_a_table_or_sorts_one(migrated):
    """Every statement of a commit, a load, a purge or a sweep finds its rows by an index."""
    found = {name: plan(migrated, text(name)) for name in sorted(HOT)}
    scans = {
        name: lines
        for name, lines in found.items()
        if any(re.match(r"SCAN harel_", line) for line in lines)
    }
    assert scans == {}
    sorts = {name for name, lines in found.items() if any("TEMP B-TREE" in x for x in lines)}
    # It sorts the few events of one commit.
    assert sorts == {"emitted"}
    assert plan(migrated, statements().due_timers) == [
        "SEARCH harel_timers USING INDEX harel_timers_by_fire_at (fire_at<?)"
    ]
    for name, index in (
        ("purge_outbox", "outbox_by_target (target_id"),
        ("purge_spawns", "spawns_by_parent (parent_id"),
    ):
        assert f"INDEX harel_{index}=?)" in found[name][0]


def test_what_is_read_in_order_is_not_sorted(migrated):
    """The relays read the oldest rows first by the key, up to their limit."""
    for name in IN_ORDER:
        assert plan(migrated, getattr(statements(), name)) == [f"SCAN harel_{name[8:]}"]


STATUSES = (None, ["DONE"], ["DONE", "FAILED", "RUNNING"])


def test_every_page_comes_from_an_index_in_order(migrated):
    """Each combination of filters reads one index in the order of the ids, and sorts nothing."""
    for status, definition_id, roots_only, after in product(
        STATUSES, (None, "d"), (False, True), (False, True)
    ):
        filters = {"status": status, "definition_id": definition_id, "roots_only": roots_only}
        cursor = paging.encode("x", list(filters.values())) if after else None
        lines = plan(migrated, *listing(**filters, cursor=cursor))
        assert "TEMP B-TREE" not in "\n".join(lines)
        reads = [line for line in lines if "harel_executions" in line]
        assert len(reads) == len(status or [None])
        assert all(("SEARCH" in line) or not (after or status or definition_id) for line in reads)
        indexes = {re.sub(r".* USING INDEX (\w+).*", r"\1", line) for line in reads}
        if status:
            wanted = "harel_executions_by_status"
        elif definition_id:
            wanted = "harel_executions_by_definition"
        elif roots_only:
            wanted = "harel_executions_roots"
        else:
            wanted = "sqlite_autoindex_harel_executions_1"
        assert indexes == {wanted}, filters


def test_an_index_never_refuses_a_row(database):
    """Rows whose data is no JSON can be there before 0004, and be written after it."""
    bad = [None, "", "{", "[1", "x\0y", b"\x00", 1, 2.5, '{"status": {"a": 1}}', "[]", "null"]
    migrate.upgrade(database.target, "0003")
    insert = "INSERT INTO harel_executions VALUES (?, 'd', ?, 1)"
    with closing(dbapi.connect(database.target)) as connection:
        connection.executemany(insert, [(f"a{n}", x) for n, x in enumerate(bad) if x is not None])
        connection.commit()
        migrate.upgrade(connection)
        connection.executemany(insert, [(f"b{n}", x) for n, x in enumerate(bad) if x is not None])
        connection.execute("UPDATE harel_executions SET data = data || ' '")
        connection.commit()
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]


rows = st.lists(
    st.tuples(st.sampled_from("abcdef"), st.sampled_from(list(Status)), st.booleans()),
    max_size=12,
)


@settings(max_examples=25)
@given(rows, st.sets(st.sampled_from(list(Status)), max_size=4), st.integers(1, 4))
def test_pages_are_the_same_at_every_revision(found, wanted, limit):
    """With and without the indexes a listing gives the rows that a plain filter gives."""
    table = {
        f"{n:02}": (d, status.value, "p" if child else None)
        for n, (d, status, child) in enumerate(found)
    }
    for revision in ("0001", HEAD):
        with closing(sqlite3.connect(":memory:")) as connection:
            for statement in migrate.schema_sql(revision=revision):
                connection.execute(statement)
            connection.executemany(
                "INSERT INTO harel_executions VALUES (?, ?, ?, 1)",
                [
                    (i, d, json.dumps({"status": s, "parent_id": p}))
                    for i, (d, s, p) in table.items()
                ],
            )
            filters: dict[str, Any] = {
                "status": wanted, "definition_id": "b", "roots_only": True,
            }  # fmt: skip
            for size in range(4):
                for names in combinations(filters, size):
                    chosen = {name: filters[name] for name in names}
                    expected = [
                        i
                        for i, (d, s, p) in table.items()
                        if ("status" not in chosen or s in wanted)
                        and ("definition_id" not in chosen or d == "b")
                        and ("roots_only" not in chosen or p is None)
                    ]
                    assert walk(connection, limit, chosen) == expected


def walk(connection: sqlite3.Connection, limit: int, filters: dict[str, Any]) -> list[str]:
    """Return the ids of all pages."""
    ids: list[str] = []
    cursor = None
    given = {"status": None, "definition_id": None, "roots_only": False, **filters}
    while True:
        read = Calls("harel", OWN).list_executions(limit=limit, cursor=cursor, **given)
        page = read.parse(connection.execute(*read.statement).fetchall())
        ids += [each.id for each in page.items]
        cursor = page.next_cursor
        if cursor is None:
            return ids


def test_the_statements_are_written_for_head():
    """The store's revision is the chain's head."""
    assert REVISION == HEAD


def test_harel_s_own_store_reads_and_purges_beside_ours(file):
    """Harel's runtime lists, sweeps and purges on the migrated schema what our store wrote."""
    ours = LibsqlStore(file.target)
    theirs = SqliteStore(file.target)
    for name in ("a", "b"):
        theirs.save(Execution(id=name, definition_id="d"))
    assert [each.id for each in ours.list_executions(status={"PENDING"}).items] == ["a", "b"]
    execution = theirs.load("a")
    assert execution is not None
    theirs.purge("a", execution.version)
    assert [each.id for each in ours.list_executions(roots_only=True).items] == ["b"]
    assert [each.id for each in theirs.list_executions(roots_only=True).items] == ["b"]
    ours.close()
    theirs.close()
    assert file.rows("PRAGMA integrity_check") == [("ok",)]
