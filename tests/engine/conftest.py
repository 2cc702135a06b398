"""An engine over each kind of database."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pytest

from harel_schema.engine import create_engine

if TYPE_CHECKING:
    from pathlib import Path

    from sqlalchemy import Engine

MakeEngine = Callable[..., "Engine"]


@pytest.fixture(params=["sqlite3", "libsql", "sqld"])
def make_engine(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[MakeEngine]:
    """Make engines over one and the same database; all are disposed of at the end."""
    engines: list[Engine] = []
    remote = request.param == "sqld"
    target = request.getfixturevalue("sqld_url") if remote else tmp_path / "state.db"

    def make(connect_args: dict[str, Any] | None = None, **options: Any) -> Engine:
        arguments = dict(connect_args or {}) | ({} if remote else {"driver": request.param})
        engine = create_engine(target, connect_args=arguments, **options)
        engines.append(engine)
        return engine

    yield make
    for engine in engines:
        engine.dispose()


@pytest.fixture
def engine(make_engine: MakeEngine) -> Engine:
    """Return an engine over an empty database."""
    return make_engine()
