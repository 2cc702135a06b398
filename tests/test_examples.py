"""The example's parcels: harel's own store and ours bring them to the same end."""

from __future__ import annotations

import importlib.util
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest
from harel import SqliteStore

from harel_schema import dbapi, migrate, transfer
from harel_schema.harel import LibsqlStore
from harel_schema.target import Target

if TYPE_CHECKING:
    from pathlib import Path
    from types import ModuleType

    from harel_schema.testing import Server

COUNTED = ("executions", "processed_events", "trace", "timers", "outbox", "spawns")


@pytest.fixture(scope="session")
def parcels(root: Path) -> ModuleType:
    """Return ``examples/parcels.py``."""
    spec = importlib.util.spec_from_file_location("parcels", root / "examples" / "parcels.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="session")
def evening(parcels: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the file that the first day left behind."""
    path = tmp_path_factory.mktemp("parcels") / "state.db"
    parcels.first_day(path)
    return path


@pytest.fixture
def state(evening: Path, tmp_path: Path) -> Path:
    """Return a copy of that file, for this test alone."""
    with closing(sqlite3.connect(evening)) as source, closing(sqlite3.connect("state.db")) as copy:
        source.backup(copy)
    return tmp_path / "state.db"


def counts(connection: Any) -> dict[str, int]:
    """Return the number of rows of harel's tables."""
    return {
        table: connection.execute(f"SELECT count(*) FROM harel_{table}").fetchone()[0]
        for table in COUNTED
    }


def test_parcels_come_to_the_same_end_on_a_file(parcels: ModuleType, state: Path) -> None:
    """Our store takes over harel's file in the middle of the work, and leaves what harel would."""
    shadow = state.with_name("shadow.db")
    shadow.write_bytes(state.read_bytes())
    with closing(SqliteStore(shadow)) as store:
        assert parcels.later_days(store) == parcels.ENDS
    with LibsqlStore(str(state)) as store:
        assert parcels.later_days(store) == parcels.ENDS
    with closing(sqlite3.connect(shadow)) as harels, closing(sqlite3.connect(state)) as mine:
        assert counts(mine) == counts(harels)


def test_parcels_go_on_from_a_server(parcels: ModuleType, state: Path, sqld: Server) -> None:
    """Copied to a server in the middle of the work, they come to their end there."""
    migrate.upgrade(Target.parse(str(state)))
    transfer.copy(Target.parse(str(state)), Target.parse(sqld.url))
    with LibsqlStore(sqld.url) as store:
        assert parcels.later_days(store) == parcels.ENDS
    with closing(dbapi.connect(sqld.url)) as connection:
        left = counts(connection)
    assert {left[table] for table in ("outbox", "spawns", "timers")} == {0}
