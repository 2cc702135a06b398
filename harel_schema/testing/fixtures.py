"""Pytest fixtures: ``pytest_plugins = ["harel_schema.testing.fixtures"]``.

A server of sqld is up within some 20 ms, so each test gets a fresh one: no test can see
another's tables, and a test may stop, pause or kill its server.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from harel_schema.devserver import Server

if TYPE_CHECKING:
    from collections.abc import Generator

__all__ = ["pytest_runtest_makereport", "sqld", "sqld_url"]


@pytest.fixture
def sqld(tmp_path_factory: pytest.TempPathFactory) -> Generator[Server]:
    """Yield a running sqld with one empty database, of this test alone."""
    with Server(tmp_path_factory.mktemp("sqld")) as server:
        yield server


@pytest.fixture
def sqld_url(sqld: Server) -> str:
    """Return the address of a fresh, empty database on a real sqld."""
    return sqld.url


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Show the end of the server's log beside the failure of a test that used `sqld`."""
    report = yield
    server = getattr(item, "funcargs", {}).get("sqld")
    if report.failed and isinstance(server, Server):
        report.sections.append((f"sqld log {server.log}", server.log_tail()))
    return report
