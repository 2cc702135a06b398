"""What the specification promises, on every mode, sync and async."""

from __future__ import annotations

import copy
import json
import pickle

import pytest

from harel_schema.errors import CursorError, IntegrityError, StoreConflict, StoreError
from harel_schema.models import Event, Execution, OutboxEntry, SpawnEntry, Status, TimerOp
from tests.store.support import full_commit, new, rows


def test_load_gives_back_what_save_took(store) -> None:
    """An execution comes back equal, with the version it is stored at."""
    exe = new(context={"n": 2**60, "text": "\x00é\U0001f600", "x": 0.1}, created_at=1.7e9)
    store.save(exe)
    assert exe.version == 1
    assert store.load("e") == exe


def test_load_of_nothing_is_none(store) -> None:
    """An id that is not stored loads as None."""
    assert store.load("nobody") is None
    assert store.load_for_event("nobody", "ev") == (None, False)


def test_the_row_holds_the_json_of_the_stored_version(store) -> None:
    """The stored text is the model's own JSON, with the new version in it."""
    exe = new(context={"nan": float("nan")})
    store.save(exe)
    store.save(exe)
    found = rows(store, "SELECT id, definition_id, data, version FROM harel_executions")
    assert found == [("e", "d", exe.model_dump_json(), 2)]


def test_a_commit_lands_whole(store) -> None:
    """Advance, outbox, dedupe, timers, spawns and trace are all there after one commit."""
    exe = new()
    store.save(exe)
    store.commit(exe, [], timers=(TimerOp("schedule", "A.C", 1.0),))
    parts = full_commit(exe)
    seqs = store.commit(exe, **parts)
    assert (exe.version, seqs) == (3, [1, 2, 3])
    assert store.pending_outbox() == [
        OutboxEntry(seq, target, event)
        for seq, (target, event) in zip(seqs, parts["emits"], strict=True)
    ]
    assert store.load_for_event("e", "handled") == (exe, True)
    assert store.is_processed("e", "handled")
    assert store.due_timers(100.0) == [("e", "A.B", 12.25)]
    assert store.pending_spawns() == [
        SpawnEntry(1, "e", "c:1", "A", {"n": 1}),
        SpawnEntry(2, "e", "c:2", "B", {"é": float("inf")}),
    ]
    assert store.read_trace("e") == [{"event": "One", "é": "ü", "index": 0}]


def test_side_texts_are_json_as_json_dumps_writes_it(store) -> None:
    """Spawn contexts and trace entries are stored as `json.dumps` writes them."""
    exe = new()
    store.commit(exe, [], spawns=(("c", "", {"é": 1, "n": float("nan")}),), trace={"é": [1, 2]})
    assert rows(store, "SELECT context FROM harel_spawns") == [
        (json.dumps({"é": 1, "n": float("nan")}),)
    ]
    assert rows(store, "SELECT entry FROM harel_trace") == [(json.dumps({"é": [1, 2]}),)]


def test_a_commit_without_emits_returns_no_seqs(store) -> None:
    """`[]` comes back when nothing was emitted, whatever else there was."""
    assert store.commit(new(), [], trace={"a": 1}, spawns=(("c", "", {}),)) == []


def test_commit_takes_a_step(store) -> None:
    """The description of a commit, which harel 0.9 passes, is accepted."""
    assert store.commit(new(), [], step=object()) == []


def test_recording_an_event_twice_is_nothing_new(store) -> None:
    """The dedupe marker of a redelivered event is ignored."""
    exe = new()
    store.commit(exe, [], "ev")
    store.commit(exe, [], "ev")
    assert store.is_processed("e", "ev")
    assert not store.is_processed("e", "other")


def test_arming_a_timer_again_replaces_it(store) -> None:
    """One timer a path: the last `fire_at` counts, to the bit."""
    exe = new()
    moment = 1755900000.1234567
    store.commit(exe, [], timers=(TimerOp("schedule", "p", 1.0),))
    store.commit(exe, [], timers=(TimerOp("schedule", "p", moment),))
    assert store.due_timers(moment) == [("e", "p", moment)]
    assert store.due_timers(moment - 1e-6) == []


