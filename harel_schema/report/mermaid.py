"""A diagram as Mermaid's erDiagram, which GitHub, GitLab and many editors draw.

https://mermaid.js.org/syntax/entityRelationshipDiagram.html
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from harel_schema.names import one_line
from harel_schema.report.words import shortened, shown, verdict

if TYPE_CHECKING:
    from collections.abc import Iterator

    from harel_schema.diagram import Box, Diagram, Line, Link

__all__ = ["mermaid"]

# A name that stands as it is: the grammar takes more, but not every version takes the same.
_PLAIN: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_ODD: Final = re.compile(r"[^A-Za-z0-9_]+")
# Words that the lexer, which knows no case, takes for its own at the beginning of an entity or
# of an attribute.
_RESERVED: Final = frozenset(
    (
        *("accdescr", "acctitle", "class", "classdef", "direction", "end", "erdiagram", "fk"),
        *("many", "one", "only", "optionally", "pk", "style", "subgraph", "title", "to", "u"),
        *("uk", "zero"),
    )
)
# What cannot stand in a text as it is, and becomes an entity code: it would end the text, begin a
# comment or a directive (%), a generic (~), HTML (<, &) or another code (#), or make one that
# Mermaid takes for a style (`style…:x#…;`). Underscores around a word are Markdown's emphasis.
_UNSAFE: Final = re.compile(r"[^\w ().,:=?!+/'·…-]|:(?! )|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])")
_PLAIN_YAML: Final = re.compile(r"[A-Za-z0-9 ().,:=?!+/_-]")
# `direction LR` is a statement wherever it stands in a line.
_DIRECTION: Final = re.compile(r"d(?=irection\b)", re.IGNORECASE)
# Characters of a comment: a box is as wide as its longest one.
_ROOM: Final = 80
_COLORS: Final = {
    "missing": "stroke:#cf222e,stroke-width:2px",
    "extra": "stroke:#9a6700,stroke-width:2px",
    "renamed": "stroke:#0969da,stroke-width:2px",
    "different": "stroke:#cf222e,stroke-width:2px",
    "left over": "stroke:#9a6700,stroke-width:2px",
}


def mermaid(diagram: Diagram) -> str:
    """Return an erDiagram. Differences are marked in words; boxes that have any, by colour too."""
    names = _identifiers(diagram)
    boxes = [line for box in diagram.boxes for line in _box(box, names[box.name])]
    links = [f"    {_link(link, names)}" for link in diagram.links]
    title = _yaml(f"{diagram.target}: {verdict(diagram.differences, diagram.revision)}")
    lines = ["---", f"title: {title}", "---", "erDiagram", *boxes, *links]
    return "\n".join([*lines, *_classes(diagram, names)])


def _identifiers(diagram: Diagram) -> dict[str, str]:
    """Return an identifier for each box: its name where that can be one."""
    taken = {box.name.lower() for box in diagram.boxes}
    names: dict[str, str] = {}
    for number, box in enumerate(diagram.boxes, 1):
        name = box.name
        if not _PLAIN.fullmatch(name) or name.lower() in _RESERVED:
            name = f"table{number}"
            while name in taken:
                name += "_"
        names[box.name] = name
    return names


def _box(box: Box, identifier: str) -> Iterator[str]:
    told = [shown(box.name), *([box.kind] if box.kind != "table" else []), *box.remarks]
    text = _text(" · ".join(told))
    label = "" if text == identifier else f'["{text}"]'
    yield f"    {identifier}{label} {{"
    for line in box.lines:
        yield f"        {_line(line, box)}"
    yield "    }"


def _line(line: Line, box: Box) -> str:
    column = line.kind == "column"
    name = _word(line.name)
    type_ = _word(line.detail or "any") if column else line.kind
    told = list(line.remarks)
    if name != _text(line.name):
        told.append(f"named {shown(line.name)}")
    if line.detail and (type_ != line.detail if column else True):
        told.append(line.detail)
    if line.nullable and box.kind == "table":
        told.append("null")
    comment = f' "{_text(shown(shortened(" · ".join(told), _ROOM)))}"' if told else ""
    keys = f" {', '.join(line.keys)}" if line.keys else ""
    return f"{type_} {name}{keys}{comment}"


def _link(link: Link, names: dict[str, str]) -> str:
    child = "}o" if link.many else "|o"
    parent = "o{" if link.parent_many else "o|" if link.optional else "||"
    style = "--" if link.declared else ".."
    label = _text(shown(", ".join(link.columns)))
    return f'{names[link.table]} {child}{style}{parent} {names[link.parent]} : "{label}"'


def _classes(diagram: Diagram, names: dict[str, str]) -> Iterator[str]:
    marked: dict[str, list[str]] = {}
    for box in diagram.boxes:
        mark = box.mark or ("different" if any(line.mark for line in box.lines) else None)
        if mark:
            marked.setdefault(mark, []).append(names[box.name])
    for kind, boxes in marked.items():
        name = kind.replace(" ", "")
        yield f"    classDef {name} {_COLORS[kind]}"
        yield f"    class {','.join(boxes)} {name}"


def _word(text: str) -> str:
    """Return text as the name or the type of an attribute, for which there are no quotes."""
    word = text if _PLAIN.fullmatch(text) else _ODD.sub("_", text).strip("_")
    # Nothing but underscores is drawn as nothing, at which Mermaid stumbles.
    word = word if word.strip("_") else "unnamed"
    return f"_{word}" if word[0].isdigit() or word.lower() in _RESERVED else word


def _text(text: str) -> str:
    """Return text as it stands between double quotes."""
    return _DIRECTION.sub(_coded, _UNSAFE.sub(_coded, one_line(text)))


def _coded(found: re.Match[str]) -> str:
    return f"#{ord(found[0])};"


def _yaml(text: str) -> str:
    """Return text as YAML in double quotes, with nothing in it that Mermaid looks for first."""
    codes = (
        each if _PLAIN_YAML.fullmatch(each) else f"\\U{ord(each):08x}" for each in one_line(text)
    )
    return f'"{"".join(codes)}"'
