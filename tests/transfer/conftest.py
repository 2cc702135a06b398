"""The two ends of a copy."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.proxy import FaultyProxy
from tests.transfer.support import make_source

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from harel_schema.testing import Server


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """Return a file at head with rows in every table."""
    return make_source(tmp_path / "source.db")


@pytest.fixture
def target_file(tmp_path: Path) -> Path:
    """Return the path of a file that is not there yet."""
    return tmp_path / "target.db"


@pytest.fixture(params=["file", "server"])
def dest(request: pytest.FixtureRequest) -> Path | str:
    """Return an empty destination of either kind."""
    if request.param == "server":
        return request.getfixturevalue("sqld_url")
    return request.getfixturevalue("target_file")


@pytest.fixture
def proxy(sqld: Server) -> Iterator[FaultyProxy]:
    """Return a breaking proxy in front of a fresh server."""
    with FaultyProxy(sqld.url) as faulty:
        yield faulty
