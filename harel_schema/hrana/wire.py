"""Protobuf's wire format, as much of it as Hrana 3 uses, read from bytes.

The copy of a database spends its client time in `read_row`, so the format is spelled out there.
A body that breaks off or lies about a length is `ServerError` (or IndexError, UnicodeDecodeError
or struct.error, which `decode` turns into one).
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Final

from harel_schema.errors import ServerError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from harel_schema.hrana.messages import Row, Value

GARBLED: Final = (IndexError, UnicodeDecodeError, struct.error)

_DOUBLE: Final = struct.Struct("<d")
_VALUE_KEY: Final = 0x0A
_NULL: Final = 0x0A
_INTEGER: Final = 0x10
_REAL: Final = 0x19
_TEXT: Final = 0x22
_BLOB: Final = 0x2A
_SEVEN_BITS: Final = 0x7F
_VARINT, _FIXED64, _DELIMITED, _FIXED32 = 0, 1, 2, 5


def read_row(data: bytes, pos: int, end: int) -> Row:  # noqa: C901 - the loop that must be fast
    """Return the values of the message `Row` between `pos` and `end`."""
    row: list[Value] = []
    append = row.append
    while pos < end:
        # Every value is a message of its own that holds exactly one field.
        length = data[pos + 1]
        if data[pos] != _VALUE_KEY:
            raise broken()
        pos += 2
        if length > _SEVEN_BITS:
            length, pos = varint(data, pos - 1)
        stop = pos + length
        if not pos < stop <= end:
            raise broken()
        kind = data[pos]
        if kind in (_TEXT, _BLOB):
            # The payload reaches to the end of the message: step over its length.
            pos += 1
            while data[pos] > _SEVEN_BITS:
                pos += 1
            payload = data[pos + 1 : stop]
            append(payload.decode() if kind == _TEXT else payload)
        elif kind == _INTEGER:
            number = data[pos + 1]
            if number > _SEVEN_BITS:
                number, _ = varint(data, pos + 1)
            append(number >> 1 ^ -(number & 1))
        elif kind == _NULL:
            append(None)
        elif kind == _REAL:
            append(_DOUBLE.unpack_from(data, pos + 1)[0])
        else:
            raise ServerError(f"the server sent a value of an unknown kind ({kind >> 3})")
        pos = stop
    return tuple(row)


def fields(data: bytes, pos: int, end: int) -> Iterator[tuple[int, int, int]]:
    """Yield (number, start, end) of each field; a varint has its value in place of start."""
    while pos < end:
        key, pos = varint(data, pos)
        kind = key & 7
        if kind == _DELIMITED:
            length, pos = varint(data, pos)
            start, pos = pos, pos + length
            if pos > end:
                raise broken()
            yield key >> 3, start, pos
        elif kind == _VARINT:
            value, pos = varint(data, pos)
            yield key >> 3, value, pos
        elif kind in (_FIXED64, _FIXED32):
            pos += 8 if kind == _FIXED64 else 4
        else:
            raise broken()


def delimited(data: bytes, pos: int, end: int) -> tuple[int, int] | None:
    """Return start and end of the delimited message at `pos`, None when it is not all there."""
    at = pos
    while at < end and data[at] > _SEVEN_BITS:
        at += 1
    if at >= end:
        return None
    length, start = varint(data, pos)
    return (start, start + length) if start + length <= end else None


def varint(data: bytes, pos: int) -> tuple[int, int]:
    """Return the number at `pos` and the position after it."""
    number = shift = 0
    while True:
        byte = data[pos]
        pos += 1
        number |= (byte & _SEVEN_BITS) << shift
        if byte <= _SEVEN_BITS:
            return number, pos
        shift += 7
        if shift > 63:  # noqa: PLR2004 - ten bytes hold 64 bits
            raise broken()


def signed(number: int) -> int:
    """Return the integer that `number` stands for in the zigzag encoding."""
    return number >> 1 ^ -(number & 1)


def text(data: bytes, start: int, end: int) -> str:
    """Return the text between `start` and `end`."""
    return data[start:end].decode()


def broken() -> ServerError:
    """Return the error for an answer that cannot be read."""
    return ServerError(
        "the server's answer is cut off or is not Hrana 3",
        remedy="check that the URL is a libSQL server's",
    )
