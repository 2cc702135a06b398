"""Databases that real releases of harel wrote, on a local file and on a real sqld."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from harel_schema import dbapi
from tests.support.outside import Outside

FILES = Path(__file__).parent.parent / "legacy"
# Without a prefix, and with one.
EARLIER = ("0.1.4", "0.2.0", "0.2.2", "0.3.1", "0.6.1")
LATER = ("0.7.1", "0.9.0")
STORE = ("executions", "outbox", "processed_events", "spawns", "timers", "trace")


class Database(Outside):
    """A database that a release wrote."""

    def everything(self) -> dict[str, list[Any]]:
        """Return every row of every table with its rowid, and the sequences, by table."""
        names = sorted(table.name for table in self.schema().tables)
        found = {name: self.rows(f'SELECT rowid, * FROM "{name}" ORDER BY rowid') for name in names}
        if "sqlite_sequence" in found:
            found["sqlite_sequence"] = self.rows("SELECT * FROM sqlite_sequence ORDER BY name")
        return found

    def fingerprint(self) -> list[Any]:
        """Return the text of the whole schema and all rows."""
        return [*self.made(), self.everything()]


def original(release: str) -> Path:
    """Return the file that a release wrote; it must not be opened where it is."""
    return FILES / f"harel-{release}.db"


def renamed(name: str, prefix: str = "harel") -> str:
    """Return the name that harel gives a table since 0.7."""
    part = "" if name in STORE else "transport_"
    return f"{prefix}_{part}{name}"


def load(file: Path, url: str) -> None:
    """Bring a local file into an empty database on a server, to the rowid."""
    with closing(sqlite3.connect(file)) as source, closing(dbapi.connect(url)) as dest, dest:
        made = "SELECT name, sql FROM sqlite_schema WHERE type = ? AND sql IS NOT NULL"
        tables = [t for t in source.execute(made, ("table",)) if not t[0].startswith("sqlite_")]
        for name, sql in tables:
            dest.execute(sql)
            rows = source.execute(f"SELECT rowid, * FROM {name}")
            columns = [each[0] for each in rows.description]
            # An INTEGER PRIMARY KEY is the rowid.
            names = ", ".join(["rowid", *columns[1:]])
            marks = ", ".join("?" * len(columns))
            dest.executemany(f"INSERT INTO {name} ({names}) VALUES ({marks})", rows.fetchall())
        for _, sql in source.execute(made, ("index",)):
            dest.execute(sql)
        dest.execute("DELETE FROM sqlite_sequence")
        sequences = source.execute("SELECT name, seq FROM sqlite_sequence").fetchall()
        dest.executemany("INSERT INTO sqlite_sequence (name, seq) VALUES (?, ?)", sequences)


@pytest.fixture(params=["file", "sqld"])
def written(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    """Return a function that gives a database as a release wrote it, on a file and on a server."""

    def give(release: str) -> Database:
        path = tmp_path / f"{release}.db"
        shutil.copy(original(release), path)
        if request.param == "file":
            return Database(str(path))
        url = request.getfixturevalue("sqld_url")
        load(path, url)
        return Database(url)

    return give


@pytest.fixture
def file(tmp_path: Path) -> Any:
    """Return a function that gives a local database as a release wrote it."""

    def give(release: str) -> Database:
        path = tmp_path / f"{release}.db"
        shutil.copy(original(release), path)
        return Database(str(path))

    return give
