"""What every test stands on: a real sqld, and a working directory and home of its own."""

from __future__ import annotations

import os
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import hypothesis
import pytest
from hypothesis import configuration

from harel_schema.devserver import BINARY_VARIABLE, find_sqld
from tests.support.cloud import CloudProxy

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from harel_schema.testing import Server

pytest_plugins = ["harel_schema.testing.fixtures", "pytester"]

ROOT = Path(__file__).resolve().parent.parent
# The environment of whoever runs the tests, before they get one of their own.
OUTSIDE = dict(os.environ)
# An editor or a checkout may touch these while the tests run.
SOURCES = {".md", ".py", ".stm", ".toml"}
BEFORE = pytest.StashKey[set[Path]]()
STRAYS = pytest.StashKey[list[Path]]()

hypothesis.settings.register_profile("suite", database=None, deadline=None)
hypothesis.settings.load_profile("suite")


@pytest.fixture(scope="session")
def root() -> Path:
    """Return the root of the checkout; nothing may be written in it."""
    return ROOT


@pytest.fixture(scope="session")
def outside() -> dict[str, str]:
    """Return the caller's environment, for pip: its configuration and its cache."""
    return OUTSIDE.copy()


@pytest.fixture(scope="session", autouse=True)
def _session_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Give the run a home and a temporary folder of its own, and an environment without ours."""
    # Found before HOME changes, so that all workers share the one unpacked binary.
    binary = find_sqld()
    home = tmp_path_factory.mktemp("home")
    configuration.set_hypothesis_home_dir(home)
    with pytest.MonkeyPatch.context() as patch:
        for name in os.environ:
            if name.startswith(("HAREL_", "TURSO_")):
                patch.delenv(name)
        for name in ("HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "TMPDIR"):
            patch.setenv(name, str(home))
        patch.setattr(tempfile, "tempdir", str(home))
        patch.setenv(BINARY_VARIABLE, str(binary))
        # For processes that tests start from a folder of their own.
        patch.setenv("PYTHONPATH", str(ROOT), prepend=os.pathsep)
        yield


@pytest.fixture(autouse=True)
def _own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run each test in its `tmp_path`."""
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def cloud(sqld: Server) -> Iterator[CloudProxy]:
    """Yield a fresh server that speaks the newer sync protocol."""
    with CloudProxy(sqld) as proxy:
        yield proxy


@pytest.fixture(params=["older", "newer"])
def sync_url(request: pytest.FixtureRequest) -> Iterator[Callable[[Server], str]]:
    """Yield what tells the URL to sync with a server by, for each of the two protocols."""
    with ExitStack() as stack:
        if request.param == "older":
            yield lambda server: server.url
        else:
            yield lambda server: stack.enter_context(CloudProxy(server)).url


def files_in(root: Path) -> set[Path]:
    """Return the files of a checkout, without sources, caches and what starts with a dot."""
    return {
        path
        for path in root.rglob("*")
        if path.suffix not in SOURCES
        and not any(
            part.startswith(".") or part == "__pycache__" or part.endswith(".egg-info")
            for part in path.relative_to(root).parts
        )
    }


def pytest_sessionstart(session: pytest.Session) -> None:
    """Remember the files of the checkout."""
    session.config.stash[BEFORE] = files_in(ROOT)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Fail the run when it left a file in the checkout."""
    strays = files_in(ROOT) - session.config.stash[BEFORE]
    session.config.stash[STRAYS] = sorted(strays)
    if strays:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    """Name the files that were left."""
    if strays := config.stash[STRAYS]:
        terminalreporter.section("files written outside tmp_path", red=True)
        for path in strays:
            terminalreporter.line(str(path))
