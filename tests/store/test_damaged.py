"""Rows that harel did not write."""

from __future__ import annotations

import pytest

from harel_schema import LibsqlStore
from harel_schema.errors import StoreError
from harel_schema.models import Event, Execution
from tests.transfer.support import edit

READS = {
    "load": lambda store: store.load("e"),
    "load for event": lambda store: store.load_for_event("e", "x"),
    "list": lambda store: store.list_executions(),
    "outbox": lambda store: store.pending_outbox(),
    "spawns": lambda store: store.pending_spawns(),
    "trace": lambda store: store.read_trace("e"),
}


@pytest.mark.parametrize(
    ("damage", "read", "row"),
    [
        ("UPDATE harel_executions SET data = '{\"n\": 1}'", "load", "'e' of harel_executions"),
        ("UPDATE harel_executions SET data = x'00'", "load for event", "'e' of harel_executions"),
        ("UPDATE harel_executions SET data = '{}'", "list", "'e' of harel_executions"),
        ("UPDATE harel_outbox SET event = 'no'", "outbox", "1 of harel_outbox"),
        ("UPDATE harel_spawns SET context = '{'", "spawns", "1 of harel_spawns"),
        ("UPDATE harel_trace SET entry = '[]'", "trace", r"\('e', 0\) of harel_trace"),
    ],
)
def test_a_row_that_means_nothing_is_named(damage, read, row, tmp_path) -> None:
    """It is one line that names the row, with the next command and none of what is in it."""
    path = tmp_path / "x.db"
    with LibsqlStore(path, driver="sqlite3") as store:
        exe = Execution(id="e", definition_id="d")
        store.commit(exe, [(None, Event(kind="k"))], spawns=[("c", "A", {})], trace={})
    edit(path, damage)
    with LibsqlStore(path, driver="sqlite3") as store:
        with pytest.raises(StoreError, match=rf"^harel did not write the row {row}; see") as caught:
            READS[read](store)
        assert "\n" not in str(caught.value)
