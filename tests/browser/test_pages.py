"""The pages and pictures in a real Chromium: light and dark, on a desk, on a phone, on paper.

Each page is read as its user would open it, from a file.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

import pytest

from harel_schema import doctor, report
from harel_schema.doctor import Diagnosis, Figures, Finding
from harel_schema.drift import Difference, Drift, Kind
from harel_schema.report.comparison import Comparison
from harel_schema.verify import Cell, RowDifference, TableVerify, VerifyReport
from tests.report.test_diagram import DIAGRAM
from tests.support.browser import browser

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.support.browser import Browser

pytestmark = pytest.mark.browser

HOSTILE = "<script>alert(1)</script><img src=//x.invalid onerror=alert(2)>\x1b\u202e" + "w" * 90
DIFFERENCES = tuple(
    Difference(
        kind=kind,
        name=HOSTILE,
        table=table,
        expected=HOSTILE,
        found=None,
        fix=f'DROP INDEX "{HOSTILE}";',
        counts=counts,
        rows=rows,
        examples=(f"id='{HOSTILE}'",) if rows else (),
    )
    for kind, table, counts, rows in (
        (Kind.INDEX_MISSING, "people", True, None),
        (Kind.DATA_JSON, HOSTILE, True, 7),
        (Kind.VERSION_BEHIND, None, False, None),
    )
)
VERIFIED = VerifyReport(
    a="state.db",
    b="https://db.example/" + "n" * 60,
    quick=True,
    schema=DIFFERENCES[:1],
    tables=(
        TableVerify("harel_timers", 1_000_000, 1_000_000),
        TableVerify(HOSTILE, 1_000, 999, changed=1, missing=1, aggregates=("bytes of data",)),
    ),
    rows=(
        RowDifference("harel_timers", "missing", (("id", HOSTILE),)),
        RowDifference(
            HOSTILE, "changed", (("id", 7),), (Cell(HOSTILE, "text", HOSTILE, "blob", b"\x00"),)
        ),
    ),
    seconds=1.25,
)

DIAGNOSIS = Diagnosis(
    target=HOSTILE,
    prefix="harel",
    revision="0003",
    head="0004",
    sound=False,
    findings=tuple(
        Finding(
            kind=kind,
            severity=kind.severity,
            table=HOSTILE,
            count=1_234_567,
            examples=(HOSTILE, "id='e1'"),
            detail=kind.summary,
            remedy=f"DELETE FROM '{HOSTILE}';",
        )
        for kind in doctor.Kind
    ),
    tables=(
        Figures(table="harel_executions", rows=1_234_567, bytes=1_234_567_890, finished=1_000_000),
        Figures(table=HOSTILE, rows=0, bytes=0),
    ),
    bytes=2_000_000_000,
    free=4_096,
    measured_at=1_755_900_000.25,
    notes=(HOSTILE,),
    seconds=3,
)


def compared(*differences: Difference) -> Comparison:
    """Return a report of a database with an odd name."""
    drift = Drift(differences=differences, others=(HOSTILE,), revision="0003", head="0004")
    return Comparison.of(drift, HOSTILE, prefix="harel")


PAGES = {
    "check.html": report.drift_html(compared(*DIFFERENCES), DIAGRAM, version="1"),
    "clean.html": report.drift_html(compared(), DIAGRAM, version="1"),
    "doctor.html": report.doctor_html(DIAGNOSIS, version="1"),
    "verify.html": report.verify_html(VERIFIED, version="1"),
    "diagram.svg": report.svg(DIAGRAM),
}
# From 0, black, to 765, white.
BRIGHTNESS = """(() => {
  const shown = document.querySelector('main') ? document.body : document.documentElement;
  const [r, g, b] = getComputedStyle(shown).backgroundColor.match(/\\d+/g).map(Number);
  return r + g + b;
})()"""
# The texts of a picture that stick out of their box, or lie on another one of their row.
ASTRAY = """[...document.querySelectorAll('.frame')].flatMap(frame => {
  const edge = frame.getBoundingClientRect();
  const texts = [...frame.parentElement.querySelectorAll('text')];
  const at = texts.map(text => text.getBoundingClientRect());
  const middle = each => (each.top + each.bottom) / 2;
  const meet = (a, b) => Math.abs(middle(a) - middle(b)) < 8
    && Math.min(a.right, b.right) - Math.max(a.left, b.left) > 1;
  return texts.filter((_, n) => at[n].left < edge.left || at[n].right > edge.right
    || at.some((other, m) => m > n && meet(at[n], other))).map(text => text.textContent);
})"""


@pytest.fixture(scope="module")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """Start a browser for the tests of this file."""
    with browser(tmp_path_factory.mktemp("chromium")) as running:
        yield running


@pytest.fixture(params=PAGES)
def opened(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Write a page to a file, and return its address."""
    path = tmp_path / request.param
    path.write_text(PAGES[request.param], encoding="utf-8")
    return path.as_uri()


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [1280, 360])
def test_a_page_is_shown_and_asks_for_nothing(
    chromium: Browser, opened: str, width: int, *, dark: bool
) -> None:
    """Nothing runs, is requested or complained of, and the colours are its reader's."""
    with chromium.page(opened, width=width, dark=dark) as page:
        assert page.requests() == [opened]
        assert page.complaints() == []
        assert page.evaluate("document.querySelectorAll('script, img, link, iframe').length") == 0
        assert page.evaluate("document.documentElement.textContent").count("<script>alert(1)") > 0
        assert (page.evaluate(BRIGHTNESS) < 3 * 64) is dark
        width_, height = struct.unpack(">II", page.screenshot()[16:24])
        assert width_ >= width - 20
        assert height > 300


@pytest.mark.parametrize("name", [name for name in PAGES if name.endswith(".html")])
def test_a_phone_need_not_scroll_sideways(chromium: Browser, tmp_path: Path, name: str) -> None:
    """At 360 pixels every page fits, whatever the names in it; a picture scrolls in its frame."""
    (tmp_path / name).write_text(PAGES[name], encoding="utf-8")
    with chromium.page((tmp_path / name).as_uri(), width=360) as page:
        assert page.evaluate("document.documentElement.scrollWidth") == 360
        wider = "[...document.body.querySelectorAll('*')].filter(e => !e.closest('figure')"
        wider += " && e.getBoundingClientRect().right > 360).map(e => e.outerHTML)"
        assert page.evaluate(wider) == []


def test_a_page_can_be_printed(chromium: Browser, tmp_path: Path) -> None:
    """Paper is white, and has the whole picture."""
    (tmp_path / "x.html").write_text(PAGES["check.html"], encoding="utf-8")
    with chromium.page((tmp_path / "x.html").as_uri(), dark=True, media="print") as page:
        assert page.evaluate(BRIGHTNESS) == 3 * 255
        assert page.evaluate(
            "document.querySelector('figure').scrollWidth"
            " <= document.querySelector('figure').clientWidth"
        )


def test_texts_stay_in_their_boxes(chromium: Browser, tmp_path: Path) -> None:
    """The letters of a picture are as wide as its layout takes them to be, whatever the script."""
    (tmp_path / "x.svg").write_text(PAGES["diagram.svg"], encoding="utf-8")
    with chromium.page((tmp_path / "x.svg").as_uri()) as page:
        assert page.evaluate("document.querySelectorAll('.frame').length") == len(DIAGRAM.boxes)
        assert page.evaluate(ASTRAY) == []
