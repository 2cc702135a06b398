"""The prefix before every table's name, and the names that are built from it."""

from __future__ import annotations

import re

from harel_schema.errors import TargetError

__all__ = ["DEFAULT_PREFIX", "check_prefix", "version_table"]

DEFAULT_PREFIX = "harel"

# harel's own rule (`harel.engine.schema.Names`).
_PREFIX = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,29}")


def check_prefix(prefix: str) -> str:
    """Return `prefix` if tables can be named with it.

    Raises `TargetError` for what harel itself refuses, and for `sqlite`, before which SQLite
    keeps every table name for itself.
    """
    if not isinstance(prefix, str) or not _PREFIX.fullmatch(prefix):
        raise TargetError(
            f"{prefix!r} is no prefix",
            remedy="use a letter or _, then letters, digits or _, at most 30 characters",
        )
    if f"{prefix}_".lower().startswith("sqlite_"):
        raise TargetError(
            f"the prefix {prefix!r} is reserved", remedy="SQLite keeps sqlite_… for itself"
        )
    return prefix


def version_table(prefix: str) -> str:
    """Return the name of the table in which Alembic keeps the revision of `prefix`'s tables."""
    return f"{prefix}_alembic_version"
