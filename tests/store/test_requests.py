"""Round trips are part of the contract: what each method sends, and what SQLite does with it."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest

from harel_schema import LibsqlStore
from harel_schema.calls import OWN, Calls
from harel_schema.errors import StoreConflict
from harel_schema.models import Event, Execution, Status, TimerOp
from tests.store.support import Blocking, Opener, full_commit, rows

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def store(sqld_url: str, flavour: str) -> Iterator[Any]:
    """Yield a store on a real server, sync and async."""
    with ExitStack() as stack:
        yield Opener(flavour, sqld_url, stack)()


def sent(store: Any) -> int:
    """Return how many HTTP requests a store has sent."""
    inner = store.store if isinstance(store, Blocking) else store
    return int(inner._backend.client.requests_sent)


def test_a_full_commit_is_one_request(store) -> None:
    """CAS, 3 emits, dedupe, 2 timers, 2 spawns and a trace step: one request, new or not."""
    exe = Execution(id="e", definition_id="d")
    for _ in range(2):
        before = sent(store)
        store.commit(exe, **full_commit(exe))
        assert sent(store) == before + 1


def test_a_conflict_is_one_request(store) -> None:
    """The stored version comes with the answer that the check was lost."""
    store.save(Execution(id="e", definition_id="d"))
    before = sent(store)
    with pytest.raises(StoreConflict):
        store.save(Execution(id="e", definition_id="d"))
    assert sent(store) == before + 1


@pytest.mark.parametrize(
    ("method", "args"),
    [
        ("load", ("e",)),
        ("load_for_event", ("e", "ev")),
        ("list_executions", ()),
        ("is_processed", ("e", "ev")),
        ("read_trace", ("e",)),
        ("pending_outbox", ()),
        ("pending_spawns", ()),
        ("due_timers", (1.0,)),
        ("ids_with_prefix", ("e",)),
        ("load_definition", ("m", 1)),
        ("append_trace", ("e", {"a": 1})),
        ("ack_outbox", (1,)),
        ("ack_spawn", (1,)),
        ("delete_timer", ("e", "p", 1.0)),
        ("purge", ("e", 1)),
        ("publish_definition", ("m", 1, "x", "{}")),
    ],
)
def test_every_other_method_is_one_request(store, method, args) -> None:
    """One request a call, reads and writes."""
    before = sent(store)
    getattr(store, method)(*args)
    assert sent(store) == before + 1


def test_opening_an_existing_database_is_one_request(sqld_url, flavour) -> None:
    """A database at head costs one question; a fresh one a few more, once."""
    with ExitStack() as stack:
        open_store = Opener(flavour, sqld_url, stack)
        open_store()
        assert sent(open_store()) == 1


def test_what_is_too_large_for_one_answer_is_streamed(store) -> None:
    """A server answers with 10 MB at most; an outbox of 12 MB is read all the same."""
    exe = Execution(id="e", definition_id="d")
    events = [Event(kind="k", data={"x": "x" * 4_000_000}) for _ in range(3)]
    for event in events:
        store.commit(exe, [("t", event)])
    assert [entry.event for entry in store.pending_outbox()] == events


def plan(store: LibsqlStore, statement: tuple[str, tuple[Any, ...]]) -> list[str]:
    """Return the lines of a statement's query plan."""
    sql, args = statement
    return [row[3] for row in rows(store, f"EXPLAIN QUERY PLAN {sql}", *args)]


@pytest.fixture
def local() -> Iterator[LibsqlStore]:
    """Yield a store in memory."""
    with LibsqlStore(driver="sqlite3") as store:
        yield store


CALLS = Calls("harel", OWN)


@pytest.mark.parametrize("prefix", ["a", "", "\U0010ffff"])
def test_a_prefix_seeks_the_index(local, prefix) -> None:
    """`ids_with_prefix` reads only the range of the index that begins with the prefix."""
    (line,) = plan(local, CALLS.ids_with_prefix(prefix).statement)
    assert line.startswith("SEARCH harel_executions USING COVERING INDEX")


def test_a_page_seeks_its_place(local) -> None:
    """Any page starts at its key, whatever the filters, and nothing is sorted."""
    for filters in ((None, None, False), ([Status.DONE], "d", True)):
        first = CALLS.list_executions(*filters, 2, None)
        for at in range(3):
            local.commit(Execution(id=f"{at}", definition_id="d", status=Status.DONE), [])
        cursor = first.parse(local._backend.read(first.statement)).next_cursor
        lines = plan(local, CALLS.list_executions(*filters, 2, cursor).statement)
        assert "SEARCH harel_executions USING INDEX" in lines[0]
        assert not any("TEMP B-TREE" in line for line in lines)
        for at in range(3):
            local.purge(f"{at}", 1)


@pytest.mark.parametrize(
    "statement",
    [
        CALLS.load("e").statement,
        CALLS.load_for_event("e", "ev").statement,
        CALLS.is_processed("e", "ev").statement,
        CALLS.read_trace("e").statement,
        CALLS.load_definition("m", 1).statement,
        *CALLS.write(
            Execution(id="e", definition_id="d", version=1),
            processed_event_id="ev",
            timers=[TimerOp("schedule", "p", 1.0), TimerOp("cancel", "p")],
            trace={},
            trace_max=2,
        ).statements,
    ],
)
def test_the_hot_path_scans_nothing(local, statement) -> None:
    """What runs for each event finds its rows by key."""
    assert not [line for line in plan(local, statement) if line.startswith("SCAN harel_")]
