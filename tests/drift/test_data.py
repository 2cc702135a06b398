"""Rows that do not fit are counted and named; rows that fit are not."""

from __future__ import annotations

import json
import math
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harel_schema import dbapi, migrate
from harel_schema.drift import Kind, check
from harel_schema.drift import scan as scanning
from harel_schema.models import Status
from tests.support.proxy import FaultyProxy

if TYPE_CHECKING:
    from pathlib import Path

GOOD = json.dumps({"id": "a", "definition_id": "d", "version": 1, "status": "DONE"})
OTHER = json.dumps({"id": "b", "definition_id": "d", "version": 1})
EVENT = '{"id":"1","kind":"go","data":{}}'

# What is written, and what is said of it: kind, place, expected, found, rows, examples.
FAULTS = [
    (
        ["INSERT INTO harel_timers VALUES ('x', 'p', 'soon'), ('x', 'q', x'00')"],
        [("data-storage-class", "harel_timers.fire_at", "real", "blob or text", 2,
          ("execution_id='x' path='p'", "execution_id='x' path='q'"))],
    ),
    (
        ["INSERT INTO harel_outbox (target_id, event) VALUES (x'00FF', '{\"kind\": \"go\"}')"],
        [("data-storage-class", "harel_outbox.target_id", "text or null", "blob", 1, ("seq=1",))],
    ),
    (
        [f"INSERT INTO harel_executions VALUES (NULL, 'd', '{GOOD}', 1)"],
        [("data-null-key", "harel_executions.id", "a key", "NULL", 1, ("rowid 1",)),
         ("data-json-mismatch", "harel_executions.id", "the id in data", "another one", 1,
          ("rowid 1",))],
    ),
    (
        ["INSERT INTO harel_transport_groups (group_id) VALUES (NULL)"],
        [("data-null-key", "harel_transport_groups.group_id", "a key", "NULL", 1, ("rowid 1",))],
    ),
    (
        [f"INSERT INTO harel_executions VALUES ('{key}', 'd', '{text}', 1)"
         for key, text in (("a;b, c:d", "{"), ("two\nlines", "[]"), ("nul", "{}x"))],
        [("data-json", "harel_executions.data", "a JSON object", "something else", 3,
          ("id='a;b, c:d'", "id='two\\nlines'", "id='nul'")),
         ("data-json-mismatch", "harel_executions.id", "the id in data", "another one", 1,
          ("id='two\\nlines'",)),
         ("data-json-mismatch", "harel_executions.definition_id", "the definition_id in data",
          "another one", 1, ("id='two\\nlines'",)),
         ("data-json-mismatch", "harel_executions.version", "the version in data", "another one",
          1, ("id='two\\nlines'",))],
    ),
    (
        [f"INSERT INTO harel_executions VALUES ('a', 'other', '{GOOD}', 7)"],
        [("data-json-mismatch", "harel_executions.definition_id", "the definition_id in data",
          "another one", 1, ("id='a'",)),
         ("data-json-mismatch", "harel_executions.version", "the version in data", "another one",
          1, ("id='a'",))],
    ),
    (
        ["INSERT INTO harel_outbox (event) VALUES ('{}'), ('[]'), ('no'), ('{\"kind\": 1}')"],
        [("data-json", "harel_outbox.event", "an event", "something else", 4,
          ("seq=1", "seq=2", "seq=3", "seq=4"))],
    ),
    (
        ["INSERT INTO harel_transport_messages (group_id, event) VALUES ('g', '')"],
        [("data-json", "harel_transport_messages.event", "an event", "something else", 1,
          ("seq=1",))],
    ),
    (
        ["INSERT INTO harel_spawns (seq, parent_id, child_id, root_path, context)"  # noqa: ISC004
         " VALUES (1, 'a', 'b', '', 'NaN')",
         "INSERT INTO harel_trace VALUES ('a', 0, '{\"a\": xNaN}'), ('a', 1, '{} ' || char(0))"],
        [("data-json", "harel_spawns.context", "a JSON object", "something else", 1, ("seq=1",)),
         ("data-json", "harel_trace.entry", "a JSON object", "something else", 2,
          ("execution_id='a' idx=0", "execution_id='a' idx=1"))],
    ),
    (
        ["INSERT INTO harel_definitions VALUES ('d', 1, 'digest', 'machine d:', 1.5)"],
        [("data-json", "harel_definitions.source", "JSON", "something else", 1,
          ("definition_id='d' version=1",))],
    ),
    (
        ["WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1234)"  # noqa: ISC004
         " INSERT INTO harel_timers SELECT 'x', i, 'soon' FROM n"],
        [("data-storage-class", "harel_timers.fire_at", "real", "text", 1234,
          tuple(f"execution_id='x' path='{i}'" for i in range(1, 6)))],
    ),
    (
        [f"INSERT INTO harel_executions VALUES ('{key}', 'd', '{text}', 1)"
         for key, text in (("a", GOOD.replace("DONE", "LOST")), ("b", OTHER))],
        [("data-status", "harel_executions.data", "a status that harel knows",
          "none or another one", 2, ("id='a'", "id='b'"))],
    ),
]  # fmt: skip


