"""A diagram as SVG: one file that needs nothing else, light or dark as its reader is.

Each difference is told in words and by a sign, not by colour alone.
"""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from harel_schema.names import one_line
from harel_schema.report.layout import End, Line, arrange
from harel_schema.report.markup import element, px, to_xml
from harel_schema.report.wires import wires
from harel_schema.report.words import count, shortened, shown, verdict

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from harel_schema.diagram import Box, Diagram, Link, Mark
    from harel_schema.report.layout import Place, Point
    from harel_schema.report.markup import Element

__all__ = ["drawing", "svg"]

_ROW: Final = 20
_HEAD: Final = 30
_PAD: Final = 12
_KEY: Final = 34
# How small a picture may become in a page.
_LEAST: Final = 0.7
# The advance of a monospaced letter, of 12 and of bold 13 pixels; the widest such font has 0.61.
_LETTER: Final = 7.3
_BOLD: Final = 7.9
# Characters that are shown of a name, a type or terms, and a remark; a tooltip has the whole.
_NAME, _DETAIL, _REMARK = 40, 34, 58
_SIGNS: Final[dict[str, str]] = {
    "missing": "\N{MINUS SIGN}",
    "extra": "+",
    "renamed": "→",
    "different": "≠",
    "left over": "!",
}
_STYLE: Final = """
.diagram { --paper: #fff; --ink: #1f2328; --soft: #59636e; --edge: #c4ccd4; --head: #f2f4f7;
  --bad: #b3261e; --bad-fill: #fdeeec; --odd: #7d5200; --odd-fill: #fdf3dc; --wire: #6e7781;
  background: var(--paper); color: var(--ink);
  font: 12px ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace; }
@media (prefers-color-scheme: dark) { .diagram { --paper: #14181d; --ink: #e2e7ec;
  --soft: #9aa5b1; --edge: #3b444d; --head: #1f252c; --bad: #ff8f85; --bad-fill: #3a1d1b;
  --odd: #e3b341; --odd-fill: #33280f; --wire: #8b949e; } }
@media print { .diagram { --paper: #fff; --ink: #1f2328; --soft: #59636e; --edge: #c4ccd4;
  --head: #f2f4f7; --bad: #b3261e; --bad-fill: #fdeeec; --odd: #7d5200; --odd-fill: #fdf3dc;
  --wire: #6e7781; } }
.diagram text { fill: var(--ink); white-space: pre; dominant-baseline: central; }
.diagram .soft { fill: var(--soft); }
.diagram .name { font-size: 13px; font-weight: 600; }
.diagram .key { fill: var(--soft); font-size: 10px; font-weight: 600; letter-spacing: .04em; }
.diagram .paper { fill: var(--paper); }
.diagram .frame { fill: none; stroke: var(--edge); }
.diagram .head { fill: var(--head); }
.diagram .rule { stroke: var(--edge); }
.diagram .wire { fill: none; stroke: var(--wire); stroke-width: 1.25; }
.diagram .loose { stroke-dasharray: 5 3; }
.diagram .bad.frame { stroke: var(--bad); stroke-width: 1.5; }
.diagram .odd.frame { stroke: var(--odd); stroke-width: 1.5; }
.diagram .missing.frame { stroke-dasharray: 6 4; }
.diagram text.bad { fill: var(--bad); }
.diagram text.odd { fill: var(--odd); }
.diagram rect.bad.fill { fill: var(--bad-fill); }
.diagram rect.odd.fill { fill: var(--odd-fill); }
"""


@dataclass(frozen=True, slots=True)
class _Row:
    """A line of text in a box: `right` is flush right. `column` is that whose row it is."""

    left: str
    right: str = ""
    key: str = ""
    mark: Mark | None = None
    remark: bool = False
    column: str | None = None
    whole: str = ""
    ruled: bool = False


def svg(diagram: Diagram) -> str:
    """Return one SVG document."""
    return to_xml(drawing(diagram, heading=True))


