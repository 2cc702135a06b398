"""A live database's schema as frozen values.

`read(connection)` gives a `Schema`; `harel_schema.drift` compares two of them.
"""

from __future__ import annotations

from harel_schema.introspect.model import (
    Affinity,
    Check,
    Column,
    ForeignKey,
    Generated,
    Index,
    Key,
    Schema,
    Table,
    Term,
    Trigger,
    View,
    VirtualTable,
)
from harel_schema.introspect.reading import Connection, read
from harel_schema.introspect.tokens import fold, quote

__all__ = [
    "Affinity",
    "Check",
    "Column",
    "Connection",
    "ForeignKey",
    "Generated",
    "Index",
    "Key",
    "Schema",
    "Table",
    "Term",
    "Trigger",
    "View",
    "VirtualTable",
    "fold",
    "quote",
    "read",
]