def test_timers_come_soonest_first(store) -> None:
    """`due_timers` is ordered by time and may be limited."""
    ops = tuple(TimerOp("schedule", f"p{at}", float(at)) for at in (3, 1, 2))
    store.commit(new(), [], timers=ops)
    assert [path for _, path, _ in store.due_timers(9.0)] == ["p1", "p2", "p3"]
    assert store.due_timers(9.0, limit=1) == [("e", "p1", 1.0)]


def test_a_timer_that_was_armed_anew_survives_a_stale_delete(store) -> None:
    """`delete_timer` removes the timer only at the `fire_at` that the sweep saw."""
    exe = new()
    store.commit(exe, [], timers=(TimerOp("schedule", "p", 5.0),))
    store.delete_timer("e", "p", 4.0)
    assert store.due_timers(9.0) == [("e", "p", 5.0)]
    store.delete_timer("e", "p", 5.0)
    assert store.due_timers(9.0) == []


def test_acks_remove_exactly_one_entry(store) -> None:
    """An acknowledged entry is gone, its neighbours stay, and acking again is harmless."""
    exe = new()
    seqs = store.commit(exe, **full_commit(exe))
    for _ in range(2):
        store.ack_outbox(seqs[1])
        store.ack_spawn(1)
    assert [entry.seq for entry in store.pending_outbox()] == [seqs[0], seqs[2]]
    assert [entry.seq for entry in store.pending_spawns()] == [2]


def test_seqs_are_never_used_again(store) -> None:
    """A seq of a delivered entry is not given to a later one."""
    exe = new()
    for expected in (1, 2):
        assert store.commit(exe, [("t", Event(kind="k"))]) == [expected]
        store.ack_outbox(expected)


def test_pending_reads_take_a_limit(store) -> None:
    """`limit` gives the oldest; 0 gives none; a negative one is refused."""
    exe = new()
    store.commit(exe, **full_commit(exe))
    assert [entry.seq for entry in store.pending_outbox(limit=2)] == [1, 2]
    assert [entry.seq for entry in store.pending_spawns(limit=1)] == [1]
    assert store.pending_outbox(limit=0) == store.pending_spawns(limit=0) == []
    for method in (store.pending_outbox, store.pending_spawns):
        with pytest.raises(ValueError, match="must not be negative"):
            method(limit=-1)


def test_the_trace_keeps_the_last_steps(store) -> None:
    """The ring holds `trace_max` steps with their own indices; 0 keeps all."""
    exe = new()
    store.trace_max = 2
    for step in range(3):
        store.commit(exe, [], trace={"step": step})
    store.append_trace("e", {"step": 3})
    assert store.read_trace("e") == [{"step": 2, "index": 2}, {"step": 3, "index": 3}]
    store.trace_max = 0
    store.append_trace("e", {"step": 4})
    assert [step["index"] for step in store.read_trace("e")] == [2, 3, 4]
    assert store.read_trace("nobody") == []


def test_the_default_ring_is_200_steps(store) -> None:
    """A new store keeps 200 steps."""
    assert store.trace_max == 200


def test_a_stale_write_conflicts_and_changes_nothing(store) -> None:
    """The second of two writers at one version gets StoreConflict, and its commit is not there."""
    exe = new()
    store.save(exe)
    stale = store.load("e")
    store.save(exe)
    with pytest.raises(StoreConflict) as caught:
        store.commit(stale, **full_commit(stale))
    error = caught.value
    assert (error.execution_id, error.expected, error.found) == ("e", 1, 2)
    assert stale.version == 1
    assert store.pending_outbox() == store.pending_spawns() == store.read_trace("e") == []
    assert store.due_timers(99.0) == []
    assert not store.is_processed("e", "handled")
    store.save(exe)
    assert exe.version == 3


def test_a_new_execution_does_not_replace_a_stored_one(store) -> None:
    """Version 0 conflicts with any stored version."""
    store.save(new())
    with pytest.raises(StoreConflict) as caught:
        store.save(new())
    assert caught.value.found == 1


def test_a_version_of_nothing_conflicts(store) -> None:
    """An execution at a version that no row has conflicts, with `found` None."""
    with pytest.raises(StoreConflict) as caught:
        store.save(new(version=3))
    assert (caught.value.expected, caught.value.found) == (3, None)


