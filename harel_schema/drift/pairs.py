"""Matching two lists of named things: the same name, a new name, only here, only there."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

from harel_schema.introspect import fold

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

__all__ = ["Pairs", "pairs"]


class _Named(Protocol):
    @property
    def name(self) -> str: ...


_T = TypeVar("_T", bound=_Named)


@dataclass(slots=True)
class Pairs(Generic[_T]):
    """`both` and `renamed` hold (expected, found)."""

    both: list[tuple[_T, _T]] = field(default_factory=list)
    renamed: list[tuple[_T, _T]] = field(default_factory=list)
    missing: list[_T] = field(default_factory=list)
    extra: list[_T] = field(default_factory=list)


def pairs(expected: Iterable[_T], found: Iterable[_T], same: Callable[[_T, _T], bool]) -> Pairs[_T]:
    """Match by name, and what is left by `same`: whether two differ by nothing but their names."""
    result: Pairs[_T] = Pairs()
    left = {fold(thing.name): thing for thing in found}
    lost = []
    for thing in expected:
        other = left.pop(fold(thing.name), None)
        if other is None:
            lost.append(thing)
        else:
            result.both.append((thing, other))
    for thing in lost:
        other = next((other for other in left.values() if same(thing, other)), None)
        if other is None:
            result.missing.append(thing)
        else:
            result.renamed.append((thing, other))
            del left[fold(other.name)]
    result.extra.extend(left.values())
    return result
