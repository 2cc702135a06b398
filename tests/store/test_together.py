"""Units that share their statements do what each would have done by itself."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from harel_schema import StoreConflict, dbapi, migrate
from harel_schema.commit import together, writes
from harel_schema.commit.local import Transaction
from harel_schema.models import Event, Execution, TimerOp
from harel_schema.sql import statements
from tests.support.text import any_text

if TYPE_CHECKING:
    from harel_schema.commit.unit import Outcome, Unit

SQL = statements()
HEAD = ";".join(migrate.schema_sql()) + ";"
TABLES = ("executions", "outbox", "processed_events", "timers", "spawns", "trace")

keys = st.sampled_from(["a", "b", "c", "d\0", "é"])
names = any_text(max_size=3)
full_write = st.fixed_dictionaries(
    {
        "emits": st.lists(
            st.tuples(st.none() | names, st.builds(Event, id=names, kind=names)), max_size=4
        ),
        "processed_event_id": st.none() | names,
        "timers": st.lists(
            st.builds(
                TimerOp,
                st.sampled_from(["schedule", "cancel"]),
                st.sampled_from("pq"),
                st.floats(0, 9),
            ),
            max_size=3,
        ),
        "spawns": st.lists(
            st.tuples(names, names, st.dictionaries(names, st.integers(), max_size=1)), max_size=3
        ),
        "trace": st.none() | st.dictionaries(names, st.integers(), max_size=2),
        "trace_max": st.integers(0, 2),
    }
)


def arm(path: str, at: float = 1.0) -> TimerOp:
    """Return a step's order to arm a timer."""
    return TimerOp("schedule", path, at)


def disarm(path: str) -> TimerOp:
    """Return a step's order to disarm a timer."""
    return TimerOp("cancel", path)


def steps(*timers: list[TimerOp]) -> list[Any]:
    """Return the first commits of some executions, with their timers."""
    return [("write", key, 0, {"timers": ops}) for key, ops in zip("abcd", timers, strict=False)]


calls = st.one_of(
    st.tuples(st.just("write"), keys, st.integers(0, 3), full_write),
    st.tuples(st.just("ack_outbox"), st.integers(1, 9)),
    st.tuples(st.just("ack_spawn"), st.integers(1, 9)),
    st.tuples(st.just("delete_timer"), keys, st.sampled_from("pq"), st.floats(0, 9)),
    st.tuples(st.just("append_trace"), keys, st.just({"x": 1}), st.integers(0, 2)),
    st.tuples(st.just("purge"), keys, st.integers(0, 3)),
)


def unit(call: tuple[Any, ...]) -> Unit[Any]:
    """Return the unit of a call."""
    name, *args = call
    if name != "write":
        made: Unit[Any] = getattr(writes, name)(SQL, *args)
        return made
    key, version, parts = args
    exe = Execution(id=key, definition_id="d", version=version)
    return writes.write(SQL, exe, StoreConflict, **parts)


def database(driver: str) -> Any:
    """Return a connection to a database at head, in memory."""
    connection = dbapi.connect(":memory:", driver=driver, isolation_level=None)
    connection.executescript(HEAD)
    return connection


def known(connection: Any, call: tuple[Any, ...]) -> bool:
    """Return whether somebody may call so: an ack is of a row that was committed before."""
    if not call[0].startswith("ack"):
        return True
    table = "harel_outbox" if call[0] == "ack_outbox" else "harel_spawns"
    sql = "SELECT ifnull(max(seq), 0) FROM sqlite_sequence WHERE name = ?"
    last: int = connection.execute(sql, (table,)).fetchone()[0]
    return bool(call[1] <= last)


def dump(connection: Any) -> list[Any]:
    """Return every row of the store."""
    tables = [f"SELECT * FROM harel_{table} ORDER BY 1, 2" for table in TABLES]
    return [
        connection.execute(sql).fetchall()
        for sql in (*tables, "SELECT * FROM sqlite_sequence ORDER BY name")
    ]


def told(outcome: Outcome) -> Any:
    """Return what the caller would see."""
    if isinstance(outcome.error, StoreConflict):
        return outcome.error.execution_id, outcome.error.expected, outcome.error.found
    assert outcome.error is None
    return outcome.value


@pytest.mark.parametrize("driver", ["sqlite3", "libsql"])
@settings(max_examples=60)
@example([], steps([disarm("p"), arm("q")], [arm("p"), disarm("p")]))
@example([], steps([arm("p"), disarm("p"), arm("p", 2.0)], []))
@given(st.lists(calls, max_size=6), st.lists(calls, min_size=2, max_size=12))
def test_together_is_one_after_the_other(driver, before, group) -> None:
    """Whatever meets in a group: the same results, conflicts and rows as by itself."""
    with closing(database(driver)) as shared, closing(database("sqlite3")) as alone:
        for connection in (shared, alone):
            for call in before:
                Transaction(connection, [unit(call)]).run()
        group = [call for call in group if known(alone, call)]
        outcomes = Transaction(shared, [unit(call) for call in group]).run()
        expected = [Transaction(alone, [unit(call)]).run()[0] for call in group]
        assert [told(each) for each in outcomes] == [told(each) for each in expected]
        assert dump(shared) == dump(alone)


@pytest.mark.parametrize("count", [2, 3, 64, 127, 128])
def test_a_group_takes_few_statements(count) -> None:
    """As many as one commit, times the powers of two that make up the number of its units."""
    emits = [(None, Event(kind="k"))] * 3
    parts = {"emits": emits, "processed_event_id": "e", "trace": {}, "trace_max": 9}
    with closing(database("sqlite3")) as connection:
        run: list[str] = []
        connection._session._raw.set_trace_callback(run.append)
        group = [unit(("write", f"{at}", 0, parts)) for at in range(count)]
        outcomes = Transaction(connection, group).run()
        connection._session._raw.set_trace_callback(None)
        assert [each.value for each in outcomes] == [
            [3 * at + 1, 3 * at + 2, 3 * at + 3] for at in range(count)
        ]
        assert len(run) <= 2 + 5 * (count.bit_count() + 2)


def test_what_shares_and_what_does_not() -> None:
    """Two commits of one execution never share, nor does what must see its own effect."""
    write = ("write", "a", 0, {}), ("write", "b", 0, {}), ("write", "a", 1, {})
    ack, purge = ("ack_outbox", 1), ("purge", "a", 2)
    found = [*together.runs([unit(each) for each in (*write, ack, purge, ack)])]
    assert [[each.key for each in run] for run in found] == [
        ["a", "b"], ["a", None], [None], [None],
    ]  # fmt: skip


def test_the_texts_of_groups_fit_a_drivers_cache() -> None:
    """Python's sqlite3 keeps 128 prepared statements; groups of every size need fewer."""
    texts = set()
    for count in range(1, 129):
        rows = [(0, 0)] * count
        texts.update(sql for sql, _ in together.statements(SQL.together[SQL.spawn], rows))
    assert len(texts) * len(SQL.together) < 128


def test_the_limit_of_parameters_is_far() -> None:
    """No statement of a group takes more values than any SQLite lets in."""
    rows = [tuple(range(5))] * 10_000
    widest = max(len(values) for _, values in together.statements(SQL.together[SQL.emit], rows))
    with closing(sqlite3.connect(":memory:")) as connection:
        assert widest <= connection.getlimit(sqlite3.SQLITE_LIMIT_VARIABLE_NUMBER)
    assert widest <= 999
