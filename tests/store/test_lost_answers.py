"""When the answer to a commit is lost, the store finds out what became of it."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harel_schema import LibsqlStore
from harel_schema.commit import flow, writes
from harel_schema.errors import AuthError, ConnectionLost, RequestTimeout, StoreConflict
from harel_schema.models import Event
from harel_schema.sql import statements
from tests.store.support import Opener, full_commit, new
from tests.support.proxy import Answer, Cut, Drop, FaultyProxy, Hang, Pass

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from harel_schema.hrana import Batch, BatchResult, Client

LOSSES = [
    Cut(0),
    Cut(60),
    Cut(0, ending="reset"),
    Drop(),
    Drop(ending="reset"),
    Answer(502),
    Answer(500),
    Answer(200, b"<html>", "text/html"),
    Answer(200, b"\xff\xff", "application/x-protobuf"),
]


@pytest.fixture
def store(proxy: FaultyProxy, flavour: str) -> Iterator[Any]:
    """Yield a store, sync and async, behind the proxy."""
    with ExitStack() as stack:
        yield Opener(flavour, proxy.url, stack)()


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
@pytest.mark.parametrize("again", [False, True], ids=["insert", "update"])
def test_a_lost_answer_does_not_lose_or_repeat_a_commit(store, proxy, loss, again) -> None:
    """Applied or not, the commit succeeds once, and its seqs are those of the outbox."""
    exe = new()
    if again:
        store.save(exe)
    parts = full_commit(exe)
    version = exe.version
    proxy.script(loss)
    seqs = store.commit(exe, **parts)
    assert exe.version == version + 1
    assert store.load_for_event("e", "handled") == (exe, True)
    assert [(entry.seq, entry.target_id, entry.event) for entry in store.pending_outbox()] == [
        (seq, *emit) for seq, emit in zip(seqs, parts["emits"], strict=True)
    ]
    assert len(store.pending_spawns()) == 2
    assert len(store.read_trace("e")) == 1


def test_an_answer_cut_anywhere_is_the_same(proxy) -> None:
    """At whichever byte of the response it breaks, each event is applied exactly once."""
    with LibsqlStore(proxy.url) as store:
        exe = new()
        store.commit(exe, [("t", Event(kind="k"))])
        size = len(proxy.last_response)
        places = range(size)
        for place in places:
            proxy.script(Cut(place))
            store.commit(exe, [("t", Event(kind="k"))])
        assert exe.version == store.load("e").version == len(places) + 1
        assert [entry.seq for entry in store.pending_outbox()] == [*range(1, len(places) + 2)]


def test_a_server_that_answers_too_late(proxy, flavour) -> None:
    """A timeout is a lost answer like any other."""
    with ExitStack() as stack:
        store = Opener(flavour, proxy.url, stack, request_timeout=0.3)()
        exe = new()
        proxy.script(Hang(forward=True))
        assert store.commit(exe, [("t", Event(kind="k"))]) == [1]
        assert exe.version == 1
        assert len(store.pending_outbox()) == 1


def test_a_stale_commit_whose_answer_is_lost_conflicts(store, proxy) -> None:
    """When the row moved on, the read-back shows a conflict."""
    exe = new()
    store.save(exe)
    stale = store.load("e")
    stale.context["late"] = True
    store.save(exe)
    proxy.script(Drop())
    with pytest.raises(StoreConflict) as caught:
        store.commit(stale, [("t", Event(kind="k"))])
    assert (caught.value.expected, caught.value.found) == (1, 2)
    assert store.pending_outbox() == []


@pytest.mark.parametrize("parts", [{"emits": [("t", Event(kind="k"))]}, {"processed": "ev"}])
def test_equal_bytes_of_another_writer_are_not_taken_for_ours(store, proxy, parts) -> None:
    """A row that only looks like ours does not make up for events that were never stored."""
    exe = new()
    store.save(exe)
    stale = store.load("e")
    store.save(exe)
    proxy.script(Drop())
    with pytest.raises(StoreConflict):
        store.commit(stale, parts.get("emits", []), parts.get("processed"))
    assert store.pending_outbox() == []


def test_a_conflict_is_decided_safely_when_the_events_are_gone(store, proxy, sqld) -> None:
    """Applied, but delivered before the read-back: a conflict, after which all is found done."""
    exe = new()
    hang = Hang(forward=True)
    with LibsqlStore(sqld.url) as relay, ThreadPoolExecutor(1) as pool:
        store.load("e")
        proxy.script(hang)
        commit = pool.submit(store.commit, exe, [("t", Event(kind="k"))], "ev")
        assert hang.arrived.wait(10)
        relay.ack_outbox(relay.pending_outbox()[0].seq)
        hang.release.set()
        with pytest.raises(StoreConflict):
            commit.result()
    assert store.load_for_event("e", "ev")[1] is True


def test_another_writer_with_the_same_version_conflicts(store, proxy, sqld) -> None:
    """The same version with other bytes is somebody else's commit."""
    exe = new()
    store.save(exe)
    with LibsqlStore(sqld.url) as other:
        theirs = other.load("e")
        theirs.context["mine"] = False
        other.save(theirs)
    proxy.script(Drop())
    with pytest.raises(StoreConflict) as caught:
        store.save(exe)
    assert (exe.version, caught.value.found) == (1, 2)


