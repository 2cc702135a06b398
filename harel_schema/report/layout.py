"""Where the boxes of a picture stand and its lines run. Pure geometry, in pixels.

Boxes stand in columns, with gutters between them and a free strip above. Lines run in gutters and
in the strip only, so that none crosses a box. All lines to one port of a parent share a trunk:
each trunk has its own place in a gutter, so that no two of them lie on each other.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from math import sqrt
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

__all__ = ["End", "Line", "Place", "Plan", "Point", "arrange"]

# Between columns, and below a box: together with the boxes' heights it keeps to a grid of rows.
_GAP: Final = 32
_BELOW: Final = 24
_LANE: Final = 12
_MARGIN: Final = 24
_ASIDE: Final = 2
# How much wider than high a picture should be, and what a column of distance costs in height.
_ASPECT: Final = 2.0
_FAR: Final = 400

Point = tuple[float, float]


class End(NamedTuple):
    """An end of a line: a box, and how far below its top the line meets it."""

    box: int
    down: float


class Line(NamedTuple):
    """A line from a child's end to its parent's."""

    child: End
    parent: End


class Place(NamedTuple):
    """Where a box stands, and its size."""

    x: float
    y: float
    width: float
    height: float


@dataclass(frozen=True, slots=True)
class Plan:
    """A whole picture: a place for each box and the corners of each line, child's end first."""

    width: float
    height: float
    places: tuple[Place, ...]
    paths: tuple[tuple[Point, ...], ...]


class _Route(NamedTuple):
    """The gutters of a line's ends: gutter 0 is left of column 0. `trunk` is the parent's port."""

    child_gutter: int
    parent_gutter: int
    trunk: End


def arrange(sizes: Sequence[tuple[float, float]], lines: Sequence[Line]) -> Plan:
    """Return a plan for boxes of these sizes (width, height), of which lines run from and to."""
    columns = _columns(sizes, lines)
    column_of = {box: number for number, boxes in enumerate(columns) for box in boxes}
    routes = [_route(line, column_of) for line in lines]
    gutters = [_trunks(routes, number) for number in range(len(columns) + 1)]
    strip = list(dict.fromkeys(r.trunk for r in routes if r.child_gutter != r.parent_gutter))
    # The strip's lines are closer to the boxes the later they come.
    top = _MARGIN + _LANE * (len(strip) + 1 if strip else 0)
    places: dict[int, Place] = {}
    starts = []
    x: float = 0
    for number, boxes in enumerate(columns):
        starts.append(x)
        x += _gutter(len(gutters[number]), outer=number == 0)
        width = max(sizes[box][0] for box in boxes)
        y: float = top
        for box in boxes:
            places[box] = Place(x, y, width, sizes[box][1])
            y += sizes[box][1] + _BELOW
        x += width
    starts.append(x)
    x += _gutter(len(gutters[-1]), outer=True)
    bottom = max((place.y + place.height for place in places.values()), default=top)

    def across(gutter: int, trunk: End) -> float:
        wide = _gutter(len(gutters[gutter]), outer=gutter in (0, len(columns)))
        lanes = len(gutters[gutter])
        middle = starts[gutter] + wide / 2
        return middle + _LANE * (gutters[gutter].index(trunk) - (lanes - 1) / 2)

    def path(line: Line, route: _Route) -> tuple[Point, ...]:
        start = _port(line.child, places, right=route.child_gutter > column_of[line.child.box])
        end = _port(line.parent, places, right=route.parent_gutter > column_of[line.parent.box])
        first = across(route.child_gutter, route.trunk)
        last = across(route.parent_gutter, route.trunk)
        above = _MARGIN + _LANE * strip.index(route.trunk) if route.trunk in strip else 0
        direct = route.child_gutter == route.parent_gutter
        over = () if direct else ((first, above), (last, above))
        return (start, (first, start[1]), *over, (last, end[1]), end)

    paths = tuple(path(line, route) for line, route in zip(lines, routes, strict=True))
    ordered = tuple(places[box] for box in range(len(sizes)))
    return Plan(x, bottom + _MARGIN, ordered, paths)


def _gutter(lanes: int, *, outer: bool) -> float:
    if not lanes:
        return _MARGIN if outer else _GAP
    return 2 * _GAP + _LANE * (lanes - 1)


def _port(end: End, places: Mapping[int, Place], *, right: bool) -> Point:
    """Where a line meets a box: on its two sides at other heights, for the sake of neighbours."""
    place = places[end.box]
    y = place.y + end.down
    return (place.x + place.width, y - _ASIDE) if right else (place.x, y + _ASIDE)


def _route(line: Line, column_of: Mapping[int, int]) -> _Route:
    child, parent = column_of[line.child.box], column_of[line.parent.box]
    if child == parent:
        return _Route(child, child, line.parent)
    if child < parent:
        return _Route(child + 1, parent, line.parent)
    return _Route(child, parent + 1, line.parent)


def _trunks(routes: Iterable[_Route], gutter: int) -> list[End]:
    """Return the trunks that run in a gutter, from left to right."""
    trunks = (r.trunk for r in routes if gutter in (r.child_gutter, r.parent_gutter))
    return list(dict.fromkeys(trunks))


def _columns(sizes: Sequence[tuple[float, float]], lines: Iterable[Line]) -> list[list[int]]:
    """Share boxes out to columns of about one height, with what is connected side by side."""
    joined: dict[int, set[int]] = defaultdict(set)
    for line in lines:
        if line.child.box != line.parent.box:
            joined[line.child.box].add(line.parent.box)
            joined[line.parent.box].add(line.child.box)
    count = _count(sizes)
    columns: list[list[int]] = [[] for _ in range(count)]
    heights = [0.0] * count
    place: dict[int, int] = {}
    left = sorted(range(len(sizes)), key=lambda box: -len(joined[box]))
    while left:
        # Next is what hangs on most that is placed; then what most hangs on.
        box = max(left, key=lambda box: (sum(b in place for b in joined[box]), len(joined[box])))
        left.remove(box)
        near = [place[other] for other in joined[box] if other in place]

        def cost(column: int, near: Sequence[int] = near) -> tuple[float, int]:
            far = sum(_FAR * (abs(column - other) or 1) for other in near)
            return heights[column] + far, abs(column - count // 2)

        column = min(range(count), key=cost)
        place[box] = column
        columns[column].append(box)
        heights[column] += sizes[box][1] + _BELOW
    return [boxes for boxes in columns if boxes]


def _count(sizes: Sequence[tuple[float, float]]) -> int:
    if not sizes:
        return 0
    high = sum(height + _BELOW for _, height in sizes)
    wide = sum(width for width, _ in sizes) / len(sizes) + 2 * _GAP
    return max(1, min(len(sizes), round(sqrt(high * _ASPECT / wide))))
