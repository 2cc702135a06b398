"""Less room and fewer permissions, for this process or for a server."""

from __future__ import annotations

import ctypes
import resource
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

_T = TypeVar("_T")

# linux/capability.h: version 3, and the bits of CAP_DAC_OVERRIDE and CAP_DAC_READ_SEARCH.
_VERSION = 0x20080522
_OVERRIDES = 0b110


@contextmanager
def room(size: int, pid: int = 0) -> Iterator[None]:
    """Let no file of a process grow beyond `size` bytes: what a full disk does, without one.

    The process must ignore SIGXFSZ, as Python does.
    """
    before = resource.prlimit(pid, resource.RLIMIT_FSIZE)
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.prlimit(pid, resource.RLIMIT_FSIZE, before)


def ignoring(binary: Path, path: Path) -> Path:
    """Write a program at `path` that is `binary`, but survives the limit of `room`."""
    path.write_text(f"#!/bin/sh\ntrap '' XFSZ\nexec '{binary}' \"$@\"\n")
    path.chmod(0o755)
    return path


def without_override(action: Callable[[], _T]) -> _T:
    """Do something in a thread for which permission bits hold, though it be root's."""
    with ThreadPoolExecutor(1, initializer=_drop) as pool:
        return pool.submit(action).result()


def _drop() -> None:
    libc = ctypes.CDLL(None)
    header = (ctypes.c_uint32 * 2)(_VERSION, 0)
    # Effective, permitted, inheritable; the low half of each, then the high ones.
    capabilities = (ctypes.c_uint32 * 6)()
    assert libc.capget(header, capabilities) == 0
    for at in (0, 1, 2):
        capabilities[at] &= ~_OVERRIDES
    assert libc.capset(header, capabilities) == 0
