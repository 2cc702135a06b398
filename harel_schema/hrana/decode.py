"""Bytes to results: the Protobuf encoding of Hrana 3, straight into tuples.

A field that this version does not know is skipped, as the specification demands.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from harel_schema.errors import Error, ServerError
from harel_schema.hrana import messages as m
from harel_schema.hrana.faults import from_server
from harel_schema.hrana.wire import (
    GARBLED,
    broken,
    delimited,
    fields,
    read_row,
    signed,
    text,
)

if TYPE_CHECKING:
    from collections.abc import Sequence


def decode_pipeline(body: bytes, requests: Sequence[m.Request]) -> m.Pipeline:
    """Return the answer to `requests`; an error of a request stays in its slot.

    Raises `ServerError` when `body` is no such answer.
    """
    baton = base_url = None
    results: list[m.Result] = []
    try:
        for number, start, end in fields(body, 0, len(body)):
            match number:
                case 1:
                    baton = text(body, start, end)
                case 2:
                    base_url = text(body, start, end)
                case 3:
                    request = requests[len(results)]
                    results.append(_stream_result(body, start, end, request))
    except GARBLED as exc:
        raise broken() from exc
    if len(results) != len(requests):
        raise ServerError(f"the server answered {len(results)} of {len(requests)} requests")
    return m.Pipeline(baton, base_url, tuple(results))


def decode_error(body: bytes) -> tuple[str, str | None]:
    """Return message and code of an `Error` structure; `ServerError` when it is none."""
    try:
        return _error_parts(body, 0, len(body))
    except GARBLED as exc:
        raise broken() from exc


class CursorDecoder:
    """Turns the chunks of a ``v3-protobuf/cursor`` response into entries, as they arrive.

    `started` says that the head of the response was fed, which sets `baton` and `base_url`.
    The memory in use is bounded by the chunk and the largest single row.
    """

    def __init__(self) -> None:
        self.started = False
        self.baton: str | None = None
        self.base_url: str | None = None
        self._rest = b""
        self._in_step = False

    def feed(self, chunk: bytes) -> list[m.CursorEntry]:
        """Return the entries that `chunk` completes.

        Raises the server's error when the whole batch failed, `ServerError` for garbage.
        """
        data = self._rest + chunk if self._rest else chunk
        entries: list[m.CursorEntry] = []
        pos, end = 0, len(data)
        try:
            while (bounds := delimited(data, pos, end)) is not None:
                start, pos = bounds
                if self.started:
                    self._entry(data, start, pos, entries)
                else:
                    self._head(data, start, pos)
        except GARBLED as exc:
            raise broken() from exc
        self._rest = data[pos:]
        return entries

    def finish(self) -> None:
        """Raise `ServerError` unless the response ended where an answer may end."""
        if self._rest or not self.started or self._in_step:
            raise broken()

    def _head(self, data: bytes, start: int, end: int) -> None:
        self.started = True
        for number, at, stop in fields(data, start, end):
            match number:
                case 1:
                    self.baton = text(data, at, stop)
                case 2:
                    self.base_url = text(data, at, stop)

    def _entry(self, data: bytes, start: int, end: int, entries: list[m.CursorEntry]) -> None:
        for number, at, stop in fields(data, start, end):
            match number:
                case 4:
                    row = read_row(data, at, stop)
                    if entries and isinstance(entries[-1], m.Rows):
                        entries[-1].rows.append(row)
                    else:
                        entries.append(m.Rows([row]))
                case 1:
                    self._in_step = True
                    entries.append(_step_begin(data, at, stop))
                case 2:
                    self._in_step = False
                    entries.append(_step_end(data, at, stop))
                case 3:
                    self._in_step = False
                    step, (first, last) = _map_entry(data, at, stop)
                    entries.append(m.StepError(step, _error(data, first, last)))
                case 5:
                    raise _error(data, at, stop)


def _stream_result(data: bytes, start: int, end: int, request: m.Request) -> m.Result:
    for number, at, stop in fields(data, start, end):
        match number:
            case 1:
                return _response(data, at, stop, request)
            case 2:
                return _error(data, at, stop)
    raise broken()


def _response(data: bytes, start: int, end: int, request: m.Request) -> m.Result:
    for number, at, stop in fields(data, start, end):
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
                return any(n == 1 and value for n, value, _ in fields(data, at, stop))
    raise ServerError(f"the server's answer does not fit the request {type(request).__name__}")


def _inner(data: bytes, start: int, end: int) -> tuple[int, int]:
    """Return the bounds of field 1, in which each response carries its result."""
    for number, at, stop in fields(data, start, end):
        if number == 1:
            return at, stop
    return end, end


def _statement_result(data: bytes, start: int, end: int) -> m.StatementResult:
    columns = _Columns()
    rows: list[m.Row] = []
    affected, rowid, index = 0, None, None
    for number, at, stop in fields(data, start, end):
        match number:
            case 2:
                rows.append(read_row(data, at, stop))
            case 1:
                columns.read(data, at, stop)
            case 3:
                affected = at
            case 4:
                rowid = signed(at)
            case 5:
                index = at
    return m.StatementResult(*columns.pair(), rows, affected, rowid, index)


def _batch_result(data: bytes, start: int, end: int, *, steps: int) -> m.BatchResult:
    results: list[m.StatementResult | None] = [None] * steps
    errors: list[Error | None] = [None] * steps
    for number, at, stop in fields(data, start, end):
        match number:
            case 1:
                step, bounds = _map_entry(data, at, stop)
                results[step] = _statement_result(data, *bounds)
            case 2:
                step, bounds = _map_entry(data, at, stop)
                errors[step] = _error(data, *bounds)
    return m.BatchResult(tuple(results), tuple(errors))


def _map_entry(data: bytes, start: int, end: int) -> tuple[int, tuple[int, int]]:
    """Return the number and the message of an entry of a map, or of a `StepErrorEntry`."""
    key, bounds = 0, (end, end)
    for number, at, stop in fields(data, start, end):
        match number:
            case 1:
                key = at
            case 2:
                bounds = (at, stop)
    return key, bounds


def _description(data: bytes, start: int, end: int) -> m.Description:
    parameters: list[str | None] = []
    columns = _Columns()
    is_explain = is_readonly = False
    for number, at, stop in fields(data, start, end):
        match number:
            case 1:
                names = [text(data, a, b) for n, a, b in fields(data, at, stop) if n == 1]
                parameters.append(names[0] if names else None)
            case 2:
                columns.read(data, at, stop)
            case 3:
                is_explain = bool(at)
            case 4:
                is_readonly = bool(at)
    return m.Description(tuple(parameters), *columns.pair(), is_explain, is_readonly)


class _Columns:
    """Names and declared types of a result's columns."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self.decltypes: list[str | None] = []

    def read(self, data: bytes, start: int, end: int) -> None:
        name, decltype = "", None
        for number, at, stop in fields(data, start, end):
            match number:
                case 1:
                    name = text(data, at, stop)
                case 2:
                    decltype = text(data, at, stop)
        self.names.append(name)
        self.decltypes.append(decltype)

    def pair(self) -> tuple[tuple[str, ...], tuple[str | None, ...]]:
        return tuple(self.names), tuple(self.decltypes)


def _step_begin(data: bytes, start: int, end: int) -> m.StepBegin:
    step = 0
    columns = _Columns()
    for number, at, stop in fields(data, start, end):
        match number:
            case 1:
                step = at
            case 2:
                columns.read(data, at, stop)
    return m.StepBegin(step, *columns.pair())


def _step_end(data: bytes, start: int, end: int) -> m.StepEnd:
    affected, rowid = 0, None
    for number, at, _ in fields(data, start, end):
        match number:
            case 1:
                affected = at
            case 2:
                rowid = signed(at)
    return m.StepEnd(affected, rowid)


def _error(data: bytes, start: int, end: int) -> Error:
    return from_server(*_error_parts(data, start, end))


def _error_parts(data: bytes, start: int, end: int) -> tuple[str, str | None]:
    message, code = "", None
    for number, at, stop in fields(data, start, end):
        match number:
            case 1:
                message = text(data, at, stop)
            case 2:
                code = text(data, at, stop) or None
    return message, code
