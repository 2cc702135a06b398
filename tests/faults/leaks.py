"""What a piece of work has left in this process: open files and threads."""

from __future__ import annotations

import gc
import threading
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


def held() -> tuple[list[str], list[str]]:
    """Return what the open file descriptors name, and the running threads."""
    files = []
    for path in Path("/proc/self/fd").iterdir():
        try:
            files.append(f"{path.name} {path.readlink()}")
        except FileNotFoundError:
            continue  # that of the listing itself
    return sorted(files), sorted(str(thread) for thread in threading.enumerate())


@contextmanager
def nothing_left() -> Iterator[None]:
    """See that the block leaves no file open and no thread running."""
    before = held()
    yield
    if held() != before:
        # An exception keeps what its frames had, until the cycle is collected.
        gc.collect()
    after = held()
    assert (set(after[0]) - set(before[0]), set(after[1]) - set(before[1])) == (set(), set())