def drawing(diagram: Diagram, *, heading: bool) -> Element:
    """Return an element `svg`; with a heading, unless it stands in a page that has one.

    In a page it is as wide as there is room, as long as it can be read.
    """
    rows = [list(_rows(box)) for box in diagram.boxes]
    sizes = [_size(box, lines) for box, lines in zip(diagram.boxes, rows, strict=True)]
    at = {box.name: number for number, box in enumerate(diagram.boxes)}
    plan = arrange(sizes, [_line(link, at, rows) for link in diagram.links])
    result = verdict(diagram.differences, diagram.revision)
    title = f"{one_line(diagram.target)}: {result}"
    below = list(_legend(diagram, others=heading))
    top = 44 if heading else 0
    room = max([len(title) if heading else 0, *(len(text) for _, text in below)])
    width = max(plan.width, room * _LETTER + 4 * _PAD, 320)
    height = top + plan.height + _ROW * len(below) + (_PAD if below else 0)
    body = [element("g", *wires(diagram.links, plan.paths))]
    body += [
        _box(box, lines, place)
        for box, lines, place in zip(diagram.boxes, rows, plan.places, strict=True)
    ]
    shift = (width - plan.width) / 2
    return element(
        "svg",
        element("title", title) if heading else None,
        element("desc", _description(diagram)),
        element("style", _STYLE),
        element("rect", width="100%", height="100%", class_="paper"),
        _text((2 * _PAD, 28), title, "name") if heading else None,
        element("g", *body, transform=f"translate({px(shift)} {top})"),
        *_legend_lines(below, top + plan.height),
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {px(width)} {px(height)}",
        width=px(width),
        height=px(height),
        class_="diagram",
        role="img",
        aria_label=None if heading else f"The schema: {result}",
        style=None if heading else f"min-width: {width * _LEAST:.0f}px",
    )


def _rows(box: Box) -> Iterator[_Row]:
    yield from (_Row(text, mark=box.mark, remark=True, whole=text) for text in box.remarks)
    kind = "column"
    for line in box.lines:
        name, detail = shown(line.name), line.detail
        short = name.removeprefix(box.name) if line.kind == "index" else name
        if short != name and short.startswith("_"):
            name = short
        if line.kind == "trigger":
            name = f"trigger {name}"
        if line.kind == "column" and line.nullable:
            detail = f"{detail} null".strip()
        keys = line.keys[0] if line.keys else ""
        whole = f"{line.kind} {line.name} {line.detail}"
        ruled = line.kind != kind
        kind = line.kind
        column = line.name if line.kind == "column" else None
        yield _Row(name, detail, keys, line.mark, column=column, whole=whole.strip(), ruled=ruled)
        for text in line.remarks:
            yield _Row(text, mark=line.mark, remark=True, whole=text)


def _size(box: Box, rows: Sequence[_Row]) -> tuple[float, float]:
    widths = [_wide(_heading(box), _NAME + 16) * _BOLD / _LETTER]
    for row in rows:
        if row.remark:
            widths.append(_wide(row.left, _REMARK) + 2 + _KEY / _LETTER)
        else:
            widths.append(_wide(row.left, _NAME) + _wide(row.right, _DETAIL) + 2 + _KEY / _LETTER)
    return max(200, max(widths) * _LETTER + 2 * _PAD), _HEAD + _ROW * len(rows) + 6


def _heading(box: Box) -> str:
    return "  ".join([_name(box), *_aside(box)])


def _name(box: Box) -> str:
    return shortened(shown(one_line(box.name)), _NAME)


def _aside(box: Box) -> list[str]:
    """What stands beside the name: what the box is, unless it is a table, and one of harel's."""
    return [*([box.kind] if box.kind != "table" else []), *([] if box.own else ["other"])]


def _box(box: Box, rows: Sequence[_Row], place: Place) -> Element:
    tone = _tone(box.mark or next((line.mark for line in box.lines if line.mark), None))
    frame = f"frame {tone} {'missing' if box.mark == 'missing' else ''}".strip()
    parts: list[Element] = [
        element("rect", width=px(place.width), height=px(place.height), rx=6, class_="paper"),
        element(
            "path",
            d=f"M0 {_HEAD}V6a6 6 0 0 1 6-6H{px(place.width - 6)}a6 6 0 0 1 6 6V{_HEAD}z",
            class_="head",
        ),
    ]
    parts.append(_text((_PAD, _HEAD / 2), _name(box), "name", whole=box.name))
    if aside := "  ".join(_aside(box)):
        parts.append(_text((place.width - _PAD, _HEAD / 2), aside, "soft", right=True))
    if rows:
        parts.append(_rule(_HEAD, place.width))
    for number, row in enumerate(rows):
        y = _HEAD + _ROW * number + 3
        if row.ruled:
            parts.append(_rule(y, place.width))
        parts += _row(row, y, place.width)
    parts.append(
        element("rect", width=px(place.width), height=px(place.height), rx=6, class_=frame)
    )
    return element("g", *parts, transform=f"translate({px(place.x)} {px(place.y)})")


