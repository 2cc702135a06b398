"""Bytes to results: the Protobuf encoding of Hrana 3, read by hand straight into tuples.

The copy of a database spends its client time in `_read_row`, so the wire format is spelled out
there. A field that this version does not know is skipped, as the specification demands; a body
that breaks off or lies about a length is `ServerError`.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Final

from harel_schema.errors import Error, ServerError
from harel_schema.hrana import messages as m
from harel_schema.hrana.faults import from_server

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_DOUBLE: Final = struct.Struct("<d")
_TEXT: Final = 0x22
_INTEGER: Final = 0x10
_NULL: Final = 0x0A
_REAL: Final = 0x19
_BLOB: Final = 0x2A

# A length-delimited field is (start, end) in the buffer, a varint its number.
_Field = tuple[int, int, int]


def decode_pipeline(body: bytes, requests: Sequence[m.Request]) -> m.Pipeline:
    """Return the answer to `requests`; an error of a request stays in its slot.

    Raises `ServerError` when `body` is no such answer.
    """
    baton = base_url = None
    results: list[m.Result] = []
    try:
        for number, start, end in _fields(body, 0, len(body)):
            if number == 1:
                baton = _text(body, start, end)
            elif number == 2:
                base_url = _text(body, start, end)
            elif number == 3:
                results.append(_stream_result(body, start, end, requests[len(results)]))
    except (IndexError, UnicodeDecodeError, struct.error) as exc:
        raise _broken() from exc
    if len(results) != len(requests):
        raise ServerError(f"the server answered {len(results)} of {len(requests)} requests")
    return m.Pipeline(baton, base_url, tuple(results))


def decode_error(body: bytes) -> tuple[str, str | None]:
    """Return message and code of an `Error` structure; `ServerError` when it is none."""
    try:
        return _error_parts(body, 0, len(body))
    except (IndexError, UnicodeDecodeError) as exc:
        raise _broken() from exc


class CursorDecoder:
    """Turns the chunks of a ``v3-protobuf/cursor`` response into entries, as they arrive.

    `started` says that the head of the response was fed, which sets `baton` and `base_url`.
    The memory in use is bounded by the chunk and the largest single row.
    """

    def __init__(self) -> None:
        self.baton: str | None = None
        self.base_url: str | None = None
        self._rest = b""
        self.started = False
        self._open_step = False

    def feed(self, chunk: bytes) -> list[m.CursorEntry]:
        """Return the entries that `chunk` completes.

        Raises the server's error when the whole batch failed, `ServerError` for garbage.
        """
        data = self._rest + chunk if self._rest else chunk
        entries: list[m.CursorEntry] = []
        pos, end = 0, len(data)
        try:
            while pos < end:
                header = _complete(data, pos, end)
                if header is None:
                    break
                start, pos = header
                self._message(data, start, pos, entries)
        except (IndexError, UnicodeDecodeError, struct.error) as exc:
            raise _broken() from exc
        self._rest = data[pos:]
        return entries

    def finish(self) -> None:
        """Raise `ServerError` unless the response ended where an answer may end."""
        if self._rest or not self.started or self._open_step:
            raise _broken()

    def _message(self, data: bytes, start: int, end: int, entries: list[m.CursorEntry]) -> None:
        if not self.started:
            self.started = True
            self._read_head(data, start, end)
            return
        for number, at, stop in _fields(data, start, end):
            if number == 4:
                row = _read_row(data, at, stop)
                if entries and isinstance(entries[-1], m.Rows):
                    entries[-1].rows.append(row)
                else:
                    entries.append(m.Rows([row]))
            elif number == 1:
                self._open_step = True
                entries.append(_step_begin(data, at, stop))
            elif number == 2:
                self._open_step = False
                entries.append(_step_end(data, at, stop))
            elif number == 3:
                self._open_step = False
                entries.append(_step_error(data, at, stop))
            elif number == 5:
                self._open_step = False
                raise _error(data, at, stop)

    def _read_head(self, data: bytes, start: int, end: int) -> None:
        for number, at, stop in _fields(data, start, end):
            if number == 1:
                self.baton = _text(data, at, stop)
            elif number == 2:
                self.base_url = _text(data, at, stop)


def _complete(data: bytes, pos: int, end: int) -> tuple[int, int] | None:
    """Return start and end of the delimited message at `pos`, None when it is not all there."""
    at = pos
    while at < end and data[at] > 0x7F:
        at += 1
    if at >= end:
        return None
    length, start = _varint(data, pos)
    return (start, start + length) if start + length <= end else None


def _stream_result(data: bytes, start: int, end: int, request: m.Request) -> m.Result:
    for number, at, stop in _fields(data, start, end):
        if number == 1:
            return _response(data, at, stop, request)
        if number == 2:
            return _error(data, at, stop)
    raise _broken()


def _response(data: bytes, start: int, end: int, request: m.Request) -> m.Result:
    for number, at, stop in _fields(data, start, end):
        match number, request:
            case (1, m.Close()) | (4, m.Sequence()):
                return None
            case 2, m.Execute():
                return _statement_result(data, *_inner(data, at, stop))
            case 3, m.RunBatch(batch):
                return _batch_result(data, *_inner(data, at, stop), steps=len(batch.steps))
            case 5, m.Describe():
                return _description(data, *_inner(data, at, stop))
            case 8, m.GetAutocommit():
                return any(n == 1 and value for n, value, _ in _fields(data, at, stop))
    raise ServerError(f"the answer does not fit the request {type(request).__name__}")


def _inner(data: bytes, start: int, end: int) -> tuple[int, int]:
    """Return the bounds of field 1, in which each response carries its result."""
    for number, at, stop in _fields(data, start, end):
        if number == 1:
            return at, stop
    return end, end


def _statement_result(data: bytes, start: int, end: int) -> m.StatementResult:
    columns: list[str] = []
    decltypes: list[str | None] = []
    rows: list[m.Row] = []
    affected, rowid = 0, None
    for number, at, stop in _fields(data, start, end):
        if number == 2:
            rows.append(_read_row(data, at, stop))
        elif number == 1:
            _column(data, at, stop, columns, decltypes)
        elif number == 3:
            affected = at
        elif number == 4:
            rowid = _signed(at)
    return m.StatementResult(tuple(columns), tuple(decltypes), rows, affected, rowid)


def _batch_result(data: bytes, start: int, end: int, *, steps: int) -> m.BatchResult:
    results: list[m.StatementResult | None] = [None] * steps
    errors: list[Error | None] = [None] * steps
    for number, at, stop in _fields(data, start, end):
        if number in (1, 2):
            step, (first, last) = _map_entry(data, at, stop)
            if number == 1:
                results[step] = _statement_result(data, first, last)
            else:
                errors[step] = _error(data, first, last)
    return m.BatchResult(tuple(results), tuple(errors))


def _map_entry(data: bytes, start: int, end: int) -> tuple[int, tuple[int, int]]:
    key, bounds = 0, (end, end)
    for number, at, stop in _fields(data, start, end):
        if number == 1:
            key = at
        elif number == 2:
            bounds = (at, stop)
    return key, bounds


def _description(data: bytes, start: int, end: int) -> m.Description:
    parameters: list[str | None] = []
    columns: list[str] = []
    decltypes: list[str | None] = []
    flags = {3: False, 4: False}
    for number, at, stop in _fields(data, start, end):
        if number == 1:
            names = [_text(data, a, b) for n, a, b in _fields(data, at, stop) if n == 1]
            parameters.append(names[0] if names else None)
        elif number == 2:
            _column(data, at, stop, columns, decltypes)
        elif number in flags:
            flags[number] = bool(at)
    return m.Description(tuple(parameters), tuple(columns), tuple(decltypes), flags[3], flags[4])


def _column(
    data: bytes, start: int, end: int, columns: list[str], decltypes: list[str | None]
) -> None:
    name, decltype = "", None
    for number, at, stop in _fields(data, start, end):
        if number == 1:
            name = _text(data, at, stop)
        elif number == 2:
            decltype = _text(data, at, stop)
    columns.append(name)
    decltypes.append(decltype)


def _step_begin(data: bytes, start: int, end: int) -> m.StepBegin:
    step = 0
    columns: list[str] = []
    decltypes: list[str | None] = []
    for number, at, stop in _fields(data, start, end):
        if number == 1:
            step = at
        elif number == 2:
            _column(data, at, stop, columns, decltypes)
    return m.StepBegin(step, tuple(columns), tuple(decltypes))


def _step_end(data: bytes, start: int, end: int) -> m.StepEnd:
    affected, rowid = 0, None
    for number, at, _ in _fields(data, start, end):
        if number == 1:
            affected = at
        elif number == 2:
            rowid = _signed(at)
    return m.StepEnd(affected, rowid)


def _step_error(data: bytes, start: int, end: int) -> m.StepError:
    step, (first, last) = _map_entry(data, start, end)
    return m.StepError(step, _error(data, first, last))


def _error(data: bytes, start: int, end: int) -> Error:
    return from_server(*_error_parts(data, start, end))


def _error_parts(data: bytes, start: int, end: int) -> tuple[str, str | None]:
    message, code = "", None
    for number, at, stop in _fields(data, start, end):
        if number == 1:
            message = _text(data, at, stop)
        elif number == 2:
            code = _text(data, at, stop) or None
    return message, code


def _read_row(data: bytes, pos: int, end: int) -> m.Row:
    row: list[m.Value] = []
    append = row.append
    while pos < end:
        # Every value is a message of its own (key 0x0a) that holds exactly one field.
        length = data[pos + 1]
        if data[pos] != 0x0A:
            raise _broken()
        pos += 2
        if length > 0x7F:
            length, pos = _varint(data, pos - 1)
        stop = pos + length
        if stop > end:
            raise _broken()
        kind = data[pos]
        if kind == _TEXT or kind == _BLOB:  # noqa: PLR1714 - two comparisons are faster
            # The payload reaches to the end of the message: step over its length.
            pos += 1
            while data[pos] > 0x7F:
                pos += 1
            append(data[pos + 1 : stop].decode() if kind == _TEXT else data[pos + 1 : stop])
        elif kind == _INTEGER:
            number = data[pos + 1]
            if number > 0x7F:
                number, _ = _varint(data, pos + 1)
            append(number >> 1 ^ -(number & 1))
        elif kind == _NULL:
            append(None)
        elif kind == _REAL:
            append(_DOUBLE.unpack_from(data, pos + 1)[0])
        else:
            raise ServerError(f"the server sent a value of an unknown kind ({kind >> 3})")
        pos = stop
    return tuple(row)


def _fields(data: bytes, pos: int, end: int) -> Iterator[_Field]:
    """Yield (number, start, end) of each field; a varint has its number in place of start."""
    while pos < end:
        key, pos = _varint(data, pos)
        kind = key & 7
        if kind == 2:
            length, pos = _varint(data, pos)
            start, pos = pos, pos + length
            if pos > end:
                raise _broken()
            yield key >> 3, start, pos
        elif kind == 0:
            value, pos = _varint(data, pos)
            yield key >> 3, value, pos
        elif kind in (1, 5):
            pos += 8 if kind == 1 else 4
        else:
            raise _broken()


def _varint(data: bytes, pos: int) -> tuple[int, int]:
    """Return the number at `pos` and the position after it."""
    number = shift = 0
    while True:
        byte = data[pos]
        pos += 1
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            return number, pos
        shift += 7
        if shift > 63:
            raise _broken()


def _signed(number: int) -> int:
    return number >> 1 ^ -(number & 1)


def _text(data: bytes, start: int, end: int) -> str:
    return data[start:end].decode()


def _broken() -> ServerError:
    return ServerError("the server's answer is cut off or is not Hrana 3")
