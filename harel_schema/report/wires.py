"""The lines between the boxes of a picture in SVG, with what stands at their ends."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from harel_schema.report.markup import element, px

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from harel_schema.diagram import Link
    from harel_schema.report.layout import Point
    from harel_schema.report.markup import Element

__all__ = ["wires"]

_RADIUS: Final = 6


def wires(links: Sequence[Link], paths: Sequence[Sequence[Point]]) -> Iterator[Element]:
    """Yield the lines of relations; at each end a foot for many, a bar for one."""
    for link, path in zip(links, paths, strict=True):
        # The first stretch is the line's own, the rest may lie on that of another one.
        joint = _towards(path[1], path[0], _RADIUS)
        loose = "" if link.declared else " loose"
        own = f"M{px(path[0][0])} {px(path[0][1])}H{px(joint[0])}"
        yield element("path", d=own, class_=f"wire{loose}")
        yield element("path", d=_rounded([joint, *path[1:]]), class_="wire")
        for many, ends in ((link.many, path[:2]), (link.parent_many, path[::-1][:2])):
            (x, y), (beyond, _) = ends
            out = 1 if beyond > x else -1
            foot = f"M{px(x)} {px(y - 4)}L{px(x + 9 * out)} {px(y)}L{px(x)} {px(y + 4)}"
            bar = f"M{px(x + 7 * out)} {px(y - 4)}v8"
            yield element("path", d=foot if many else bar, class_="wire")


def _rounded(path: Sequence[Point]) -> str:
    """Return a path with round corners; all its parts are level or upright."""
    parts = [f"M{px(path[0][0])} {px(path[0][1])}"]
    for before, (x, y), after in zip(path, path[1:], path[2:], strict=False):
        near = _towards((x, y), before, _RADIUS)
        far = _towards((x, y), after, _RADIUS)
        parts.append(f"L{px(near[0])} {px(near[1])}Q{px(x)} {px(y)} {px(far[0])} {px(far[1])}")
    return "".join([*parts, f"L{px(path[-1][0])} {px(path[-1][1])}"])


def _towards(corner: Point, other: Point, radius: float) -> Point:
    dx, dy = other[0] - corner[0], other[1] - corner[1]
    length = abs(dx) + abs(dy)
    part = min(radius, length / 2) / length if length else 0
    return corner[0] + dx * part, corner[1] + dy * part