def _row(row: _Row, y: float, width: float) -> Iterator[Element]:
    tone = _tone(row.mark)
    middle = y + _ROW / 2
    if row.mark:
        fill = f"{tone} fill"
        yield element("rect", x=1, y=px(y), width=px(width - 2), height=_ROW, class_=fill)
    if row.mark and not row.remark:
        yield _text((6, middle), _SIGNS[row.mark], f"{tone} sign")
    if row.key:
        yield _text((_PAD + 8, middle), row.key, "key")
    room = _REMARK if row.remark else _NAME
    yield _text((_PAD + _KEY, middle), shortened(one_line(row.left), room), tone, whole=row.whole)
    if row.right:
        text = shortened(one_line(row.right), _DETAIL)
        yield _text((width - _PAD, middle), text, "soft", right=True, whole=row.whole)


def _tone(mark: str | None) -> str:
    if mark is None:
        return ""
    return "odd" if mark in ("extra", "left over", "renamed") else "bad"


def _rule(y: float, width: float) -> Element:
    return element("path", d=f"M0 {px(y)}H{px(width)}", class_="rule")


def _text(at: Point, text: str, class_: str, *, right: bool = False, whole: str = "") -> Element:
    whole = one_line(whole)
    # Letters that the font lacks come from another one, of any width.
    squeezed = None if text.isascii() else px(_wide(text) * _LETTER)
    return element(
        "text",
        element("title", whole) if whole and text not in whole.split(" ") else None,
        text,
        x=px(at[0]),
        y=px(at[1]),
        class_=class_ or None,
        text_anchor="end" if right else None,
        textLength=squeezed,
        lengthAdjust="spacingAndGlyphs" if squeezed else None,
    )


def _wide(text: str, room: int | None = None) -> int:
    """Return how many letters wide a text is: those of East Asia are two, marks on one are none."""
    line = one_line(text)
    line = shortened(line, room) if room else line
    wide = sum(2 if unicodedata.east_asian_width(each) in "WF" else 1 for each in line)
    return wide - sum(1 for each in line if unicodedata.combining(each))


# Lines meet a box at places of their own, by side and role, so that none lies on another.
_CHILD, _PARENT = -4, 4


def _line(link: Link, at: dict[str, int], rows: Sequence[Sequence[_Row]]) -> Line:
    child, parent = at[link.table], at[link.parent]
    return Line(
        End(child, _down(rows[child], link.columns[0]) + _CHILD),
        End(parent, _down(rows[parent], link.parent_columns[0]) + _PARENT),
    )


def _down(rows: Sequence[_Row], column: str) -> float:
    places = [
        n for n, row in enumerate(rows) if row.column and row.column.lower() == column.lower()
    ]
    return _HEAD + 3 + _ROW * places[0] + _ROW / 2 if places else _HEAD / 2


def _legend(diagram: Diagram, *, others: bool) -> Iterator[tuple[str, str]]:
    if any(link.declared for link in diagram.links):
        yield "wire", "a foreign key"
    if any(not link.declared for link in diagram.links):
        yield "wire loose", "kept by the store, without a foreign key"
    if diagram.others and others:
        yield "", f"{count(len(diagram.others), 'table')} of others not shown (--all-tables)"


def _legend_lines(lines: Sequence[tuple[str, str]], y: float) -> Iterator[Element]:
    for number, (class_, text) in enumerate(lines):
        middle = y + _ROW * number + _ROW / 2
        if class_:
            yield element("path", d=f"M{2 * _PAD} {px(middle)}h36", class_=class_)
        yield _text((2 * _PAD + (48 if class_ else 0), middle), text, "soft")


def _description(diagram: Diagram) -> str:
    """Say in words what is drawn, for who cannot see it."""
    told = [count(len(diagram.boxes), "table")]
    for box in diagram.boxes:
        told += [f"{box.name}: {remark}" for remark in box.remarks]
        told += [f"{box.name}.{each.name}: {said}" for each in box.lines for said in each.remarks]
    return one_line("; ".join(told))
