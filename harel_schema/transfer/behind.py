"""Writing behind: a batch is written while the next one is made."""

from __future__ import annotations

import threading
from concurrent.futures import Future
from queue import SimpleQueue
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Self

__all__ = ["Writer", "carry_out"]

_T = TypeVar("_T")


class Writer:
    """Does one action after another, in a thread of its own.

    A context manager. Leaving it waits for the action that is under way, also after an error: a
    request that was sent is applied, whether or not somebody waits for its answer.
    """

    def __init__(self) -> None:
        self._actions: SimpleQueue[tuple[Future[None], Callable[[], None]] | None] = SimpleQueue()
        self._under_way: tuple[Future[None], Callable[[], None]] | None = None
        # A daemon: the second Ctrl-C does not wait for a server that does not answer.
        self._thread = threading.Thread(target=self._work, name="harel-schema-writer", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, exc_type: type[BaseException] | None, *exc_info: object) -> None:
        try:
            if exc_type is None:
                self.wait()
            elif self._under_way is not None:
                self._under_way[0].exception()
        finally:
            self._actions.put(None)

    def put(self, action: Callable[[], None], then: Callable[[], None]) -> None:
        """Begin `action` when the one before has ended; when it has, `then` is called here.

        Raises what the action before has raised.
        """
        self.wait()
        done: Future[None] = Future()
        self._under_way = done, then
        self._actions.put((done, action))

    def wait(self) -> None:
        """Wait until nothing is under way; raise what the last action has raised."""
        if self._under_way is not None:
            done, then = self._under_way
            done.result()
            self._under_way = None
            then()

    def _work(self) -> None:
        while (given := self._actions.get()) is not None:
            carry_out(*given)


def carry_out(done: Future[_T], action: Callable[[], _T]) -> None:
    """Let `done` have what `action` returns, or raises."""
    try:
        result = action()
    except BaseException as exc:  # noqa: BLE001 - it is raised by `done.result`
        done.set_exception(exc)
    else:
        done.set_result(result)
