"""Drift: what differs between a live database and what its revision promises.

`check(target)` compares a database with its own revision, `diff(a, b)` two live ones; both give a
`Drift`: falsy when equal, iterable, one `Difference` a line.
"""

from __future__ import annotations

from harel_schema.drift.checking import (
    Examined,
    check,
    check_schema,
    diff,
    examine,
    examine_pair,
)
from harel_schema.drift.compare import schema_differences
from harel_schema.drift.model import Difference, Drift, Kind
from harel_schema.drift.promise import expected, made

__all__ = [
    "Difference",
    "Drift",
    "Examined",
    "Kind",
    "check",
    "check_schema",
    "diff",
    "examine",
    "examine_pair",
    "expected",
    "made",
    "schema_differences",
]
