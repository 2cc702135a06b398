"""Opening a file: one library a file a process (see `harel_schema.leases`), and the right mode."""

from __future__ import annotations

import contextlib
import os
from functools import partial
from typing import TYPE_CHECKING
from urllib.parse import quote

from harel_schema import leases
from harel_schema.errors import InterfaceError, TargetError
from harel_schema.leases import Lease

if TYPE_CHECKING:
    from pathlib import Path

    from harel_schema.leases import Identity
    from harel_schema.target import Target

__all__ = ["Lease", "check_parent", "is_replica", "may_clean_up", "open_uri", "owner", "use"]

# What the libsql libraries keep beside an embedded replica: which frames of the primary it has.
_OF_REPLICA = ("-client_wal_index", "-info")


def use(target: Target, library: str, *, create: bool) -> Lease:
    """Register `library` as the user of a file, made empty first if `create` and it is missing.

    Raises `TargetError` for a path that cannot be opened, `InterfaceError` when another library
    has the file open in this process, or the same one had it open when the process was forked.
    """
    assert target.path is not None  # noqa: S101 - the caller has a file
    if leases.inherited(target.path) == library:
        raise InterfaceError(
            f"{target} was open when this process was forked, and its locks are not ours",
            remedy="fork before it is opened, or start the process by 'spawn' or 'forkserver'",
        )
    try:
        return leases.take(partial(_identity, target, target.path, create=create), library)
    except leases.Taken as taken:
        raise InterfaceError(
            f"{target} is open in this process with {taken.owner}; opening it with {library} too "
            "would cancel the locks of both",
            remedy=f"pass driver={taken.owner!r}, or close the other connection",
        ) from None


def _identity(target: Target, path: Path, *, create: bool) -> Identity:
    try:
        if create and not path.exists():
            _create(path)
        found = path.stat()
    except FileNotFoundError:
        check_parent(target)
        raise TargetError(f"{target}: no such file", remedy="check the path") from None
    except OSError as error:
        raise TargetError(f"{target}: {error.strerror}") from error
    if path.is_dir():
        raise TargetError(f"{target} is a directory", remedy="name a file in it")
    return found.st_dev, found.st_ino


def _create(path: Path) -> None:
    # A new file has no locks to lose, so it must be new; 0o644 is SQLite's own choice.
    with contextlib.suppress(FileExistsError):
        os.close(os.open(path.resolve(), os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o644))


def owner(target: Target) -> str | None:
    """Return the library that has a file open in this process, or None."""
    if target.path is None:
        return None
    try:
        found = target.path.stat()
    except OSError:
        return None
    return leases.owner((found.st_dev, found.st_ino))


def is_replica(path: Path) -> bool:
    """Return whether a file is an embedded replica, whose rows are those of a server."""
    return any(path.with_name(path.name + suffix).exists() for suffix in _OF_REPLICA)


def check_parent(target: Target) -> None:
    """Raise `TargetError` when the folder of a file does not exist."""
    assert target.path is not None  # noqa: S101 - the caller has a file
    if not target.path.parent.is_dir():
        raise TargetError(
            f"{target}: the folder {target.path.parent} does not exist", remedy="create it first"
        )


def open_uri(path: Path, *, read_only: bool) -> str:
    """Return the URI that opens an existing file, and creates nothing that stays.

    Read-only means ``mode=ro`` when there is a WAL to respect. Without one it is a
    connection that may write and is told not to (``query_only``): on a file in WAL mode,
    ``mode=ro`` would make ``-wal`` and ``-shm`` and could not remove them again, and it cannot
    read what a killed writer left half done, because SQLite must first undo that by the journal.
    """
    mode = "ro" if read_only and not may_clean_up(path) else "rw"
    return f"file:{quote(os.fsencode(path))}?mode={mode}"


def may_clean_up(path: Path) -> bool:
    """Whether a read may open the file as a writer, so that it leaves nothing beside it.

    False with a WAL there (closing would fold it into the file), and where there is no permission.
    """
    if path.with_name(f"{path.name}-wal").exists():
        return False
    return os.access(path, os.W_OK) and os.access(path.parent, os.W_OK)
