"""Databases to find drift in."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from harel_schema.migrate import schema_sql

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def migrated() -> Iterator[sqlite3.Connection]:
    """Return a connection to a database at head."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        for statement in schema_sql("harel"):
            connection.execute(statement)
        yield connection
