"""SQLAlchemy's own dialect suite, on our dialect over each kind of database.

The suite needs a pytest of its own: its plugin, its configuration, its `--dburi`. What it must
not expect of us, and why, is written in `suite/requirements.py`. SQLAlchemy's pysqlite dialect runs
beside ours and says what is there to pass.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING
from xml.etree import ElementTree

import pytest

if TYPE_CHECKING:
    from harel_schema.testing import Server

SUITE = Path(__file__).parent / "suite"
UNUSED_PLUGINS = ("cacheprovider", "xdist", "asyncio", "timeout", "hypothesispytest")
STOCK = "sqlite+pysqlite:///stock.db"

# Beyond what pysqlite has not either: REGEXP for libSQL, and on a server also ATTACH.
MOST_EXCLUDED = {"sqlite3": 0, "libsql": 8, "sqld": 400}
FEWEST_PASSED = {"sqlite3": 1550, "libsql": 1550, "sqld": 1150}


class Run:
    """One run of the suite, in a process of its own and in a folder of its own."""

    def __init__(self, url: str, folder: Path) -> None:
        folder.mkdir()
        self.report = folder / "report.xml"
        root = SUITE.parent.parent.parent
        unused = [argument for name in UNUSED_PLUGINS for argument in ("-p", f"no:{name}")]
        self.process = subprocess.Popen(
            [
                *(sys.executable, "-m", "pytest", str(SUITE / "dialect_suite.py")),
                *("-c", str(SUITE / "setup.cfg"), "-p", "plugin", *unused),
                *("--dburi", url, "--junitxml", str(self.report), "-q", "-rN", "--tb=short"),
            ],
            cwd=folder,
            env=os.environ
            | {"PYTHONPATH": f"{root}{os.pathsep}{SUITE}", "PYTHONDONTWRITEBYTECODE": "1"},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def outcomes(self) -> dict[str, str]:
        """Return what became of each test: "passed", or the reason why it was skipped."""
        output, _ = self.process.communicate()
        if self.process.returncode:
            pytest.fail(output[-20_000:], pytrace=False)
        return dict(_outcome(case) for case in ElementTree.parse(self.report).iter("testcase"))


def _outcome(case: ElementTree.Element) -> tuple[str, str]:
    # The suite adds the dialect and its version to the name of a class.
    group = re.sub(r"_sqlite\+.*", "", case.attrib["classname"])
    skipped = case.find("skipped")
    outcome = "passed" if skipped is None else skipped.attrib["message"]
    return f"{group}.{case.attrib['name']}", outcome


def _url(database: str, sqld: Server) -> str:
    if database == "sqld":
        return f"sqlite+harel://{sqld.url.removeprefix('http://')}/"
    return f"sqlite+harel:///ours.db?driver={database}"


@pytest.mark.timeout(300)
@pytest.mark.parametrize("database", ["sqlite3", "libsql", "sqld"])
def test_passes_what_pysqlite_passes(database: str, sqld: Server, tmp_path: Path) -> None:
    """The suite passes; what SQLAlchemy's own dialect passes beyond it is excluded by name."""
    stock = Run(STOCK, tmp_path / "stock")
    ours = Run(_url(database, sqld), tmp_path / "ours")
    expected, found = stock.outcomes(), ours.outcomes()

    missing = {
        name: found.get(name, "not run")
        for name, outcome in expected.items()
        if outcome == "passed" != found.get(name)
    }
    assert [(name, why) for name, why in missing.items() if "excluded: " not in why] == []
    assert len(missing) <= MOST_EXCLUDED[database]
    assert list(found.values()).count("passed") >= FEWEST_PASSED[database]
