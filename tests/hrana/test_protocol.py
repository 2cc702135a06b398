"""The pure half of Hrana: bytes to results and back, without a network."""

from __future__ import annotations

import inspect
import struct
import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harel_schema import errors as e
from harel_schema.hrana import (
    AsyncClient,
    AsyncStream,
    Batch,
    BatchResult,
    Client,
    Close,
    CursorDecoder,
    Describe,
    Execute,
    GetAutocommit,
    IsAutocommit,
    Not,
    Ok,
    Rows,
    RunBatch,
    Sequence,
    Statement,
    StatementResult,
    Step,
    StepBegin,
    StepEnd,
    StepError,
    Stream,
    decode_pipeline,
    encode_cursor,
    encode_pipeline,
)

REQUESTS = (
    Execute(Statement("SELECT 1")),
    RunBatch(Batch([Step(Statement("SELECT 1")), Step(Statement("SELECT 2"))])),
    Sequence("SELECT 1"),
    Describe("SELECT 1"),
    GetAutocommit(),
    Close(),
)

# A cursor's response as sqld 0.24.32 sends it: two rows, a failed step, an unknown entry.
HEAD = b"\x0a\x05BATON\x12\x0dhttp://h:8080"
ENTRIES = (
    b"\x0a\x0a\x12\x03\x0a\x01a\x12\x03\x0a\x01b",
    b"\x22\x0d\x0a\x02\x10\x02\x0a\x07\x22\x05" + b"x" * 5,
    b"\x22\x0f\x0a\x02\x0a\x00\x0a\x09\x19" + struct.pack("<d", float("inf")),
    b"\x12\x02\x08\x03",
    b"\x1a\x17\x08\x01\x12\x13\x0a\x04oops\x12\x0bSQLITE_BUSY",
    b"\x32\x02\x08\x04",
)


def delimited(*messages: bytes) -> bytes:
    """Return the messages, each after its length (all are shorter than 128 bytes)."""
    return b"".join(bytes([len(message)]) + message for message in messages)


CURSOR = delimited(HEAD, *ENTRIES)


def test_request_bytes_are_those_of_the_schema() -> None:
    """The encoding is Protobuf's, field by field, as the specification numbers them."""
    steps = [Step(Statement("A", (1, None))), Step(Statement("B", {"n": b""}), Not(Ok(0)))]
    first = b"\x0a\x01A\x1a\x02\x10\x02\x1a\x02\x0a\x00\x28\x01"
    second = b"\x0a\x01B\x22\x07\x0a\x01n\x12\x02\x2a\x00\x28\x01"
    condition = b"\x0a\x04\x1a\x02\x08\x00"
    batch = (
        b"\x0a"
        + bytes([len(first) + 2])
        + b"\x12"
        + bytes([len(first)])
        + first
        + b"\x0a"
        + bytes([len(condition) + len(second) + 2])
        + condition
        + b"\x12"
        + bytes([len(second)])
        + second
    )
    assert encode_cursor(Batch(steps), "b") == b"\x0a\x01b\x12" + bytes([len(batch)]) + batch
    assert encode_pipeline([Close(), GetAutocommit()]) == b"\x12\x02\x0a\x00\x12\x02\x42\x00"


@pytest.mark.parametrize("size", range(1, len(CURSOR) + 1))
def test_cursor_may_arrive_in_pieces_of_any_size(size: int) -> None:
    """However the network cuts the response, the entries are the same."""
    decoder = CursorDecoder()
    entries = []
    for at in range(0, len(CURSOR), size):
        entries += decoder.feed(CURSOR[at : at + size])
    decoder.finish()
    rows = [row for entry in entries if isinstance(entry, Rows) for row in entry.rows]
    others = [entry for entry in entries if not isinstance(entry, Rows)]
    assert rows == [(1, "xxxxx"), (None, float("inf"))]
    assert others[:2] == [StepBegin(0, ("a", "b"), (None, None)), StepEnd(3, None)]
    assert isinstance(others[2], StepError)
    assert isinstance(others[2].error, e.BusyError)
    assert (decoder.baton, decoder.base_url) == ("BATON", "http://h:8080")


