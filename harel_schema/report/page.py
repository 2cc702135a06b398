"""One page of HTML that needs nothing else: no script, no font, no request.

A report is a `Page` of sections; each is built of the pieces here, which escape what they show.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Final

from harel_schema.names import one_line
from harel_schema.report.markup import element, to_html, visible

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from harel_schema.report.markup import Element

__all__ = [
    "Page",
    "block",
    "card",
    "code",
    "figure",
    "folded",
    "page",
    "points",
    "section",
    "table",
]

# A page that is opened from anywhere runs nothing and asks nobody for anything.
_POLICY: Final = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
_STYLE: Final = """
:root { color-scheme: light dark; --paper: #fff; --ink: #1f2328; --soft: #59636e; --edge: #d4dae0;
  --fill: #f5f7f9; --bad: #b3261e; --good: #1a7f37; --odd: #7d5200; }
@media (prefers-color-scheme: dark) { :root { --paper: #14181d; --ink: #e2e7ec; --soft: #9aa5b1;
  --edge: #333b44; --fill: #1c2229; --bad: #ff8f85; --good: #57c26f; --odd: #e3b341; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--paper); color: var(--ink);
  font: 16px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", "DejaVu Sans",
  sans-serif; -webkit-text-size-adjust: 100%; overflow-wrap: anywhere; }
main { max-width: 68rem; margin: 0 auto; padding: 2.5rem 1.25rem 3rem; }
header { border-bottom: 1px solid var(--edge); padding-bottom: 1.25rem; }
.kicker { margin: 0; color: var(--soft); font-size: .875rem; }
h1 { margin: .1rem 0 .5rem; font-size: 1.6rem; line-height: 1.25; font-weight: 650; }
h1 span { display: block; }
h2 { margin: 2.5rem 0 .75rem; font-size: 1.15rem; font-weight: 650; }
h3 { margin: 0; font-size: 1rem; font-weight: 600; }
p { margin: .25rem 0; }
.verdict { margin: 0; font-size: 1.15rem; font-weight: 600; }
.good { color: var(--good); } .bad { color: var(--bad); }
.soft { color: var(--soft); } .odd { color: var(--odd); }
code, pre { font: .875em/1.5 ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono",
  monospace; white-space: pre-wrap; }
pre { margin: .25rem 0 0; padding: .625rem .75rem; background: var(--fill); border-radius: 6px;
  font-size: .8125rem; }
pre code { font-size: inherit; }
b.escape { font-weight: 400; color: var(--odd); border-bottom: 1px dotted; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .125rem 1rem; margin: .5rem 0 0; }
dt { color: var(--soft); } dd { margin: 0; min-width: 0; }
.facts { margin-top: 1rem; font-size: .9375rem; }
.card { margin: 0 0 .75rem; padding: .75rem 1rem; border: 1px solid var(--edge);
  border-left: 4px solid var(--soft); border-radius: 6px; break-inside: avoid; }
.bad-edge { border-left-color: var(--bad); } .odd-edge { border-left-color: var(--odd); }
.card .tag { display: inline-block; margin-right: .5rem; }
.card dl, .card .soft { font-size: .9375rem; }
table { width: 100%; border-collapse: collapse; font-size: .9375rem; }
th, td { padding: .375rem .75rem; text-align: left; vertical-align: top;
  border-bottom: 1px solid var(--edge); }
th { color: var(--soft); font-weight: 600; font-size: .8125rem; }
th:first-child, td:first-child { padding-left: 0; }
th:last-child, td:last-child { padding-right: 0; }
.number { text-align: right; font-variant-numeric: tabular-nums; }
figure { margin: 0; padding: .5rem; border: 1px solid var(--edge); border-radius: 6px;
  overflow-x: auto; }
figure svg { display: block; max-width: 100%; height: auto; margin: 0 auto; }
details { margin-top: .75rem; } summary { cursor: pointer; color: var(--soft); }
ul { margin: .25rem 0; padding-left: 1.25rem; }
footer { margin-top: 3rem; padding-top: .75rem; border-top: 1px solid var(--edge);
  color: var(--soft); font-size: .8125rem; }
@media (max-width: 40rem) {
  main { padding: 1.25rem 1rem 2rem; }
  h1 { font-size: 1.3rem; }
  .card dl { grid-template-columns: 1fr; gap: 0; } .card dd { margin-bottom: .25rem; }
  table, tbody, tr, td { display: block; } thead { display: none; }
  tr { padding: .5rem 0; border-bottom: 1px solid var(--edge); }
  td { display: grid; grid-template-columns: 6.5rem 1fr; gap: .5rem; padding: .125rem 0;
    border: 0; }
  td.number { text-align: left; } td:has(span:empty) { display: none; }
  td::before { content: attr(data-label); color: var(--soft); }
}
@media print {
  :root { color-scheme: light; --paper: #fff; --ink: #000; --soft: #444; --edge: #bbb;
    --fill: #f5f5f5; --bad: #b3261e; --good: #1a7f37; --odd: #7d5200; }
  main { max-width: none; padding: 0; } figure { border: 0; padding: 0; overflow: visible; }
  figure svg { width: 100%; height: auto; } h2 { break-after: avoid; }
}
"""


@dataclass(frozen=True, slots=True)
class Page:
    """A report: what made it, of which databases, what came of it, and the rest in sections."""

    command: str
    databases: tuple[str, ...]
    verdict: str
    good: bool
    facts: tuple[tuple[str, str], ...]
    sections: tuple[Element | None, ...]


def page(content: Page, *, version: str) -> str:
    """Return the whole document; `version` is that of this tool."""
    title = f"{content.command}: {', '.join(content.databases)}: {content.verdict}"
    sign, tone = ("✓", "good") if content.good else ("✗", "bad")
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=_POLICY),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="color-scheme", content="light dark"),
        element("meta", name="referrer", content="no-referrer"),
        element("title", one_line(title)),
        element("style", _STYLE),
    )
    header = element(
        "header",
        element("p", content.command, class_="kicker"),
        element("h1", *(element("span", *visible(each)) for each in content.databases)),
        element("p", f"{sign} ", *visible(content.verdict), class_=f"verdict {tone}"),
        _facts([(name, element("span", *visible(text))) for name, text in content.facts], "facts"),
    )
    footer = element("footer", f"harel-schema {version}")
    body = element("body", element("main", header, *content.sections, footer))
    return f"<!DOCTYPE html>\n{to_html(element('html', head, body, lang='en'))}\n"


def section(title: str, *parts: Element | None) -> Element | None:
    """Return parts under a heading; None without any."""
    return (
        element("section", element("h2", title), *parts)
        if any(part is not None for part in parts)
        else None
    )


def card(
    tag: str,
    name: str,
    *parts: Element | None,
    facts: Iterable[tuple[str, Element]] = (),
    tone: str = "bad",
) -> Element:
    """Return a finding: its kind and its place, what else is to be said, its facts.

    `tone` is one of ``bad``, ``odd`` and ``soft``.
    """
    heading = element("h3", element("span", *visible(tag), class_=f"tag {tone}"), code(name))
    told = list(facts)
    facts_ = _facts(told) if told else None
    return element("article", heading, *parts, facts_, class_=f"card {tone}-edge")


def table(
    titles: Sequence[str], rows: Iterable[Sequence[Element | str]], *, numbers: int = 0
) -> Element:
    """Return a table; as many columns as `numbers` says are flush right after the first one.

    On a phone each row is a list of its cells, under the titles.
    """
    classes = [None, *["number"] * numbers, *[None] * len(titles)]
    columns = list(zip(titles, classes, strict=False))
    head = element("tr", *(element("th", title, class_=class_) for title, class_ in columns))
    body = [
        element(
            "tr",
            *(
                element("td", element("span", *_cell(cell)), data_label=title, class_=class_)
                for cell, (title, class_) in zip(row, columns, strict=True)
            ),
        )
        for row in rows
    ]
    return element("table", element("thead", head), element("tbody", *body))


def _cell(cell: Element | str) -> list[Element | str]:
    return visible(cell) if isinstance(cell, str) else [cell]


def code(text: str) -> Element:
    """Return text of a database or a program, in one line."""
    return element("code", *visible(text))


def block(text: str) -> Element:
    """Return text of several lines."""
    parts: list[Element | str] = []
    for line in text.split("\n"):
        parts += [*visible(line), "\n"]
    return element("pre", element("code", *parts[:-1]), tabindex=0)


def folded(title: str, *parts: Element) -> Element:
    """Return parts that show when they are asked for."""
    return element("details", element("summary", title), *parts)


def figure(drawing: Element, name: str) -> Element:
    """Return a picture that scrolls sideways where there is no room for it."""
    return element("figure", drawing, tabindex=0, role="region", aria_label=name)


def points(lines: Iterable[str]) -> Element | None:
    """Return a list; None without any line."""
    told = [element("li", *visible(line)) for line in lines]
    return element("ul", *told) if told else None


def _facts(facts: Iterable[tuple[str, Element]], class_: str | None = None) -> Element:
    pairs = ((element("dt", name), element("dd", value)) for name, value in facts)
    return element("dl", *chain.from_iterable(pairs), class_=class_)