def test_a_purge_takes_all_and_only_what_belongs_to_it(store) -> None:
    """What is keyed by the execution goes with it; a neighbour keeps everything."""
    victim, bystander = new("victim"), new("bystander")
    for exe in (victim, bystander):
        store.commit(exe, **full_commit(exe))
    assert store.purge("victim", 7) is False
    assert store.load("victim") == victim
    assert store.is_processed("victim", "handled")
    assert store.purge("victim", 1) is True
    assert store.load_for_event("victim", "handled") == (None, False)
    assert not store.is_processed("victim", "handled")
    assert store.read_trace("victim") == []
    assert {entry.parent_id for entry in store.pending_spawns()} == {"bystander"}
    targets = {entry.target_id for entry in store.pending_outbox()}
    assert targets == {"bystander", "other", None}
    assert {timer[0] for timer in store.due_timers(99.0)} == {"bystander"}
    assert store.load("bystander") == bystander
    assert store.purge("victim", 1) is False


def test_a_purge_of_nothing_sweeps_what_an_older_one_left(store) -> None:
    """Rows keyed by an execution that is gone are removed, and the answer is False."""
    store.append_trace("ghost", {"a": 1})
    assert store.purge("ghost", 1) is False
    assert store.read_trace("ghost") == []


def test_a_stale_copy_of_a_purged_execution_conflicts(store) -> None:
    """Only a brand-new execution may take the id of a purged one."""
    exe = new()
    store.save(exe)
    assert store.purge("e", 1)
    with pytest.raises(StoreConflict) as caught:
        store.commit(exe, [])
    assert caught.value.found is None
    assert store.load("e") is None
    store.save(new())
    assert store.load("e").version == 1


def test_the_first_published_version_stays(store) -> None:
    """A version of a definition is stored once; the caller gets what is stored."""
    first = store.publish_definition("m", 1, "aaa", '{"x": 1}', 12.5)
    assert (first.digest, first.source, first.published_at) == ("aaa", '{"x": 1}', 12.5)
    assert store.publish_definition("m", 1, "bbb", "{}") == first
    assert store.publish_definition("m", 2, "bbb", "{}").published_at is None
    assert store.load_definition("m", 1) == first
    assert store.load_definition("m", 3) is None


def test_a_closed_store_says_so(store) -> None:
    """Closing twice is fine; every call after it is one clear error."""
    store.close()
    store.close()
    for call in (lambda: store.load("e"), lambda: store.save(new()), lambda: store.ack_outbox(1)):
        with pytest.raises(StoreError, match="the store is closed"):
            call()


def test_what_cannot_be_json_writes_nothing(store) -> None:
    """A trace that JSON cannot hold fails before anything is sent."""
    exe = new()
    with pytest.raises(TypeError):
        store.commit(exe, [("t", Event(kind="k"))], trace={"a": object()})
    assert exe.version == 0
    assert store.load("e") is None
    assert store.pending_outbox() == []


@pytest.mark.parametrize("entry", [5, None, [], "step"])
def test_a_step_that_is_no_dict_is_refused(store, entry) -> None:
    """It would be stored, and no trace of that execution could be read again."""
    with pytest.raises(TypeError, match="is a dict"):
        store.append_trace("e", entry)
    assert store.read_trace("e") == []


def test_a_store_is_neither_pickled_nor_copied(store) -> None:
    """A copy would share, and close, what belongs to the store."""
    own = getattr(store, "store", store)
    for action in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError, match="open another one"):
            action(own)


def test_a_commit_that_fails_half_way_leaves_nothing(store) -> None:
    """An error in a later statement undoes the whole commit, version included."""
    exe = new()
    store.save(exe)
    with pytest.raises(IntegrityError):
        store.commit(exe, [("t", Event(kind="k"))], spawns=((None, "p", {}),))
    assert exe.version == 1
    assert store.load("e").version == 1
    assert store.pending_outbox() == []
    store.commit(exe, [("t", Event(kind="k"))])
    assert exe.version == 2


def test_the_store_can_be_read_in_its_repr(store) -> None:
    """The repr names the database."""
    assert repr(store if not hasattr(store, "store") else store.store).endswith(f"{store._target}>")


