"""A page of HTML holds what the text says, and no name can break out of it."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from harel_schema import doctor, report
from harel_schema.doctor import Diagnosis, Figures, Finding
from harel_schema.drift import Difference, Drift, Kind
from harel_schema.names import one_line
from harel_schema.report.comparison import Comparison
from harel_schema.verify import BLIND_SPOT, Cell, RowDifference, TableVerify, VerifyReport
from tests.report.names import odd, reports
from tests.report.test_diagram import DIAGRAM

KNOWN = {
    *("article", "b", "body", "code", "dd", "desc", "details", "dl", "dt", "figure", "footer"),
    *("g", "h1", "h2", "h3", "head", "header", "html", "li", "main", "meta", "p", "path", "pre"),
    *("rect", "section", "span", "style", "summary", "svg", "table", "tbody", "td", "text"),
    *("th", "thead", "title", "tr", "ul"),
}


class Read(HTMLParser):
    """A page as a browser reads it: its elements, their attributes, and its text."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.text = ""
        self._in_style = False
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Take the beginning of an element."""
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}
        self._in_style = tag == "style"

    def handle_data(self, data: str) -> None:
        """Take text."""
        self.text += "" if self._in_style else data

    @property
    def words(self) -> str:
        """The text without its spaces."""
        return "".join(self.text.split())


def squeezed(text: str) -> str:
    """Return text as it is shown, without its spaces."""
    return "".join(one_line(text).split())


@given(reports)
def test_no_name_is_html(found: Comparison) -> None:
    """Whatever a thing is called, a page has our elements only, and all that is to be said."""
    page = Read(report.drift_html(found, DIAGRAM, version="1"))
    assert page.tags <= KNOWN
    assert not [name for name in page.attributes if name.startswith(("on", "src", "href"))]
    assert page.text.replace("\n", "").isprintable()
    for each in found.differences:
        assert squeezed(each.where) in page.words
        if each.counts:
            assert each.kind.summary in page.text
            assert squeezed("nothing" if each.expected is None else each.expected) in page.words
            shown = each.examples if each.rows is not None else ()
            assert all(squeezed(row) in page.words for row in shown)
    assert all(squeezed(note) in page.words for note in found.notes)
    assert found.verdict in page.text


findings = st.builds(
    Finding,
    kind=st.sampled_from(doctor.Kind) | st.sampled_from(Kind),
    severity=st.sampled_from(["error", "warning", "note"]),
    table=st.none() | odd,
    count=st.integers(1, 10**6),
    examples=st.lists(odd, max_size=3).map(tuple),
    detail=odd,
    remedy=st.none() | st.just("restore it") | odd.map(lambda name: f"DROP {name!r};"),
)
diagnoses = st.builds(
    Diagnosis,
    target=odd,
    prefix=st.just("harel"),
    revision=st.none() | odd,
    head=st.just("0004"),
    sound=st.booleans(),
    findings=st.lists(findings, max_size=4).map(tuple),
    tables=st.lists(st.builds(Figures, table=odd, rows=st.just(7), bytes=st.just(1_400))).map(
        tuple
    ),
    bytes=st.integers(0, 10**12),
    free=st.integers(0, 10**6),
    measured_at=st.none() | st.floats(allow_nan=True, allow_infinity=True),
    notes=st.lists(odd, max_size=2).map(tuple),
    seconds=st.just(0.1),
)


@given(diagnoses)
def test_no_finding_is_html(found: Diagnosis) -> None:
    """Whatever a thing is called, a page has our elements only, and every finding with its help."""
    page = Read(report.doctor_html(found, version="1"))
    assert page.tags <= KNOWN
    assert page.text.replace("\n", "").isprintable()
    for each in found.findings:
        for text in (each.table or "", each.detail, each.remedy or "", *each.examples):
            assert squeezed(text) in page.words
        assert each.kind in page.text
    assert all(squeezed(text) in page.words for text in found.notes)
    assert ("✓" if found.sound else "✗") in page.text
    assert page.text.count("1.4 kB") >= len(found.tables)


@given(odd, odd, st.binary(max_size=9))
@example("<script>", "\x00", b"\x00")
def test_no_row_is_html(name: str, value: str, blob: bytes) -> None:
    """Whatever a row holds, a page about it has our elements only."""
    cell = Cell(name, "text", value, "blob", blob)
    rows = (RowDifference(name, "changed", ((name, value),), (cell,)),)
    tables = (TableVerify(name, 1_000, 1_000, changed=1), TableVerify("equal", 7, 7))
    whole = VerifyReport(
        "a.db", "b.db", quick=False, schema=(), tables=tables, rows=rows, seconds=0
    )
    page = Read(report.verify_html(whole, version="1"))
    assert page.tags <= KNOWN
    assert page.text.replace("\n", "").isprintable()
    assert squeezed(f"text {cell.excerpts[0]}") in page.words
    assert squeezed(f"blob {cell.excerpts[1]}") in page.words
    assert squeezed(name) in page.words


def test_a_page_may_ask_for_nothing() -> None:
    """Its policy lets in its own style, and nothing else; it needs no script."""
    page = report.drift_html(Comparison.of(Drift(), "x.db", prefix="harel"), DIAGRAM, version="1.2")
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', page)
    assert policy
    assert policy[1] == "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
    assert "<script" not in page
    assert "harel-schema 1.2" in page


def test_what_mends_a_difference_stands_with_it_and_as_a_whole() -> None:
    """Each difference has its remedy, a command with the database's name; the script is folded."""
    drift = Drift(
        differences=(
            Difference(kind=Kind.VERSION_MISSING, name="v", fix="harel-schema upgrade"),
            Difference(kind=Kind.INDEX_EXTRA, name="i", table="t", fix="DROP INDEX i;"),
        )
    )
    page = Read(
        report.drift_html(Comparison.of(drift, "a b.db", prefix="app"), DIAGRAM, version="1")
    )
    assert "harel-schema upgrade 'a b.db' --prefix app" in page.text
    assert page.text.count("DROP INDEX i;") == 2
    assert "BEGIN IMMEDIATE;" in page.text
    assert "details" in page.tags


@pytest.mark.parametrize("quick", [False, True])
def test_a_quick_comparison_says_what_it_cannot_see(*, quick: bool) -> None:
    """The page of a quick comparison, equal or not, has its blind spot."""
    whole = VerifyReport("a.db", "b.db", quick, (), (TableVerify("t", 1, 1),), (), 0.1)
    page = Read(report.verify_html(whole, version="1"))
    assert ("✓ the same (1 row)" in page.text, BLIND_SPOT in page.text) == (True, quick)


def test_rows_that_are_not_shown_are_counted() -> None:
    """A page says how many differing rows it leaves off."""
    row = RowDifference("t", "missing", (("id", 1),))
    tables = (TableVerify("t", 9, 2, missing=7),)
    whole = VerifyReport("a.db", "b.db", False, (), tables, (row,), 0.1)
    assert "… and 6 rows more (--show)" in Read(report.verify_html(whole, version="1")).text
