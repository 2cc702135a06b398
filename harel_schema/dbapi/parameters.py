"""Checking parameters before a driver sees them: same rules and same errors on every driver."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from harel_schema.errors import DataError, ProgrammingError

if TYPE_CHECKING:
    from harel_schema.dbapi.statements import Statement

__all__ = ["Parameters", "Value", "are_exact", "bind"]

Value: TypeAlias = int | float | str | bytes | None
Parameters: TypeAlias = Sequence[Any] | Mapping[str, Any]

_MIN, _MAX = -(2**63), 2**63 - 1


def bind(statement: Statement, parameters: Parameters) -> tuple[Value, ...]:
    """Return the values of `statement` in the order of SQLite's parameter numbers.

    Raises `ProgrammingError` for a wrong number, a missing name or a type that SQLite has not,
    `DataError` for an int outside 64 bits or text that is not Unicode.
    """
    if parameters == () and not statement.count:
        return ()
    if statement.names is not None:
        parameters = _by_name(statement.names, parameters)
    elif type(parameters) is not tuple and type(parameters) is not list:
        parameters = _sequence(parameters)
    if len(parameters) != statement.count:
        raise ProgrammingError(
            f"the statement takes {statement.count} parameters, and {len(parameters)} are given"
        )
    return tuple([_CHECKS.get(type(value), _other)(value) for value in parameters])


def are_exact(parameters: Parameters) -> bool:
    """Whether every value is of one of SQLite's types itself, and not of a subclass."""
    return _EXACT.issuperset(map(type, parameters))


def _sequence(parameters: Parameters) -> Sequence[Any]:
    if isinstance(parameters, Mapping):
        raise ProgrammingError("a placeholder ? takes a sequence of parameters, not a mapping")
    if isinstance(parameters, str | bytes | bytearray) or not isinstance(parameters, Sequence):
        raise ProgrammingError(
            f"parameters are a sequence or a mapping, not {type(parameters).__name__}"
        )
    return parameters


def _by_name(names: tuple[str, ...], parameters: Parameters) -> list[Any]:
    if not isinstance(parameters, Mapping):
        raise ProgrammingError("a placeholder with a name takes a mapping of parameters")
    if "" in names:
        raise ProgrammingError(
            "the statement mixes ? and named placeholders", remedy="use one kind"
        )
    try:
        return [parameters[name] for name in names]
    except KeyError as error:
        raise ProgrammingError(f"no value is given for the parameter :{error.args[0]}") from None


def _same(value: Any) -> Any:
    return value


def _integer(value: int) -> int:
    if not _MIN <= value <= _MAX:
        raise DataError("an integer parameter does not fit in 64 bits", remedy="pass it as text")
    return value


def _text(value: str) -> str:
    if not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError as error:
            raise DataError(
                f"text with a lone surrogate at index {error.start} is no UTF-8"
            ) from None
    return value


def _other(value: object) -> Value:
    # Subclasses lose their class here: a driver may know exact types only.
    if isinstance(value, int):
        return _integer(int(value))
    if isinstance(value, str):
        return _text(str.__str__(value))
    if isinstance(value, float):
        return float(value)
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value)
    raise ProgrammingError(
        f"a parameter of type {type(value).__name__} cannot be bound",
        remedy="pass None, int, float, str or bytes",
    )


_CHECKS: dict[type, Callable[[Any], Value]] = {
    type(None): _same,
    float: _same,
    bytes: _same,
    int: _integer,
    str: _text,
}
_EXACT = frozenset(_CHECKS)
