"""The command ``harel-schema``, and ``python -m harel_schema``.

Here is what must hold before and after everything else: Ctrl-C is answered while the modules load
and while the interpreter ends, which take longer than many a verb.
"""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from importlib import import_module
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from types import FrameType

__all__ = ["main"]


def _end(signum: int | None = None, frame: FrameType | None = None) -> NoReturn:
    # Not by an exception: where a module is loaded, or an object taken away, Python may drop it.
    del signum, frame
    with suppress(OSError):
        os.write(2, b"\nerror: interrupted\n")
    os._exit(130)


def main() -> None:
    """Run the command and exit."""
    python = signal.default_int_handler
    # It may also be ignored: in the background of a shell, for instance.
    ours = signal.getsignal(signal.SIGINT) is python
    if ours:
        signal.signal(signal.SIGINT, _end)
    command = import_module("harel_schema.cli")
    try:
        if ours:
            signal.signal(signal.SIGINT, python)
        command.main()
    except KeyboardInterrupt:
        _end()
    finally:
        if ours:
            signal.signal(signal.SIGINT, _end)


if __name__ == "__main__":
    main()
