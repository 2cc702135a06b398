"""Which files this process has open as databases, and with which library.

Every copy of SQLite (stdlib `sqlite3`, `libsql`, `libsql_experimental`) keeps its own table of
the locks it holds, and POSIX drops all locks of a process on a file as soon as the process
closes any descriptor of it. Two copies on one file in one process therefore cancel each other's
locks: both get the write lock. So a file belongs to the library that opened it first, until its
last connection is closed, and nobody but a library opens a file that one may hold.
"""

from __future__ import annotations

import os
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = [
    "Identity",
    "Lease",
    "Taken",
    "forget_after_fork",
    "inherited",
    "owner",
    "read_head",
    "take",
]

Identity: TypeAlias = tuple[int, int]
"""A file's device and inode: the same under every name of it."""

_lock = threading.Lock()
_leases: dict[Identity, tuple[str, int]] = {}
_inherited: dict[Identity, str] = {}

_DESCRIPTORS = Path("/dev/fd")


class Taken(Exception):
    """The file is open with another library, `owner`."""

    def __init__(self, owner: str) -> None:
        super().__init__(owner)
        self.owner = owner


@dataclass(slots=True)
class Lease:
    """The right of a library to a file; give it back with `release`, which may be repeated."""

    identity: Identity | None

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


def take(identify: Callable[[], Identity], library: str) -> Lease:
    """Register `library` as a user of the file that `identify` finds, or makes.

    Raises `Taken` when another library has it, and what `identify` raises.
    """
    with _lock:
        identity = identify()
        owner, count = _leases.get(identity, (library, 0))
        if owner != library:
            raise Taken(owner)
        _leases[identity] = (owner, count + 1)
    return Lease(identity)


def owner(identity: Identity) -> str | None:
    """Return the library that has a file open, or None."""
    with _lock:
        library, _ = _leases.get(identity, (None, 0))
    return library


def read_head(path: Path, size: int) -> bytes | None:
    """Return the first `size` bytes of a file, or None while this process has it open.

    Closing a descriptor would drop the locks of whoever holds one: a connection of ours, or one
    that the application made itself. What an application opens in that very moment is not seen.
    Raises `OSError`.
    """
    with _lock:
        found = path.stat()
        identity = (found.st_dev, found.st_ino)
        if identity in _leases or _is_open(identity):
            return None
        with path.open("rb", buffering=0) as file:
            return file.read(size)


def _is_open(identity: Identity) -> bool:
    try:
        names = [entry.name for entry in _DESCRIPTORS.iterdir()]
    except OSError:
        return False
    return any(_identity(int(name)) == identity for name in names if name.isdecimal())


def _identity(descriptor: int) -> Identity | None:
    try:
        found = os.fstat(descriptor)
    except OSError:
        return None
    return found.st_dev, found.st_ino


def forget_after_fork() -> None:
    """Drop the leases of the parent: its locks are not the child's."""
    global _lock  # noqa: PLW0603 - another thread of the parent may have held it
    _lock = threading.Lock()
    _inherited.update({identity: library for identity, (library, _) in _leases.items()})
    _leases.clear()


def inherited(path: Path) -> str | None:
    """Return the library that had a file open when this process was forked, or None.

    Its table of locks came with the fork: it takes the parent's for its own, and does not take
    them again. When the parent closes the file, what this process commits by it is then lost.
    """
    try:
        found = path.stat()
    except OSError:
        return None
    return _inherited.get((found.st_dev, found.st_ino))
