"""SQLAlchemy's dialect suite. Not collected by itself: `test_dialect_suite` runs it."""

from __future__ import annotations

from sqlalchemy import Column, Integer, Table, select, testing
from sqlalchemy.testing.suite import *  # noqa: F403 - the suite is what this module holds
from sqlalchemy.testing.suite import IntegerTest as _IntegerTest


class IntegerTest(_IntegerTest):
    """The suite's, with its table made on the connection that the test holds.

    The original makes it on a second one, which a first one in BEGIN IMMEDIATE keeps out.
    """

    @testing.fixture
    def integer_round_trip(self, metadata, connection):
        def run(datatype, data):
            table = Table(
                "integers",
                metadata,
                Column("id", Integer, primary_key=True),
                Column("number", datatype),
            )
            metadata.create_all(connection)
            connection.execute(table.insert(), {"id": 1, "number": data})
            found = connection.scalars(select(table.c.number)).one()
            assert (found, type(found)) == (data, int)

        return run
