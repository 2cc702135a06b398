"""SQLAlchemy's dialect suite. Not collected by itself: `test_dialect_suite` runs it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from requirements import UNSUPPORTED_REMOTE, is_remote
from sqlalchemy import Column, Integer, Table, select, testing
from sqlalchemy.testing import config
from sqlalchemy.testing.suite import *  # noqa: F403 - the suite is what this module holds
from sqlalchemy.testing.suite import IntegerTest as _IntegerTest
from sqlalchemy.testing.suite import IsolationLevelTest as _IsolationLevelTest

if TYPE_CHECKING:
    from collections.abc import Callable

    from sqlalchemy import Connection, MetaData


@pytest.fixture(autouse=True)
def _second_database(request: pytest.FixtureRequest) -> None:
    """Skip a case with a second database where there is none; the suite does not always ask."""
    parameters = request.node.callspec.params if hasattr(request.node, "callspec") else {}
    wanted = any(parameters.get(name) is True for name in ("use_schema", "use_schema_fixture"))
    if wanted and is_remote(config):
        pytest.skip(f"excluded: {UNSUPPORTED_REMOTE['schemas']}")


class IntegerTest(_IntegerTest):
    """The suite's, with its table made on the connection that the test holds.

    The original makes it on a second one, which a first one in BEGIN IMMEDIATE keeps out.
    """

    @testing.fixture
    def integer_round_trip(
        self, metadata: MetaData, connection: Connection
    ) -> Callable[[Any, int], None]:
        """Return what writes a number into a column of a type and reads it back."""

        def run(datatype: Any, data: int) -> None:
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


class IsolationLevelTest(_IsolationLevelTest):
    """The suite's, for a database that may have no level besides the default."""

    def test_dialect_user_setting_is_restored(self, testing_engine: Any) -> None:
        """Skip as the others of this class do, where there is nothing to set."""
        self._get_non_default_isolation_level()
        super().test_dialect_user_setting_is_restored(testing_engine)
