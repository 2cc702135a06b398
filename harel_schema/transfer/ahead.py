"""Reading ahead: a thread brings the rows of a server while those before are at work."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Self

    from harel_schema.transfer.database import Run

__all__ = ["ReadAhead"]

_SILENCE: Final = 3.0
"""Seconds after which a stream must be used again: the server drops it after 10."""
_JOIN: Final = 2.0


class ReadAhead:
    """Runs `produce` in a thread of its own, which hands over runs to whoever iterates here.

    A context manager that ends the thread. One run waits at most.
    """

    def __init__(self, produce: Callable[[ReadAhead], None]) -> None:
        self._produce = produce
        self._changed = threading.Condition()
        self._run: Run | None = None
        self._error: BaseException | None = None
        self._ended = self._stopped = False
        self._thread = threading.Thread(target=self._work, name="harel-schema-reader", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *exc_info: object) -> None:
        with self._changed:
            self._stopped = True
            self._changed.notify_all()
        # A server that does not answer is not waited for.
        self._thread.join(_JOIN)

    def __iter__(self) -> Iterator[Run]:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._run or self._ended)
                run, self._run = self._run, None
                self._changed.notify_all()
            if run is not None:
                yield run
            elif self._error is not None:
                raise self._error
            else:
                return

    def hand_over(self, run: Run, idle: Callable[[], object]) -> bool:
        """Wait until the run before was taken; return False when no more are wanted.

        `idle` is called now and then while it waits, which may be long.
        """
        while True:
            with self._changed:
                if self._changed.wait_for(lambda: self._stopped or not self._run, _SILENCE):
                    self._run = run
                    self._changed.notify_all()
                    return not self._stopped
            idle()

    def _work(self) -> None:
        try:
            self._produce(self)
        except BaseException as exc:  # noqa: BLE001 - it is raised where the rows are taken
            self._error = exc
        finally:
            with self._changed:
                self._ended = True
                self._changed.notify_all()
