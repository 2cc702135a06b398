"""A store to move."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.transfer.support import make_source

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """Return a file at head with rows in every table."""
    return make_source(tmp_path / "source.db")


@pytest.fixture(params=["file", "server"])
def dest(request: pytest.FixtureRequest, tmp_path: Path) -> Path | str:
    """Return an empty destination of either kind."""
    if request.param == "server":
        return request.getfixturevalue("sqld_url")
    return tmp_path / "dest.db"