def test_when_the_read_back_fails_too_the_caller_is_told(proxy, flavour) -> None:
    """An outcome that cannot be known in time is ConnectionLost, and the version stays."""
    with ExitStack() as stack:
        store = Opener(flavour, proxy.url, stack, timeout=0.0)()
        exe = new()
        store.save(exe)
        proxy.script(Cut(0), *[Drop()] * 4)
        with pytest.raises(ConnectionLost) as caught:
            store.save(exe)
        assert caught.value.sent
        assert not isinstance(caught.value, RequestTimeout)
        assert exe.version == 1
        with pytest.raises(StoreConflict):
            store.save(exe)
        assert store.load("e").version == 2


def test_a_server_that_starts_again_is_asked_when_it_is_back(store, proxy) -> None:
    """The question what became of a commit outlasts a restart."""
    exe = new()
    proxy.script(Cut(0), *[Drop()] * 9)
    assert store.commit(exe, [("t", Event(kind="k"))]) == [1]
    assert exe.version == store.load("e").version == 1


def test_a_refusal_is_not_taken_for_a_lost_answer(store, proxy) -> None:
    """A request that was refused is not sent again, and not read back."""
    before = len(proxy.requests)
    proxy.script(Answer(401))
    with pytest.raises(AuthError):
        store.save(new())
    assert len(proxy.requests) == before + 1


def test_a_purge_whose_answer_is_lost(store, proxy) -> None:
    """Whether or not it was applied, the purge reports the row as gone; a moved one is False."""
    for loss in (Cut(0), Drop()):
        store.save(new())
        proxy.script(loss)
        assert store.purge("e", 1) is True
        assert store.load("e") is None
    store.save(new())
    proxy.script(Drop())
    assert store.purge("e", 7) is False
    assert store.load("e") is not None


def test_acks_and_definitions_are_sent_again(store, proxy) -> None:
    """What is the same twice is repeated without a question."""
    exe = new()
    seqs = store.commit(exe, **full_commit(exe))
    for loss in (Cut(0), Drop()):
        proxy.script(loss)
        store.ack_outbox(seqs.pop())
        proxy.script(loss)
        assert store.publish_definition("m", 1, "a", "{}").digest == "a"
    assert [entry.seq for entry in store.pending_outbox()] == seqs


def test_a_trace_step_is_never_guessed(store, proxy) -> None:
    """Nothing proves whether a lone trace step was appended, so the caller hears of the loss."""
    for loss, steps in ((Cut(0), 1), (Drop(), 1)):
        proxy.script(loss)
        with pytest.raises(ConnectionLost):
            store.append_trace("e", {"a": 1})
        assert len(store.read_trace("e")) == steps


def test_a_lost_read_is_asked_again(store, proxy) -> None:
    """Reads are repeated without anybody noticing."""
    store.save(new())
    proxy.script(Cut(10), Drop(), Answer(503), Pass())
    assert store.load("e").version == 1


