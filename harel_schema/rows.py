"""Canonical bytes of a row: what "the same row" means, and the order of keys.

A cell is its storage class and its bytes, so text and blob, ``''``, ``x''`` and NULL, 1 and 1.0,
0.0 and -0.0 all differ, and no two rows share an encoding:

=========  ===================================================
``N``      NULL
``I`` + 8  INTEGER, two's complement, big-endian
``R`` + 8  REAL, IEEE 754 binary64, big-endian
``T`` + 4  TEXT: length in bytes, then the bytes (UTF-8)
``B`` + 4  BLOB: length in bytes, then the bytes
=========  ===================================================

A row is its number of cells (2 bytes), then the cells. Pure: no I/O, no SQL.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from hashlib import blake2b
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

__all__ = [
    "RawText",
    "Row",
    "StorageClass",
    "Value",
    "decode",
    "digest",
    "encode",
    "record_size",
    "size",
    "sort_key",
    "storage_class",
    "text",
]

DIGEST_SIZE: Final = 16
"""Bytes of a digest."""


@dataclass(frozen=True, slots=True)
class RawText:
    """TEXT whose bytes are no UTF-8, which SQLite stores and no `str` can hold."""

    data: bytes


Value: TypeAlias = int | float | str | bytes | RawText | None
Row: TypeAlias = tuple[Value, ...]
StorageClass: TypeAlias = Literal["null", "integer", "real", "text", "blob"]

_COUNT: Final = struct.Struct(">H")
_INTEGER: Final = struct.Struct(">cq")
_REAL: Final = struct.Struct(">cd")
_SIZED: Final = struct.Struct(">cI")


def text(data: bytes) -> str | RawText:
    """Return the TEXT that is stored as `data`."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        return RawText(data)


def storage_class(value: Value) -> StorageClass:
    """Return SQLite's name for how `value` is stored, as ``typeof()`` gives it."""
    match value:
        case None:
            return "null"
        case int():
            return "integer"
        case float():
            return "real"
        case bytes():
            return "blob"
        case _:
            return "text"


def encode(row: Sequence[Value]) -> bytes:
    """Return the canonical bytes of `row`; equal exactly when every cell is.

    Raises `TypeError` for a value that no cell holds, such as a bool.
    """
    parts = [_COUNT.pack(len(row))]
    for value in row:
        kind = type(value)
        if kind is str:
            data = value.encode()  # type: ignore[union-attr] # `kind` says so
            parts += (_SIZED.pack(b"T", len(data)), data)
        elif value is None:
            parts.append(b"N")
        elif kind is int:
            parts.append(_INTEGER.pack(b"I", value))
        elif kind is float:
            parts.append(_REAL.pack(b"R", value))
        elif kind is bytes:
            parts += (_SIZED.pack(b"B", len(value)), value)  # type: ignore[arg-type]
        elif isinstance(value, RawText):
            parts += (_SIZED.pack(b"T", len(value.data)), value.data)
        else:
            raise TypeError(f"a cell holds no {kind.__name__}")
    return b"".join(parts)


def size(row: Sequence[Value]) -> int:
    """Return the length of `encode(row)`."""
    total = _COUNT.size
    for value in row:
        kind = value.__class__
        if kind is str:
            text_: str = value  # type: ignore[assignment] # `kind` says so
            total += _SIZED.size + (len(text_) if text_.isascii() else len(text_.encode()))
        elif value is None:
            total += 1
        elif kind is bytes:
            total += _SIZED.size + len(value)  # type: ignore[arg-type]
        elif isinstance(value, RawText):
            total += _SIZED.size + len(value.data)
        else:
            total += _INTEGER.size
    return total


def decode(data: bytes) -> Row:
    """Return the row that `encode` gave `data` for. Raises `ValueError` for other bytes."""
    try:
        (count,) = _COUNT.unpack_from(data)
        at, cells = _COUNT.size, []
        for _ in range(count):
            value, at = _cell(data, at)
            cells.append(value)
    except struct.error as exc:
        raise ValueError("the encoded row is cut short") from exc
    if at != len(data):
        raise ValueError("the encoded row has bytes left over")
    return tuple(cells)


def _cell(data: bytes, at: int) -> tuple[Value, int]:
    tag = data[at : at + 1]
    if tag == b"N":
        return None, at + 1
    if tag == b"I":
        return _INTEGER.unpack_from(data, at)[1], at + _INTEGER.size
    if tag == b"R":
        return _REAL.unpack_from(data, at)[1], at + _REAL.size
    if tag not in (b"T", b"B"):
        raise ValueError(f"an encoded cell has no tag {tag!r}")
    start = at + _SIZED.size
    end = start + _SIZED.unpack_from(data, at)[1]
    if end > len(data):
        raise ValueError("the encoded row is cut short")
    raw = data[start:end]
    return (raw if tag == b"B" else text(raw)), end


def digest(encoded_rows: Iterable[bytes]) -> bytes:
    """Return the digest of rows in key order, each given as its canonical bytes."""
    return blake2b(b"".join(encoded_rows), digest_size=DIGEST_SIZE).digest()


def record_size(row: Sequence[Value]) -> int:
    """Return the bytes that `row` takes at most in SQLite's record format.

    The length limit of a connection (5,000,000 on sqld) applies to this number. A REAL that is
    a whole number may take less. Source: https://sqlite.org/fileformat2.html#record_format.
    """
    header = body = 0
    for value in row:
        serial = 0
        if isinstance(value, str):
            size = len(value.encode())
            serial = 2 * size + 13
        elif isinstance(value, RawText):
            size = len(value.data)
            serial = 2 * size + 13
        elif isinstance(value, bytes):
            size = len(value)
            serial = 2 * size + 12
        elif isinstance(value, float):
            size = 8
        else:
            size = 0 if value is None else _integer_size(value)
        header += _varint_size(serial)
        body += size
    return header + _varint_size(header + 1) + body


def _integer_size(value: int) -> int:
    if value in (0, 1):
        return 0
    bits = (value if value >= 0 else ~value).bit_length() + 1
    return next(size for size in (1, 2, 3, 4, 6, 8) if bits <= 8 * size)


def _varint_size(value: int) -> int:
    return max(1, -(-value.bit_length() // 7))


SortKey: TypeAlias = tuple[tuple[int, object], ...]


def sort_key(key: Sequence[Value], collations: Sequence[str]) -> SortKey:
    """Return a value that orders `key` among others as ``ORDER BY`` does, column by column.

    `collations` names the collation of each column: BINARY, NOCASE or RTRIM. Keys that SQLite
    holds for equal (1 and 1.0; ``a`` and ``A`` under NOCASE) get equal sort keys.
    Source: https://sqlite.org/datatype3.html#sort_order.
    """
    return tuple(_sortable(value, name) for value, name in zip(key, collations, strict=True))


def _sortable(value: Value, collation: str) -> tuple[int, object]:
    match value:
        case None:
            return (0, 0)
        case int() | float():
            return (1, value)
        case bytes():
            return (3, value)
        case RawText(data):
            return (2, _collated(data, collation))
        case _:
            return (2, _collated(value.encode(), collation))


def _collated(data: bytes, collation: str) -> object:
    if collation == "NOCASE":
        # bytes.lower() folds ASCII only, as SQLite does. SQLite's comparison stops at a NUL and
        # then compares the lengths.
        return (data.lower().partition(b"\x00")[0], len(data))
    if collation == "RTRIM":
        return data.rstrip(b" ")
    return data