@pytest.fixture
def state(tmp_path: Path) -> Path:
    """Return a migrated file."""
    path = tmp_path / "state.db"
    migrate.upgrade(path)
    return path


def fill(path: Path, *statements: str) -> None:
    """Run statements on a file, whatever its constraints say."""
    with closing(sqlite3.connect(path)) as connection, connection:
        for statement in statements:
            connection.execute(statement)


def told(drift: Any) -> list[tuple[Any, ...]]:
    """Return what a drift says of rows."""
    return [
        (d.kind.value, d.where, d.expected, d.found, d.rows, d.examples)
        for d in drift
        if d.rows is not None
    ]


@pytest.mark.parametrize("case", FAULTS, ids=lambda case: f"{case[1][0][0]} {case[1][0][1]}")
def test_a_fault_is_counted_and_named_and_only_when_asked_for(state: Path, case) -> None:
    """Each kind of row that does not fit, with its count and the first five rows."""
    statements, expected = case
    fill(state, *statements)
    before = state.read_bytes()
    assert not check(state)
    drift = check(state, data=True)
    assert drift
    assert told(drift) == expected
    assert state.read_bytes() == before


def test_a_line_names_five_rows_and_says_when_there_are_more(state: Path) -> None:
    """The line of a fault has its count and five rows; an ellipsis stands for the others."""
    fill(state, *(f"INSERT INTO harel_timers VALUES ('x', '{i}', 'soon')" for i in range(6)))
    (difference,) = check(state, data=True)
    assert str(difference) == (
        "data-storage-class harel_timers.fire_at: expected real, found text in 6 rows: "
        + "".join(f"execution_id='x' path='{i}', " for i in range(5))
        + "…"
    )


def test_what_json_cannot_say_and_python_can_is_no_fault(state: Path) -> None:
    """Harel writes contexts and traces with Python's json, which knows NaN and Infinity."""
    context = json.dumps({"a": [math.nan, math.inf, -math.inf], "b": "NaN é \u2028"})
    with closing(sqlite3.connect(state)) as connection, connection:
        connection.execute("INSERT INTO harel_trace VALUES ('a', 0, ?)", (context,))
        connection.execute(
            "INSERT INTO harel_spawns (parent_id, child_id, root_path, context)"
            " VALUES ('a', 'b', 'c', ?)",
            (context,),
        )
    assert not check(state, data=True)


@pytest.mark.parametrize("run", [1, 2, 3, 1000])
def test_runs_of_any_length_see_every_row_once(state: Path, run, monkeypatch) -> None:
    """However a table is cut into runs of rows, gaps between rowids included, each is counted."""
    monkeypatch.setattr(scanning, "_FIRST_RUN", run)
    monkeypatch.setattr(scanning, "_MOST", run)
    fill(
        state,
        *(f"INSERT INTO harel_outbox VALUES ({seq}, NULL, 'no')" for seq in (-5, 1, 2, 2**62)),
        *(f"INSERT INTO harel_outbox VALUES ({seq}, NULL, '{EVENT}')" for seq in (0, 9)),
    )
    (difference,) = check(state, data=True)
    assert (difference.rows, difference.examples) == (
        4,
        ("seq=-5", "seq=1", "seq=2", f"seq={2**62}"),
    )


# SQLite turns what is written into these before it is stored.
keys = st.sampled_from([None, "a", "b", b"a"])
versions = st.sampled_from([0, 1, 2, "x", 0.5, b"1"])
documents = st.one_of(
    st.fixed_dictionaries(
        {},
        optional={
            "id": st.sampled_from([None, "a", "b", 1]),
            "version": st.sampled_from([None, 0, 1, 2, "x"]),
            "definition_id": st.sampled_from(["d", "e"]),
            "status": st.sampled_from([*Status, "done", None, 1]),
        },
    ).map(json.dumps),
    st.sampled_from(["[]", "1", "nope", "", "{}{}", b"{}"]),
)


def faults(key: object, version: object, text: object) -> set[tuple[str, str]]:
    """Say what is wrong with a row of executions, in Python."""
    found = {("data-null-key", "id")} if key is None else set()
    stored = (("id", key, str | None), ("version", version, int), ("data", text, str))
    found |= {
        ("data-storage-class", name) for name, cell, kind in stored if not isinstance(cell, kind)
    }
    if not isinstance(text, str):
        return found
    try:
        document = json.loads(text)
    except ValueError:
        return found | {("data-json", "data")}
    if not isinstance(document, dict):
        found.add(("data-json", "data"))
        document = {}
    elif document.get("status") not in set(Status):
        found.add(("data-status", "data"))
    columns = {"id": key, "version": version, "definition_id": "d"}
    return found | {
        ("data-json-mismatch", name) for name, cell in columns.items() if document.get(name) != cell
    }


