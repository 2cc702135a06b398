"""The prefix before every table's name, the names built from it, and how names are shown."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from harel_schema.errors import TargetError

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = [
    "DEFAULT_PREFIX",
    "PREFIX_VARIABLE",
    "change_log",
    "check_prefix",
    "fence_trigger",
    "guard_text",
    "guarded_source",
    "ledger_name",
    "listed",
    "log_trigger",
    "move_table",
    "moved_address",
    "moved_text",
    "one_line",
    "prefix_argument",
    "version_table",
]

DEFAULT_PREFIX = "harel"

PREFIX_VARIABLE = "HAREL_PREFIX"
"""The variable of the environment that gives another default."""

# harel's own rule (`harel.engine.schema.Names`).
_PREFIX = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,29}")

# In the address of a server, as its password, or a JWT by itself.
_TOKEN = re.compile(
    r"(?i:(?<=authtoken=)|(?<=auth_token=))[^\s&#'\"]+"
    r"|(?<=://)[^\s/@'\"]+(?=@)"
    r"|\beyJ[\w-]+\.[\w.-]+"
)


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


def prefix_argument(prefix: str) -> str:
    """Return what a command that is named to a user needs to mean the tables of `prefix`."""
    return "" if prefix == DEFAULT_PREFIX else f" --prefix {prefix}"


def version_table(prefix: str) -> str:
    """Return the name of the table in which Alembic keeps the revision of `prefix`'s tables."""
    return f"{prefix}_alembic_version"


def ledger_name(prefix: str) -> str:
    """Return the name of the table in which a copy notes how far it is."""
    return f"{prefix}_copy_ledger"


def move_table(prefix: str) -> str:
    """Return the name of the table by which a database is marked as an end of a running move."""
    return f"{prefix}_move"


def change_log(prefix: str) -> str:
    """Return the name of the table in which a source notes what changes while it is moved."""
    return f"{prefix}_move_log"


def log_trigger(prefix: str, event: str = "", table: str = "") -> str:
    """Return the name of a trigger that writes the change log; without `event`, how all begin."""
    return f"{prefix}_move_{event}_{table}" if event else f"{prefix}_move_"


def fence_trigger(prefix: str, event: str = "", table: str = "") -> str:
    """Return the name of a trigger that stops writers; without `event`, how all begin."""
    return f"{prefix}_fence_{event}_{table}" if event else f"{prefix}_fence_"


_MOVED = "moved to "


def moved_text(address: str) -> str:
    """Return what a fence answers to every writer of a database that was moved to `address`."""
    return _MOVED + address


def moved_address(message: str) -> str | None:
    """Return the address in an error that a fence raised, None for any other error."""
    return message.removeprefix(_MOVED) if message.startswith(_MOVED) else None


_GUARD = "the move from ", " to here is not finished"


def guard_text(source: str) -> str:
    """Return what the destination of an unfinished move from `source` answers to every writer."""
    return source.join(_GUARD)


def guarded_source(message: str) -> str | None:
    """Return the source in an error of such a destination, None for any other error."""
    begin, end = _GUARD
    if not (message.startswith(begin) and message.endswith(end)):
        return None
    return message.removeprefix(begin).removesuffix(end)


def listed(examples: Sequence[str], count: int) -> str:
    """Return the examples of `count` things in a line, which ends in ``…`` where there are more."""
    return ", ".join(examples) + (", …" if count > len(examples) else "")


def one_line(text: str) -> str:
    r"""Return text as it can be shown in one line: what cannot be printed is written as ``\n``.

    A name in somebody's database may hold line breaks, or commands to a terminal. An argument
    that was given in the wrong place may hold a token, which is written as ``***``.
    """
    return "".join(
        each if each.isprintable() else each.encode("unicode_escape").decode()
        for each in _TOKEN.sub("***", text)
    )
