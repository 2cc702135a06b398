"""A pytest plugin that holds a database to its schema; loaded by itself, idle until it is asked.

``pytest --harel-target TARGET`` adds four tests to a run: `single_head`, `upgrade_from_base`,
`schema_equals_models` and `up_down_up` (`harel_schema.pytest_plugin.checks`). A fixture
`harel_target` in a ``conftest.py`` that returns a target adds them to the tests of its folder.
The database is only read: what runs migrations does so in a scratch file, or, with
``--harel-disposable``, in the database under a prefix of its own.

Nothing but pytest is imported before one of these tests is collected.
"""

from __future__ import annotations

import os
import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

__all__ = ["SchemaTests", "harel_prefix", "harel_scratch", "harel_target"]

_CHECKS = Path(__file__).with_name("checks.py")
_NAME = "harel-schema"
# A folder is a collector of its own since pytest 8.
_FOLDER: type[pytest.Collector] | None = getattr(pytest, "Directory", None)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options; all of them begin with ``--harel-``."""
    group = parser.getgroup(_NAME, "the schema of harel's executions")
    group.addoption(
        "--harel-target",
        metavar="TARGET",
        help="Add four tests of this database: a file, or a server's URL. It is only read. "
        "A server's token comes from TURSO_AUTH_TOKEN or HAREL_LIBSQL_AUTH_TOKEN.",
    )
    group.addoption(
        "--harel-prefix",
        metavar="PREFIX",
        help="The first part of every table's name (default: HAREL_PREFIX, else harel).",
    )
    group.addoption(
        "--harel-disposable",
        action="store_true",
        help="Run migrations in the database itself, under a prefix of their own that is dropped "
        "afterwards, instead of in a scratch file.",
    )


@pytest.fixture(scope="session")
def harel_target(pytestconfig: pytest.Config) -> Any:
    """Return the database to test; define a fixture of this name to choose another one.

    It may return the text of a target, a path, or a `harel_schema.target.Target`.
    """
    target = pytestconfig.getoption("--harel-target")
    if not target:
        pytest.fail("no database is named: give --harel-target TARGET", pytrace=False)
    return target


@pytest.fixture(scope="session")
def harel_prefix(pytestconfig: pytest.Config) -> str:
    """Return the first part of every table's name."""
    chosen = pytestconfig.getoption("--harel-prefix") or os.environ.get("HAREL_PREFIX")
    return chosen or "harel"


@pytest.fixture
def harel_scratch(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Any, str]]:
    """Yield a database and a prefix under which migrations may run without touching anything.

    A file of the test's own; with ``--harel-disposable`` the database that is tested, and a
    prefix that nobody has.
    """
    if not request.config.getoption("--harel-disposable"):
        yield tmp_path_factory.mktemp("harel") / "scratch.db", "harel"
        return
    from harel_schema.pytest_plugin.checks import drop_tables  # noqa: PLC0415 - only when used

    target, prefix = request.getfixturevalue("harel_target"), f"pytest_{uuid.uuid4().hex[:12]}"
    try:
        yield target, prefix
    finally:
        drop_tables(target, prefix)


@pytest.hookimpl(hookwrapper=True)
def pytest_make_collect_report(collector: pytest.Collector) -> Generator[None, Any, None]:
    """Add the tests to the run, or to the folder whose ``conftest.py`` names a database."""
    report: pytest.CollectReport = (yield).get_result()
    if report.passed and _asks(collector):
        parent = collector.nodeid.strip(".")
        name = f"{parent}/{_NAME}" if parent else _NAME
        report.result.append(
            SchemaTests.from_parent(collector, path=_CHECKS, name=_NAME, nodeid=name)
        )


def _asks(collector: pytest.Collector) -> bool:
    if collector.config.getoption("--harel-target"):
        return isinstance(collector, pytest.Session)
    if _FOLDER is None or not isinstance(collector, _FOLDER):
        return False
    # pytest registers a conftest.py under its path.
    conftest = collector.config.pluginmanager.get_plugin(str(collector.path / "conftest.py"))
    return hasattr(conftest, "harel_target")


class SchemaTests(pytest.Module):
    """The four tests, whatever patterns the user's own tests are collected by."""

    def collect(self) -> Iterator[pytest.Function]:
        """Yield the four tests."""
        from harel_schema.pytest_plugin import checks  # noqa: PLC0415 - only when used

        for check in checks.CHECKS:
            yield pytest.Function.from_parent(self, name=check.__name__, callobj=check)
