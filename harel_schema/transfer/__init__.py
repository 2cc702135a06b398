"""Copying a database's rows to another one: exactly, resumably, while writers go on.

`copy` is the whole of it. Below it: `plan` (what is copied), `preflight` (what would make it
wrong), `state` (what the destination holds), `copying` and `ledger` (batches, and how far they
are), `merging`, and `comparing`, by which `harel_schema.verify` works too.
"""

from harel_schema.transfer.job import copy
from harel_schema.transfer.model import (
    Action,
    CopyReport,
    Estimate,
    Limits,
    OnProgress,
    Phase,
    Progress,
    TableCopy,
)

__all__ = [
    "Action",
    "CopyReport",
    "Estimate",
    "Limits",
    "OnProgress",
    "Phase",
    "Progress",
    "TableCopy",
    "copy",
]
