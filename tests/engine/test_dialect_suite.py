"""SQLAlchemy's own dialect suite, on our dialect over each kind of database.

The suite needs a pytest of its own: its plugin, its configuration, its `--dburi`. What it must
not expect of us, and why, is written in `suite/requirements.py`. SQLAlchemy's pysqlite dialect runs
beside ours and says what is there to pass.
"""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from harel_schema.testing import Server

SUITE = Path(__file__).parent / "suite"
ROOT = SUITE.parent.parent.parent
UNUSED_PLUGINS = ("cacheprovider", "xdist", "asyncio", "timeout", "hypothesispytest")
STOCK = "sqlite+pysqlite:///stock.db"
OURS = {
    "sqlite3": "sqlite+harel:///ours.db?driver=sqlite3",
    "libsql": "sqlite+harel:///ours.db?driver=libsql",
    "sqld": "sqlite+harel://{netloc}/",
}
# What pysqlite passes and we do not: REGEXP for libSQL, and on a server also ATTACH.
MOST_EXCLUDED = {"sqlite3": 0, "libsql": 8, "sqld": 360}
EXCUSES = ("excluded: ", "no non-default isolation level available")
NEEDS_ATTACH = "SameNamedSchemaTableTest"  # as a whole, so that it is not even collected


@contextlib.contextmanager
def running(url: str, folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Run the suite in a process of its own, in a new folder, while the block lasts."""
    folder.mkdir()
    unused = [argument for name in UNUSED_PLUGINS for argument in ("-p", f"no:{name}")]
    with (folder / "output").open("wb") as output:
        process = subprocess.Popen(
            [
                *(sys.executable, "-m", "pytest", str(SUITE / "dialect_suite.py")),
                *("-c", str(SUITE / "setup.cfg"), "-p", "plugin", *unused),
                *("--dburi", url, "--junitxml=report.xml", "-q", "-rN", "--tb=short"),
            ],
            cwd=folder,
            env=os.environ
            | {"PYTHONPATH": f"{ROOT}{os.pathsep}{SUITE}", "PYTHONDONTWRITEBYTECODE": "1"},
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def outcomes(process: subprocess.Popen[bytes], folder: Path) -> dict[str, str]:
    """Wait for a run; return what became of each test: "passed", or why it was skipped."""
    if process.wait():
        pytest.fail((folder / "output").read_text()[-20_000:], pytrace=False)
    cases = ET.parse(folder / "report.xml").iter("testcase")
    return dict(_outcome(case) for case in cases)


def _outcome(case: ET.Element) -> tuple[str, str]:
    # The suite adds the dialect and its version to the name of a class.
    group = re.sub(r"_sqlite\+.*", "", case.attrib["classname"])
    skipped = case.find("skipped")
    outcome = "passed" if skipped is None else skipped.attrib["message"]
    return f"{group}.{case.attrib['name']}", outcome


def _is_excused(name: str, why: str) -> bool:
    return NEEDS_ATTACH in name if why == "not run" else any(text in why for text in EXCUSES)


@pytest.mark.timeout(400)
def test_passes_what_pysqlite_passes(sqld: Server, tmp_path: Path) -> None:
    """The suite passes; what SQLAlchemy's own dialect passes beyond it is excluded by name."""
    netloc = sqld.url.removeprefix("http://")
    urls = {"stock": STOCK} | {name: url.format(netloc=netloc) for name, url in OURS.items()}
    with contextlib.ExitStack() as stack:
        runs = {
            name: stack.enter_context(running(url, tmp_path / name)) for name, url in urls.items()
        }
        found = {name: outcomes(process, tmp_path / name) for name, process in runs.items()}

    stock = found.pop("stock")
    assert list(stock.values()).count("passed") > 1200
    for database, ours in found.items():
        missing = {
            name: ours.get(name, "not run")
            for name, outcome in stock.items()
            if outcome == "passed" != ours.get(name)
        }
        unexcused = {name: why for name, why in missing.items() if not _is_excused(name, why)}
        assert (database, unexcused) == (database, {})
        assert (database, len(missing)) <= (database, MOST_EXCLUDED[database])
