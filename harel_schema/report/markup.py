"""Elements of HTML and SVG, in which any text is text: the serializer escapes it."""

from __future__ import annotations

from xml.etree.ElementTree import Element, tostring

from harel_schema.names import one_line

__all__ = ["Element", "element", "px", "to_html", "to_xml", "visible"]


def element(tag: str, *children: Element | str | None, **attributes: object) -> Element:
    """Return an element. A name's underscores are dashes, one at its end is for Python's words.

    Texts and attributes must be `visible` where they come from a database. None adds nothing.
    """
    names = {name.rstrip("_").replace("_", "-"): name for name in attributes}
    made = Element(
        tag, {name: str(value) for name, key in names.items() if (value := attributes[key])
              is not None}
    )  # fmt: skip
    last: Element | None = None
    for child in children:
        if isinstance(child, Element):
            made.append(child)
            last = child
        elif child and last is None:
            made.text = (made.text or "") + child
        elif child and last is not None:
            last.tail = (last.tail or "") + child
    return made


def visible(text: str) -> list[Element | str]:
    """Return text to be shown: what cannot be printed is its escape, marked so that it shows."""
    parts: list[Element | str] = []
    plain = ""
    for each in text:
        if each.isprintable():
            plain += each
            continue
        parts += [plain, element("b", one_line(each), class_="escape")]
        plain = ""
    return [*parts, plain]


def px(number: float) -> str:
    """Return a number of pixels as an attribute."""
    return f"{number:g}"


def to_html(root: Element) -> str:
    """Return an element and all in it as HTML."""
    return tostring(root, encoding="unicode", method="html")


def to_xml(root: Element) -> str:
    """Return an element and all in it as XML."""
    return tostring(root, encoding="unicode")