@pytest.mark.parametrize("length", range(len(CURSOR) - len(delimited(*ENTRIES[4:]))))
def test_cursor_that_breaks_off_is_not_finished(length: int) -> None:
    """A response that ends inside an entry or a step is an error, not a short result."""
    decoder = CursorDecoder()
    decoder.feed(CURSOR[:length])
    if length == len(delimited(HEAD)):
        decoder.finish()  # a batch without steps
        return
    with pytest.raises(e.ServerError, match="cut off"):
        decoder.finish()


def test_failed_batch_is_raised_by_the_decoder() -> None:
    """An entry that says that the whole batch failed is raised."""
    message = b"\x2a\x17\x0a\x00\x12\x13TRANSACTION_TIMEOUT"
    with pytest.raises(e.TransactionLost):
        CursorDecoder().feed(delimited(HEAD, message))


def test_unknown_fields_are_ignored() -> None:
    """A newer server may add fields of any kind to any message."""
    unknown = b"\xf8\x01\x07" + b"\xf9\x01" + b"8" * 8 + b"\xfd\x01" + b"4" * 4 + b"\xfa\x01\x01x"
    result = b"\x12\x04\x0a\x02\x10\x54" + unknown
    execute = b"\x0a" + bytes([len(result)]) + result + unknown
    response = b"\x12" + bytes([len(execute)]) + execute
    ok = b"\x0a" + bytes([len(response)]) + response
    body = unknown + b"\x1a" + bytes([len(ok)]) + ok
    answer = decode_pipeline(body, REQUESTS[:1])
    assert answer.results == (StatementResult((), (), [(42,)], 0, None),)


def test_skipped_steps_have_empty_slots() -> None:
    """A step that the server does not mention neither ran nor failed."""
    body = b"\x1a\x06\x0a\x04\x1a\x02\x0a\x00"
    assert decode_pipeline(body, REQUESTS[1:2]).results == (
        BatchResult((None, None), (None, None)),
    )


@given(body=st.binary(max_size=60), count=st.integers(0, len(REQUESTS)))
def test_garbage_is_never_anything_but_a_server_error(body: bytes, count: int) -> None:
    """Bytes that are no answer raise ServerError, whatever they are."""
    for attempt in (
        lambda: decode_pipeline(body, REQUESTS[:count]),
        lambda: CursorDecoder().feed(body),
    ):
        try:
            attempt()
        except e.Error:
            continue


@given(data=st.data())
def test_damaged_answer_is_never_anything_but_a_server_error(data: st.DataObject) -> None:
    """A real answer with a few bytes changed decodes to something or raises one of our errors."""
    body = bytearray(CURSOR)
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(body) - 1))
        body[at] = data.draw(st.integers(0, 255))
    try:
        decoder = CursorDecoder()
        decoder.feed(bytes(body))
        decoder.finish()
    except e.Error:
        return


@pytest.mark.parametrize("request_", REQUESTS, ids=lambda request: type(request).__name__)
def test_answer_to_another_request_is_refused(request_: Any) -> None:
    """A response of the wrong kind is ServerError, not a wrong result."""
    wrong = b"\x0a\x02\x52\x00"  # a response of kind 10, which no request has
    with pytest.raises(e.ServerError, match="does not fit"):
        decode_pipeline(b"\x1a\x04" + wrong, [request_])


@pytest.mark.parametrize(("sync", "twin"), [(Client, AsyncClient), (Stream, AsyncStream)])
def test_the_twins_have_the_same_interface(sync: type, twin: type) -> None:
    """Both clients, and both streams, have the same public methods with the same parameters."""

    def public(cls: type) -> dict[str, Any]:
        return {
            name: [
                (p.name, p.kind, p.default) for p in inspect.signature(member).parameters.values()
            ]
            if callable(member)
            else type(member)
            for name, member in vars(cls).items()
            if not name.startswith("_")
        }

    def settings(cls: type) -> list[str]:
        return list(inspect.signature(cls).parameters)

    assert public(sync) == public(twin)
    assert settings(sync) == settings(twin)


def test_conditions_are_values() -> None:
    """Equal conditions and statements compare equal and have a readable `repr`."""
    assert Not(IsAutocommit()) == Not(IsAutocommit())
    assert repr(Step(Statement("A"), Ok(1))) == (
        "Step(statement=Statement(sql='A', args=(), want_rows=True, replication_index=None), "
        "condition=Ok(step=1))"
    )


def test_the_protocol_needs_no_http_client() -> None:
    """Importing the protocol imports neither httpx nor what stands on it."""
    code = "import sys, harel_schema.hrana.protocol; sys.exit('httpx' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
