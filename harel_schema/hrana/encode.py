"""Requests to bytes: the Protobuf encoding of Hrana 3, written by hand.

Why Protobuf and not JSON: JSON loses values on a real server. sqld 0.24.32 parses a JSON
number with serde_json's fast parser, which is off by one unit in the last place for about
19 % of random timestamps (1700760962.4449127 is stored as 1700760962.444913), and it sends
both infinities as ``null``. Protobuf carries every double bit by bit, blobs without base64
and integers without text. NaN has no place in SQLite, which would store NULL: `DataError`.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, assert_never

from harel_schema.errors import DataError, ProgrammingError
from harel_schema.hrana import messages as m

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_INT64_MIN: Final = -(2**63)
_INT64_MAX: Final = 2**63 - 1
_DOUBLE: Final = struct.Struct("<d")
# A longer text or blob is joined once, into the body: a copy at each level would take its size
# five times over.
_LARGE: Final = 65_536


def encode_pipeline(requests: Sequence[m.Request], baton: str | None = None) -> bytes:
    """Return the body of ``POST v3-protobuf/pipeline`` for `requests` on the stream `baton`.

    Raises `DataError` or `ProgrammingError` for a parameter that SQLite cannot hold.
    """
    parts = [_field(1, baton.encode())] if baton is not None else []
    for request in requests:
        parts += _nested(2, _request(request))
    return b"".join(parts)


def encode_cursor(batch: m.Batch, baton: str | None = None) -> bytes:
    """Return the body of ``POST v3-protobuf/cursor`` for `batch`; raises as `encode_pipeline`."""
    head = _field(1, baton.encode()) if baton is not None else b""
    return b"".join([head, *_nested(2, _batch(batch))])


def encode_statement(statement: m.Statement) -> m.Encoded:
    """Return `statement` as a batch takes it too, encoded; raises as `encode_pipeline`."""
    return m.Encoded(_statement(statement))


def _request(request: m.Request) -> list[bytes]:
    match request:
        case m.Close():
            return [_field(1, b"")]
        case m.Execute(statement):
            return _nested(2, _nested(1, _statement(statement)))
        case m.RunBatch(batch):
            return _nested(3, _nested(1, _batch(batch)))
        case m.Sequence(sql):
            return [_field(4, _field(1, _text(sql)))]
        case m.Describe(sql):
            return [_field(5, _field(1, _text(sql)))]
        case m.GetAutocommit():
            return [_field(8, b"")]
        case _:
            assert_never(request)


def _batch(batch: m.Batch) -> list[bytes]:
    parts = [part for step in batch.steps for part in _nested(1, _step(step))]
    if batch.replication_index is not None:
        parts += (b"\x10", _varint(batch.replication_index))
    return parts


def _step(step: m.Step) -> list[bytes]:
    head = _field(1, _condition(step.condition)) if step.condition is not None else b""
    statement = step.statement
    parts = statement.parts if isinstance(statement, m.Encoded) else _statement(statement)
    return [head, *_nested(2, parts)]


def _condition(condition: m.Condition) -> bytes:
    match condition:
        case m.Ok(step):
            return b"\x08" + _varint(step)
        case m.Err(step):
            return b"\x10" + _varint(step)
        case m.Not(inner):
            return _field(3, _condition(inner))
        case m.And(inners):
            return _field(4, _conditions(inners))
        case m.Or(inners):
            return _field(5, _conditions(inners))
        case m.IsAutocommit():
            return _field(6, b"")
        case _:
            assert_never(condition)


def _conditions(conditions: Iterable[m.Condition]) -> bytes:
    return b"".join(_field(1, _condition(condition)) for condition in conditions)


def _statement(statement: m.Statement) -> list[bytes]:
    parts = [_field(1, _text(statement.sql))]
    args = statement.args
    if isinstance(args, Mapping):
        parts += [
            _field(4, _field(1, _text(name)) + _field(2, encode_value(value)))
            for name, value in args.items()
        ]
    else:
        for arg in args:
            if isinstance(arg, str | bytes) and len(arg) > _LARGE:
                parts += _nested(3, _large(arg))
            else:
                value = encode_value(arg)
                parts += (b"\x1a", _varint(len(value)), value)
    parts.append(b"\x28\x01" if statement.want_rows else b"\x28\x00")
    if statement.replication_index is not None:
        parts += (b"\x30", _varint(statement.replication_index))
    return parts


def _large(value: str | bytes) -> list[bytes]:
    """Return the parts of the message `Value`, as `encode_value` gives it in one piece."""
    return _nested(4, [_text(value)]) if isinstance(value, str) else _nested(5, [value])


def encode_value(value: object) -> bytes:
    """Return the message `Value` for a parameter.

    Raises `DataError` when SQLite cannot hold the value, `ProgrammingError` for another type.
    """
    if value is None:
        return b"\x0a\x00"
    if isinstance(value, str):
        return _field(4, _text(value))
    if isinstance(value, int):
        return _integer(value)
    if isinstance(value, float):
        return _real(value)
    if isinstance(value, bytes | bytearray | memoryview):
        return _field(5, bytes(value))
    raise ProgrammingError(
        f"a parameter of type {type(value).__name__} cannot be bound",
        remedy="pass None, int, float, str or bytes",
    )


def _integer(value: int) -> bytes:
    if not _INT64_MIN <= value <= _INT64_MAX:
        raise DataError("an integer parameter does not fit in 64 bits", remedy="pass it as text")
    return b"\x10" + _varint(value << 1 if value >= 0 else ~(value << 1))


def _real(value: float) -> bytes:
    if math.isnan(value):
        raise DataError("SQLite cannot hold NaN", remedy="pass None to store NULL")
    return b"\x19" + _DOUBLE.pack(value)


def _text(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError as exc:
        raise DataError(f"text with a lone surrogate at index {exc.start} is no UTF-8") from exc


def _field(number: int, data: bytes) -> bytes:
    """Return a length-delimited field; `number` is at most 15, so that its key is one byte."""
    return b"%c%b%b" % (number << 3 | 2, _varint(len(data)), data)


def _nested(number: int, parts: Sequence[bytes]) -> list[bytes]:
    """Return the parts of a field whose content is `parts`; see `_field`."""
    return [b"%c%b" % (number << 3 | 2, _varint(sum(map(len, parts)))), *parts]


def _varint(number: int) -> bytes:
    if number < 0x80:  # noqa: PLR2004 - seven bits a byte
        return number.to_bytes(1)
    out = bytearray()
    while number > 0x7F:  # noqa: PLR2004
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)
