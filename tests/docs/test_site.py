"""The site builds strictly, from what is here, and its pages fetch nothing from elsewhere."""

from __future__ import annotations

import itertools
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.test_pages import ROOT
from tests.support.browser import browser

# What a browser loads by itself; a link that somebody follows may lead anywhere.
LOADED = re.compile(r"<(?:script|img|iframe|source)[^>]*\ssrc=\"([^\"]+)|<link[^>]*href=\"([^\"]+)")
# A proxy on a port where nothing listens: whatever asks the network fails.
NO_NETWORK = {f"{scheme}_proxy": "http://127.0.0.1:9" for scheme in ("http", "https", "all")}
OPENED = ("index.html", "pictures.html", "reference/cli.html", "reference/errors.html")
BACKGROUND = "getComputedStyle(document.body).backgroundColor.match(/\\d+/g).map(Number)"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the site: a warning is an error."""
    folder = tmp_path_factory.mktemp("site")
    build = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
    environment = {**os.environ, **NO_NETWORK, "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(
        build, cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return folder


def test_the_site_is_whole_and_needs_no_network(site: Path) -> None:
    """A page for each source, and no asset of another host."""
    sources = {path.relative_to(ROOT / "docs") for path in (ROOT / "docs").rglob("*.md")}
    built = {path.relative_to(site) for path in site.rglob("*.html")}
    assert {path.with_suffix(".html") for path in sources} == built - {Path("404.html")}
    for page in site.rglob("*.html"):
        text = page.read_text("utf-8")
        loaded = {first or second for first, second in LOADED.findall(text)}
        assert not {url for url in loaded if re.match(r"(?:\w+:)?//", url)}, page


@pytest.mark.browser
def test_the_site_opens_from_the_disk(site: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    """On a desk and a phone: its own files only, no error, its reader's colours, no scrolling."""
    for dark in (False, True):
        # A browser each, because the site remembers what its reader chose.
        with browser(tmp_path_factory.mktemp("chromium")) as chromium:
            for name, width in itertools.product(OPENED, (1280, 360)):
                with chromium.page((site / name).as_uri(), width=width, dark=dark) as page:
                    asked = {url for url in page.requests() if not url.startswith("data:")}
                    assert {url for url in asked if not url.startswith(site.as_uri())} == set()
                    assert page.complaints() == []
                    assert page.evaluate("document.documentElement.scrollWidth") <= width
                    assert (sum(page.evaluate(BACKGROUND)) < 3 * 64) is dark