def test_unknown_fields_survive_a_round_trip(store) -> None:
    """What a newer engine stores is still there after an older store loaded and saved it."""
    store.save(new(invented={"a": 1}, children={"c": {"root_path": "r", "added": 2}}))
    loaded = store.load("e")
    store.save(loaded)
    again = store.load("e")
    assert again.invented == {"a": 1}
    assert again.children["c"].added == 2


@pytest.mark.parametrize("bad", ["", "x", "MA", "W10", "é", "AAAA" * 99, "WzEsImEiLCJiIl0"])
def test_a_cursor_of_no_listing_is_an_error(store, bad) -> None:
    """Garbage in a cursor is refused, not taken for page one."""
    with pytest.raises(CursorError, match="not one of this listing"):
        store.list_executions(cursor=bad)


def test_a_cursor_belongs_to_its_filters(store) -> None:
    """A cursor is refused by a listing with other filters, and taken in any order of them."""
    for at in range(4):
        store.save(new(f"e{at}", status=Status.RUNNING))
    statuses = [Status.RUNNING, Status.DONE]
    cursor = store.list_executions(status=statuses, limit=2).next_cursor
    assert len(store.list_executions(status=statuses[::-1], limit=9, cursor=cursor).items) == 2
    with pytest.raises(CursorError):
        store.list_executions(limit=2, cursor=cursor)


def test_listing_filters_and_orders(store) -> None:
    """Every filter narrows; the summaries come by id with their fields."""
    store.save(new("b", status=Status.DONE, finished_at=3.5, outcome="ok", active_path="X"))
    store.save(new("a", status=Status.RUNNING))
    store.save(new("c", status=Status.RUNNING, parent_id="a"))
    store.save(Execution(id="z", definition_id="other"))

    def ids(**filters):
        return [item.id for item in store.list_executions(**filters).items]

    assert ids() == ["a", "b", "c", "z"]
    assert ids(definition_id="d") == ["a", "b", "c"]
    assert ids(status=[Status.RUNNING, "DONE"], definition_id="d") == ["a", "b", "c"]
    assert ids(status=iter([Status.RUNNING]), roots_only=True) == ["a"]
    assert ids(status=[]) == []
    done = store.list_executions(status=[Status.DONE]).items[0]
    assert done.model_dump() == {
        "id": "b",
        "definition_id": "d",
        "status": Status.DONE,
        "outcome": "ok",
        "active_path": "X",
        "version": 1,
        "parent_id": None,
        "finished_at": 3.5,
    }


def test_pages_meet_without_gap_or_overlap(store) -> None:
    """Pages of any size add up to the whole; a page of none ends at once."""
    names = [f"e{at}" for at in range(5)]
    for name in names:
        store.save(new(name))
    for size in (1, 2, 5, 9):
        listed = [item.id for item in store.iter_executions(page_size=size)]
        assert listed == names
    page = store.list_executions(limit=0)
    assert (page.items, page.next_cursor) == ([], None)
    with pytest.raises(ValueError, match="must not be negative"):
        store.list_executions(limit=-1)


def test_a_cursor_stays_good_while_rows_come_and_go(store) -> None:
    """Neither an inserted nor a removed row makes a later page skip or repeat one."""
    for name in ("b", "d", "f", "h"):
        store.save(new(name))
    page = store.list_executions(limit=2)
    assert store.purge("d", 1)
    for name in ("a", "c", "e"):
        store.save(new(name))
    rest = store.list_executions(limit=9, cursor=page.next_cursor)
    assert [item.id for item in rest.items] == ["e", "f", "h"]


def test_prefixes_are_exact(store) -> None:
    """Case, LIKE's and GLOB's signs and the last characters of Unicode all match as themselves."""
    last = "\U0010ffff"
    names = ["r:A", "r:B", "R:A", "r", "s", "a_b", "aXb", "p%q", "p1q", "u[v]", "uv", "\uffff"]
    names += [
        "\uffffx",
        "\U00010000",
        last,
        last * 2,
        f"x{last}",
        f"x{last}y",
        "y",
        "\ud7ff",
        "\ue000",
    ]
    for name in names:
        store.save(new(name))
    for prefix in ("", "r:", "a_", "p%", "u[", "\uffff", last, last * 2, f"x{last}", "\ud7ff", "q"):
        expected = sorted(name for name in names if name.startswith(prefix))
        assert store.ids_with_prefix(prefix) == expected, prefix
