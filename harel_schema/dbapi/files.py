"""One library a file a process.

Every copy of SQLite (stdlib `sqlite3`, `libsql`, `libsql_experimental`) keeps its own table of
the locks it holds, and POSIX drops all locks of a process on a file as soon as the process
closes any descriptor of it. Two copies on one file in one process therefore cancel each other's
locks: both get the write lock. So a file belongs to the library that opened it first, until
its last connection is closed. For the same reason nothing here opens a file that exists.
"""

from __future__ import annotations

import os
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import quote

from harel_schema.errors import InterfaceError, TargetError

if TYPE_CHECKING:
    from pathlib import Path

    from harel_schema.target import Target

__all__ = ["Lease", "forget_after_fork", "may_clean_up", "open_uri", "use"]

_lock = threading.Lock()
_leases: dict[tuple[int, int], tuple[str, int]] = {}


@dataclass(slots=True)
class Lease:
    """The right of a library to a file; give it back with `release`, which may be repeated."""

    identity: tuple[int, int] | None

    def release(self) -> None:
        """Give the file free when this was the last lease on it."""
        identity, self.identity = self.identity, None
        with _lock:
            if identity is None or identity not in _leases:
                return
            library, count = _leases[identity]
            if count > 1:
                _leases[identity] = (library, count - 1)
            else:
                del _leases[identity]


def use(target: Target, library: str, *, create: bool) -> Lease:
    """Register `library` as the user of a file, made empty first if `create` and it is missing.

    Raises `TargetError` for a path that cannot be opened, `InterfaceError` when another library
    has the file open in this process.
    """
    assert target.path is not None  # noqa: S101 - the caller has a file
    with _lock:
        identity = _identity(target, target.path, create=create)
        owner, count = _leases.get(identity, (library, 0))
        if owner != library:
            raise InterfaceError(
                f"{target} is open in this process with {owner}; opening it with {library} too "
                "would cancel the locks of both",
                remedy=f"pass driver={owner!r}, or close the other connection",
            )
        _leases[identity] = (owner, count + 1)
    return Lease(identity)


def _identity(target: Target, path: Path, *, create: bool) -> tuple[int, int]:
    try:
        if create and not path.exists():
            # A new file has no locks to lose; 0o644 is SQLite's own choice.
            os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o644))
        found = path.stat()
    except FileNotFoundError:
        check_parent(target)
        raise TargetError(f"{target}: no such file", remedy="check the path") from None
    except OSError as error:
        raise TargetError(f"{target}: {error.strerror}") from error
    if path.is_dir():
        raise TargetError(f"{target} is a directory", remedy="name a file in it")
    return found.st_dev, found.st_ino


def check_parent(target: Target) -> None:
    """Raise `TargetError` when the folder of a file does not exist."""
    assert target.path is not None  # noqa: S101 - the caller has a file
    if not target.path.parent.is_dir():
        raise TargetError(
            f"{target}: the folder {target.path.parent} does not exist", remedy="create it first"
        )


def open_uri(path: Path, *, read_only: bool) -> str:
    """Return the URI that opens an existing file, and creates nothing that stays.

    Read-only means ``mode=ro`` when there is a journal to respect. Without one it is a
    connection that may write and is told not to (``query_only``): on a file in WAL mode,
    ``mode=ro`` would make ``-wal`` and ``-shm`` and could not remove them again.
    """
    mode = "ro" if read_only and not may_clean_up(path) else "rw"
    return f"file:{quote(os.fsencode(path))}?mode={mode}"


def may_clean_up(path: Path) -> bool:
    """Whether a read may open the file as a writer, so that it leaves nothing beside it.

    False with a WAL or a rollback journal there (closing would fold it into the file), and where
    there is no permission.
    """
    journals = [path.with_name(path.name + suffix) for suffix in ("-wal", "-journal")]
    if any(journal.exists() for journal in journals):
        return False
    return os.access(path, os.W_OK) and os.access(path.parent, os.W_OK)


def forget_after_fork() -> None:
    """Drop the leases of the parent: its locks are not the child's."""
    global _lock  # noqa: PLW0603 - another thread of the parent may have held it
    _lock = threading.Lock()
    _leases.clear()
