"""The two numbers that an application may keep in the header of its file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harel_schema.errors import DatabaseError
from harel_schema.transfer.database import number
from harel_schema.transfer.layout import Query

if TYPE_CHECKING:
    from collections.abc import Iterator

    from harel_schema.transfer.database import Database

__all__ = ["copy_numbers"]


def copy_numbers(source: Database, dest: Database) -> Iterator[str]:
    """Set `user_version` and `application_id` as in `source`; yield what a server refuses."""
    for name in ("user_version", "application_id"):
        value = number(source, Query(f"PRAGMA {name}"))
        if number(dest, Query(f"PRAGMA {name}")) == value:
            continue
        try:
            dest.transact([Query(f"PRAGMA {name} = {value}")], lambda: False)
        except DatabaseError:
            yield f"{dest.target} keeps its own {name}; the source's is {value}"