@settings(max_examples=60)
@given(st.lists(st.tuples(keys, versions, documents), max_size=12))
def test_rows_are_judged_as_python_judges_them(rows: list[tuple[Any, ...]]) -> None:
    """Whatever stands in a row, each fault of it is counted, and nothing else."""
    with closing(dbapi.connect(":memory:")) as connection:
        connection.executescript(";".join(migrate.schema_sql()))
        expected: dict[tuple[str, str], int] = {}
        seen = set()
        for key, version, text in rows:
            if key is not None and key in seen:
                continue
            seen.add(key)
            connection.execute(
                "INSERT INTO harel_executions VALUES (?, 'd', ?, ?)", (key, text, version)
            )
            for fault in faults(key, version, text):
                expected[fault] = expected.get(fault, 0) + 1
        connection.commit()
        drift = check(connection, data=True)
    assert {(d.kind.value, d.name): d.rows for d in drift} == expected


def test_a_statement_that_is_offered_mends_the_rows(state: Path) -> None:
    """Text that was written as bytes can be made text again; other faults offer nothing."""
    fill(
        state,
        f"INSERT INTO harel_outbox (event) VALUES (CAST('{EVENT}' AS BLOB))",
        "INSERT INTO harel_timers VALUES ('x', 'p', 'soon')",
    )
    fixes = {difference.where: difference.fix for difference in check(state, data=True)}
    assert fixes == {
        "harel_outbox.event": "UPDATE harel_outbox SET event = CAST(event AS TEXT)"
        " WHERE typeof(event) = 'blob';",
        "harel_timers.fire_at": None,
    }
    fill(state, fixes["harel_outbox.event"].rstrip(";"))
    assert [d.where for d in check(state, data=True)] == ["harel_timers.fire_at"]


@pytest.mark.parametrize(
    "change",
    [
        "ALTER TABLE harel_timers RENAME COLUMN fire_at TO due",
        "DROP TABLE harel_timers",
        "UPDATE harel_alembic_version SET version_num = '9999'",
        "DELETE FROM harel_alembic_version",
    ],
)
def test_rows_are_read_as_far_as_the_schema_allows(state: Path, change: str) -> None:
    """Under a schema that drifted, or is not known, the columns that are there are still read."""
    fill(state, "INSERT INTO harel_outbox (event) VALUES ('no')", change)
    drift = check(state, data=True)
    assert [d.where for d in drift if d.rows] == ["harel_outbox.event"]
    assert len(drift) > 1


def test_a_table_without_rowid_and_one_with_a_column_of_that_name_are_read(state: Path) -> None:
    """What a drifted table has for a rowid does not matter."""
    fill(
        state,
        "DROP TABLE harel_timers",
        "CREATE TABLE harel_timers (execution_id TEXT NOT NULL, path TEXT NOT NULL,"
        " fire_at REAL NOT NULL, PRIMARY KEY (execution_id, path)) WITHOUT ROWID",
        "INSERT INTO harel_timers VALUES ('x', 'p', 'soon')",
        "ALTER TABLE harel_trace ADD COLUMN rowid TEXT",
        "INSERT INTO harel_trace VALUES ('a', 0, 'no', 'z')",
    )
    assert [(d.where, d.examples) for d in check(state, data=True) if d.rows] == [
        ("harel_timers.fire_at", ("execution_id='x' path='p'",)),
        ("harel_trace.entry", ("execution_id='a' idx=0",)),
    ]


def test_text_that_is_not_utf_8_is_named(state: Path) -> None:
    """A key of any bytes comes through, also where it is no text at all."""
    fill(state, "INSERT INTO harel_timers VALUES (CAST(x'61FF' AS TEXT), x'FF', 'soon')")
    assert {d.examples for d in check(state, data=True)} == {("execution_id='a�' path=x'ff'",)}


def test_a_server_counts_by_itself_and_answers_in_one_request(sqld_url: str) -> None:
    """The same faults on a server: one request for the schema, one for the rows, none written."""
    with closing(dbapi.connect(sqld_url)) as connection:
        connection.executescript(";".join(migrate.schema_sql()))
        for statements, _ in FAULTS[:8]:
            connection.executescript(
                ";".join(s.replace("'a', 'other'", "'z', 'other'") for s in statements)
            )
        connection.commit()
    with FaultyProxy(sqld_url) as proxy:
        drift = check(proxy.url, data=True)
        assert len(proxy.requests) == 2
    assert {d.kind for d in drift} == {
        Kind.DATA_STORAGE_CLASS, Kind.DATA_NULL_KEY, Kind.DATA_JSON, Kind.DATA_JSON_MISMATCH,
    }  # fmt: skip
    assert sum(d.rows or 0 for d in drift if d.name == "event") == 5
