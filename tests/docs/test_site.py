"""The site builds strictly, from what is here, and its pages fetch nothing from elsewhere."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from tests.docs.test_pages import ROOT

# What a browser loads by itself; a link that somebody follows may lead anywhere.
LOADED = re.compile(r"<(?:script|img|iframe|source)[^>]*\ssrc=\"([^\"]+)|<link[^>]*href=\"([^\"]+)")
# A proxy on a port where nothing listens: whatever asks the network fails.
NO_NETWORK = {f"{scheme}_proxy": "http://127.0.0.1:9" for scheme in ("http", "https", "all")}


def test_the_site_is_whole_and_needs_no_network(tmp_path: Path) -> None:
    """No warning, a page for each source, and no asset of another host."""
    build = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path)]
    environment = {**os.environ, **NO_NETWORK, "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(
        build, cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    sources = {path.relative_to(ROOT / "docs") for path in (ROOT / "docs").rglob("*.md")}
    built = {path.relative_to(tmp_path) for path in tmp_path.rglob("*.html")}
    assert {path.with_suffix(".html") for path in sources} == built - {Path("404.html")}
    for page in tmp_path.rglob("*.html"):
        text = page.read_text("utf-8")
        loaded = {first or second for first, second in LOADED.findall(text)}
        assert not {url for url in loaded if re.match(r"(?:\w+:)?//", url)}, page
