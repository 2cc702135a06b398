"""A hundred databases made by every road there is, and none of them has drifted."""

from __future__ import annotations

import random
import shutil
import sqlite3
from collections import Counter
from contextlib import closing
from typing import TYPE_CHECKING

import pytest
from harel.engine.store.sqlite import SqliteStore
from harel.engine.transport.sqlite import SqliteTransport

from harel_schema import LibsqlStore, migrate, transfer
from harel_schema.drift import check
from harel_schema.errors import MigrationError
from harel_schema.testing import sqld_server

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

PREFIXES = ["harel", "_a9", "Orders", "x" * 30]
RELEASES = ["0.1.4", "0.2.0", "0.2.2", "0.3.1", "0.6.1", "0.7.1", "0.9.0"]


def migrated(path: Path, prefix: str) -> None:
    """`upgrade` to head."""
    migrate.upgrade(path, prefix=prefix)


def stepped(path: Path, prefix: str) -> None:
    """`upgrade` by one revision after another."""
    for revision in migrate.history():
        migrate.upgrade(path, revision.revision, prefix)


def replayed(path: Path, prefix: str) -> None:
    """The SQL of `upgrade --sql`, run by another program."""
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(migrate.upgrade_sql(prefix=prefix))


def store_made(path: Path, prefix: str) -> None:
    """A store of ours that found an empty database."""
    LibsqlStore(path, prefix=prefix).close()


def store_made_by_sqlite3(path: Path, prefix: str) -> None:
    """The same by the other driver."""
    LibsqlStore(path, prefix=prefix, driver="sqlite3").close()


def adopted_from_harel(path: Path, prefix: str) -> None:
    """Harel 0.9.0's own store and transport, taken over by `upgrade`."""
    opened_by_harel(path, prefix)
    migrate.upgrade(path, prefix=prefix)


def adopted(release: str) -> Callable[[Path, str], None]:
    """Return the road of a file that a release of harel wrote, taken over by `adopt`."""

    def adopted(path: Path, prefix: str) -> None:
        shutil.copyfile(path.parent / f"harel-{release}.db", path)
        migrate.adopt(path, prefix=prefix)

    adopted.__name__ = f"adopted_{release}"
    return adopted


def down_and_up(path: Path, prefix: str) -> None:
    """Down as far as no rows are in the way, and up again."""
    chain = [revision.revision for revision in migrate.history()]
    for revision in reversed(chain[:-1]):
        try:
            migrate.downgrade(path, revision, prefix)
        except MigrationError:
            break
    migrate.upgrade(path, prefix=prefix)


def renamed(path: Path, prefix: str) -> None:
    """Every table, and a column, under another name and back: SQLite rewrites the stored text."""
    with closing(sqlite3.connect(path)) as connection, connection:
        names = connection.execute(
            "SELECT name FROM sqlite_schema WHERE type = 'table' AND substr(name, 1, ?) = ?",
            (len(prefix), prefix),
        ).fetchall()
        for (name,) in names:
            connection.execute(f'ALTER TABLE "{name}" RENAME TO "other one"')
            connection.execute(f'ALTER TABLE "other one" RENAME TO "{name}"')
        connection.execute(f"ALTER TABLE {prefix}_outbox RENAME target_id TO t")
        connection.execute(f"ALTER TABLE {prefix}_outbox RENAME t TO target_id")


def opened_by_harel(path: Path, prefix: str) -> None:
    """Harel 0.9.0 itself, with its default of `create_schema=True`."""
    SqliteStore(str(path), prefix=prefix).close()
    SqliteTransport(str(path), prefix=prefix).close()


def opened_by_us(path: Path, prefix: str) -> None:
    """A store of ours, which leaves the file in WAL mode."""
    LibsqlStore(path, prefix=prefix).close()


def copied(path: Path, prefix: str) -> None:
    """To a real server and back into another file."""
    back = path.with_name("back.db")
    with sqld_server() as server:
        transfer.copy(path, server.url, prefix=prefix)
        assert not len(check(server.url, prefix=prefix, data=True))
        transfer.copy(server.url, back, prefix=prefix)
    back.replace(path)


def dumped(path: Path, prefix: str) -> None:
    """Through sqlite3's dump, into another file."""
    del prefix
    back = path.with_name("back.db")
    with closing(sqlite3.connect(path)) as old, closing(sqlite3.connect(back)) as new:
        new.executescript("\n".join(old.iterdump()))
    back.replace(path)


def rebuilt(path: Path, prefix: str) -> None:
    """VACUUM and ANALYZE, which move pages and add tables of SQLite's own."""
    del prefix
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript("VACUUM; ANALYZE")


MADE = [
    migrated,
    stepped,
    replayed,
    store_made,
    store_made_by_sqlite3,
    adopted_from_harel,
    *map(adopted, RELEASES),
]
ROADS = [down_and_up, renamed, opened_by_harel, opened_by_us, copied, dumped, rebuilt]


def journeys() -> list[tuple[Callable[[Path, str], None], list[Callable[[Path, str], None]], str]]:
    """Return a hundred: how each begins, up to three roads that it takes, under which prefix."""
    found = []
    for number in range(100):
        made = MADE[number % len(MADE)]
        roads = random.Random(number).sample(ROADS, number // len(MADE) % 4)
        # A release of harel that has prefixes wrote its own.
        fixed = made.__name__ in ("adopted_0.7.1", "adopted_0.9.0")
        found.append((made, roads, PREFIXES[0 if fixed else number % len(PREFIXES)]))
    return found


@pytest.mark.parametrize("made", MADE, ids=lambda made: made.__name__)
def test_a_hundred_databases_have_not_drifted(root: Path, tmp_path: Path, made) -> None:
    """However a database came to be, neither its schema nor its rows are reported."""
    for file in (root / "tests" / "legacy").glob("*.db"):
        shutil.copy(file, tmp_path)
    for number, (maker, roads, prefix) in enumerate(journeys()):
        if maker is not made:
            continue
        path = tmp_path / f"{number}.db"
        for road in (made, *roads):
            road(path, prefix)
        drift = check(path, prefix=prefix, data=True)
        way = [road.__name__ for road in (made, *roads)]
        assert (str(drift), drift.others) == ("", ()), way
        assert drift.revision == drift.head


def test_every_road_is_taken_often_and_by_every_prefix() -> None:
    """The hundred are a hundred, and none of the roads is there for show."""
    taken = Counter(road for _, roads, _ in journeys() for road in roads)
    assert len(journeys()) == 100
    assert min(taken[road] for road in ROADS) >= 10
    assert {prefix for *_, prefix in journeys()} == set(PREFIXES)
