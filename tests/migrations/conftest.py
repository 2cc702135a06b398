"""The databases that migrations run on, and the command ``alembic`` on them."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from alembic import config

from harel_schema.revisions import history
from tests.support.outside import Outside

CHAIN = tuple(each.revision for each in history())
HEAD = CHAIN[-1]
NEXT = f"{int(HEAD) + 1:04}"
ALEMBIC = (sys.executable, "-c", "from alembic.config import main; main()")


class Database(Outside):
    """An empty database."""

    def fingerprint(self) -> list[Any]:
        """The text of the whole schema, and the version row where there is one."""
        found = self.made()
        tables = [name for kind, name, *_ in found if name.endswith("_alembic_version")]
        return [*found, *(self.rows(f"SELECT * FROM {name}") for name in tables)]


@pytest.fixture(params=["file", "sqld"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Database:
    """Return an empty local file, and an empty database on a real sqld."""
    if request.param == "file":
        return Database(str(tmp_path / "state.db"))
    return Database(request.getfixturevalue("sqld_url"))


@pytest.fixture
def file(tmp_path: Path) -> Database:
    """Return a local file that does not exist yet."""
    return Database(str(tmp_path / "state.db"))


@dataclass(frozen=True)
class Alembic:
    """The command ``alembic`` with a configuration file."""

    ini: Path
    capture: pytest.CaptureFixture[str]

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        """Start it in a process of its own."""
        return subprocess.Popen(
            [*ALEMBIC, "-c", str(self.ini), *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, *arguments: str) -> tuple[str, str]:
        """Run it in a process of its own, expect success, return stdout and stderr."""
        process = self.start(*arguments)
        out, err = process.communicate(timeout=60)
        assert process.returncode == 0, err
        return out, err

    def __call__(self, *arguments: str) -> None:
        """Run it in this process, which is faster, and without its logging."""
        config.main(argv=["-c", str(self._quiet()), *arguments])

    def refused(self, *arguments: str) -> str:
        """Run it in this process, expect a refusal, return its one line."""
        self.capture.readouterr()
        with pytest.raises(SystemExit) as caught:
            self(*arguments)
        out, err = self.capture.readouterr()
        assert caught.value.code != 0
        assert err == ""
        assert out.startswith("FAILED: ")
        assert out.count("\n") == 1, out
        return out

    def _quiet(self) -> Path:
        text = self.ini.read_text().partition("[loggers]")[0]
        quiet = Path("quiet.ini")
        quiet.write_text(text.replace("%(here)s", str(self.ini.parent)))
        return quiet


@pytest.fixture
def alembic(root: Path, capfd: pytest.CaptureFixture[str]) -> Alembic:
    """Return the command with the repository's own ``alembic.ini``."""
    return Alembic(root / "alembic.ini", capfd)


@pytest.fixture
def extended(root: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> Any:
    """Return a function that adds the revision NEXT to the chain and gives the command for it."""

    def add(body: str) -> Alembic:
        folder = tmp_path / "extra"
        folder.mkdir()
        header = f'from alembic import op\n\nrevision = "{NEXT}"\ndown_revision = "{HEAD}"\n\n'
        (folder / f"{NEXT}_extra.py").write_text(header + body)
        versions = os.pathsep.join(map(str, (root / "migrations/versions", folder)))
        text = (root / "alembic.ini").read_text().replace("%(here)s", str(root))
        ini = tmp_path / "extended.ini"
        ini.write_text(text.replace("[alembic]\n", f"[alembic]\nversion_locations = {versions}\n"))
        return Alembic(ini, capfd)

    return add