def carry_out(actions: Any, client: Client, *lost: Callable[[Batch], None]) -> Any:
    """Carry out a flow; each of `lost` is called in place of a commit whose answer is lost."""
    losses = list(lost)
    reply: BatchResult | None = None
    error: Exception | None = None
    while True:
        try:
            action = actions.throw(error) if error else actions.send(reply)
        except StopIteration as stop:
            return stop.value
        reply = error = None
        if isinstance(action, flow.Send) and losses:
            losses.pop(0)(action.batch)
            error = ConnectionLost("lost", sent=True)
        elif not isinstance(action, flow.Wait):
            reply = client.batch(action.batch)


def test_a_request_that_arrives_after_the_read_back_is_not_applied_twice(sqld) -> None:
    """The first request may be slower than the question about it: the version check decides."""
    with LibsqlStore(sqld.url) as store:
        exe, client = new(), store._backend.client
        unit = writes.write(
            statements(), exe, StoreConflict, emits=[("t", Event(kind="k"))], trace={"a": 1}
        )
        late: list[Batch] = []

        def first_arrives_then_second(batch: Batch) -> None:
            client.batch(late[0])
            client.batch(batch)

        outcomes = carry_out(
            flow.commit([unit], 1.0), client, late.append, first_arrives_then_second
        )
        assert [outcome.unwrap() for outcome in outcomes] == [[1]]
        assert exe.version == 1
        assert len(store.pending_outbox()) == len(store.read_trace("e")) == 1


def test_a_late_first_request_makes_the_second_succeed(sqld) -> None:
    """When only the second one is answered, with a conflict, the conflict is with ourselves."""
    with LibsqlStore(sqld.url) as store:
        exe, client = new(), store._backend.client
        unit = writes.write(statements(), exe, StoreConflict, emits=[("t", Event(kind="k"))])
        sent: list[Batch] = []
        actions = flow.commit([unit], 1.0)
        sent.append(next(actions).batch)
        question = actions.throw(ConnectionLost("lost", sent=True))
        again = actions.send(client.batch(question.batch))
        client.batch(sent[0])
        proof = actions.send(client.batch(again.batch))
        with pytest.raises(StopIteration) as stop:
            actions.send(client.batch(proof.batch))
        assert [outcome.unwrap() for outcome in stop.value.value] == [[1]]
        assert exe.version == 1
        assert len(store.pending_outbox()) == 1


def test_a_group_is_resolved_unit_by_unit(sqld) -> None:
    """Of a lost group, what was applied succeeds and what was not is sent again."""
    with LibsqlStore(sqld.url) as store:
        client = store._backend.client
        store.save(new("b"))
        exes = [new("a"), new("b"), new("c")]
        units = [
            writes.write(statements(), exe, StoreConflict, emits=[("t", Event(kind=exe.id))])
            for exe in exes
        ]
        outcomes = carry_out(flow.commit(units, 1.0), client, client.batch)
        assert [outcome.error is None for outcome in outcomes] == [True, False, True]
        assert isinstance(outcomes[1].error, StoreConflict)
        assert [exe.version for exe in exes] == [1, 0, 1]
        assert [entry.event.kind for entry in store.pending_outbox()] == ["a", "c"]


TEXTS = st.sampled_from(["x", "y"])
EMITS = st.lists(st.tuples(st.none() | TEXTS, TEXTS), max_size=5)


@given(before=EMITS, emits=EMITS, start=st.integers(1, 100))
def test_seqs_are_recovered_in_order(before, emits, start) -> None:
    """Equal events before ours change nothing: the newest rows are ours, in our order."""
    rows = [(start + at, *emit) for at, emit in enumerate([*before, *emits])]
    expected = [start + len(before) + at for at in range(len(emits))]
    assert writes.recover_seqs(emits, rows) == expected


@given(st.lists(st.tuples(TEXTS, st.booleans()), min_size=1, max_size=6, unique_by=lambda e: e[0]))
def test_seqs_of_delivered_events_follow_from_their_neighbours(emits) -> None:
    """A row that was delivered and acknowledged meanwhile keeps its number."""
    events = [("t", text) for text, _ in emits]
    rows = [(7 + at, "t", text) for at, (text, kept) in enumerate(emits) if kept]
    expected = [7 + at for at in range(len(emits))] if rows else None
    assert writes.recover_seqs(events, rows) == expected
