"""Group commit for tasks: over the network, and on the one thread of a local connection."""

from __future__ import annotations

import asyncio
import contextlib
import queue
import threading
from collections import deque
from typing import TYPE_CHECKING, Any, TypeVar

from harel_schema.commit.group import take
from harel_schema.commit.unit import Outcome, Unit
from harel_schema.errors import StoreError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from harel_schema.commit.group import Attempt

__all__ = ["TaskGroup", "Worker"]

T = TypeVar("T")


class _Waiter:
    """A unit and the future of its outcome."""

    __slots__ = ("future", "unit")

    def __init__(self, unit: Unit[Any], future: asyncio.Future[Outcome]) -> None:
        self.unit = unit
        self.future = future


class TaskGroup:
    """Group commit for the tasks of one event loop; `run` commits units, one call at a time.

    The groups run in a task of their own. A caller that is cancelled is withdrawn when its unit
    has not begun; otherwise the unit is committed in the background.
    """

    def __init__(self, run: Callable[[Sequence[Unit[Any]]], Awaitable[list[Outcome]]]) -> None:
        self._run = run
        self._waiting: deque[_Waiter] = deque()
        self._task: asyncio.Task[None] | None = None

    async def submit(self, unit: Unit[T]) -> T:
        """Commit `unit`, alone or with others; return its value or raise its error."""
        loop = asyncio.get_running_loop()
        waiter = _Waiter(unit, loop.create_future())
        self._waiting.append(waiter)
        if self._task is None:
            self._task = loop.create_task(self._work())
        value: T = (await waiter.future).unwrap()
        return value

    async def finish(self) -> None:
        """Wait until nothing is being committed any more."""
        while self._task is not None:
            await asyncio.wait([self._task])

    async def _work(self) -> None:
        group: list[_Waiter] = []
        try:
            while self._waiting:
                group = [each for each in take(self._waiting) if not each.future.cancelled()]
                if group:
                    outcomes = await self._outcomes(group)
                    futures = [each.future for each in group]
                    _deliver(list(zip(futures, outcomes, strict=True)))
        except asyncio.CancelledError:
            # The event loop is being closed; nobody may be left waiting for a task that is gone.
            for each in (*group, *self._waiting):
                each.future.cancel()
            raise
        finally:
            self._task = None

    async def _outcomes(self, group: list[_Waiter]) -> list[Outcome]:
        try:
            return await self._run([each.unit for each in group])
        except Exception as exc:  # noqa: BLE001 - it is raised in every caller's task
            return [Outcome(error=exc)] * len(group)


def _deliver(results: Sequence[tuple[asyncio.Future[Outcome], Outcome]]) -> None:
    for future, outcome in results:
        if not future.done():
            future.set_result(outcome)


class _Job:
    """A unit to commit, or a call to make, for a task.

    It is claimed once: by the thread, to run it, or by the cancelled task, to withdraw it.
    """

    __slots__ = ("_claim", "future", "loop", "work")

    def __init__(self, work: Unit[Any] | Callable[[], Any]) -> None:
        self.work = work
        self.loop = asyncio.get_running_loop()
        self.future: asyncio.Future[Outcome] = self.loop.create_future()
        self._claim = threading.Lock()

    @property
    def unit(self) -> Unit[Any]:
        """The work, of a job that is a unit."""
        if not isinstance(self.work, Unit):
            raise TypeError("a call is not a unit")
        return self.work

    def claim(self) -> bool:
        return self._claim.acquire(blocking=False)


class Worker:
    """The one thread that uses a connection, for the tasks of any event loop.

    `prepare` makes the attempts to commit; `finish` is the thread's last call.

    Tasks hand in units and calls. The thread takes all that wait: the units first, in groups,
    then the calls, so that a read sees what was handed in before it. Cancelling a task withdraws
    what has not begun and never interrupts what has, so no two calls meet on the connection.

    What the tasks of a loop hand in during one turn of it reaches the thread at once: the tasks
    that one group woke are whole the next, and the thread does not fight them for the GIL.
    """

    def __init__(
        self, prepare: Callable[[Sequence[Unit[Any]]], Attempt], finish: Callable[[], None]
    ) -> None:
        self._prepare = prepare
        self._finish = finish
        self._jobs: queue.SimpleQueue[list[_Job] | None] = queue.SimpleQueue()
        self._turns = threading.local()
        self._ended = False
        # A daemon, so that a store that nobody closed does not keep the process from its end.
        self._thread = threading.Thread(target=self._work, name="harel-store", daemon=True)
        self._thread.start()

    async def submit(self, unit: Unit[T]) -> T:
        """Commit `unit`, alone or with others; return its value or raise its error."""
        value: T = await self._done(_Job(unit))
        return value

    async def call(self, call: Callable[[], T]) -> T:
        """Run `call` in the thread; return its value or raise its error."""
        value: T = await self._done(_Job(call))
        return value

    def stop(self) -> None:
        """Let the thread do what waits now, then `finish`, and end."""
        # Its jobs are claimed once, so that it may come again when the turn ends.
        self._jobs.put(getattr(self._turns, "jobs", None) or [])
        self._jobs.put(None)

    async def _done(self, job: _Job) -> Any:
        self._hand_in(job)
        try:
            outcome = await job.future
        except asyncio.CancelledError:
            job.claim()
            raise
        return outcome.unwrap()

    def _hand_in(self, job: _Job) -> None:
        turn: list[_Job] | None = getattr(self._turns, "jobs", None)
        # A loop that was stopped leaves its turn behind; its tasks are not another loop's.
        if turn and turn[0].loop is job.loop:
            turn.append(job)
            return
        self._turns.jobs = turn = [job]
        job.loop.call_soon(self._end_turn, turn)

    def _end_turn(self, turn: list[_Job]) -> None:
        if getattr(self._turns, "jobs", None) is turn:
            self._turns.jobs = None
        self._jobs.put(turn)
        if self._ended:
            self._refuse()

    def _work(self) -> None:
        while self._round():
            pass
        try:
            self._finish()
        finally:
            self._ended = True
            self._refuse()

    def _refuse(self) -> None:
        """Fail what came after the end: another event loop's turn may have begun before it."""
        error = StoreError("the store was closed before this was begun")
        with contextlib.suppress(queue.Empty):
            while True:
                late = [job for job in self._jobs.get_nowait() or () if job.claim()]
                _post(late, [Outcome(error=error)] * len(late))

    def _round(self) -> bool:
        """Do what waits; return whether there is a next round.

        A function of its own, so that a thread that waits keeps nothing alive.
        """
        turns = [self._jobs.get()]
        while not self._jobs.empty():
            turns.append(self._jobs.get())
        claimed = [job for turn in turns for job in turn or () if job.claim()]
        self._commit(deque(job for job in claimed if isinstance(job.work, Unit)))
        for job in claimed:
            if not isinstance(job.work, Unit):
                _post([job], [_attempt(job.work)])
        return None not in turns

    def _commit(self, waiting: deque[_Job]) -> None:
        while waiting:
            group = take(waiting)
            try:
                outcomes = self._prepare([job.unit for job in group]).run()
            except BaseException as exc:  # noqa: BLE001 - it is raised in every caller's task
                outcomes = [Outcome(error=exc)] * len(group)
            _post(group, outcomes)


def _attempt(call: Callable[[], Any]) -> Outcome:
    try:
        return Outcome(call())
    except BaseException as exc:  # noqa: BLE001 - it is raised in the caller's task
        return Outcome(error=exc)


def _post(jobs: list[_Job], outcomes: Sequence[Outcome]) -> None:
    """Wake the tasks, once an event loop: waking a loop costs as much as a commit."""
    by_loop: dict[asyncio.AbstractEventLoop, list[tuple[asyncio.Future[Outcome], Outcome]]] = {}
    for job, outcome in zip(jobs, outcomes, strict=True):
        by_loop.setdefault(job.loop, []).append((job.future, outcome))
    for loop, results in by_loop.items():
        # A loop that was closed meanwhile has nobody left to tell.
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(_deliver, results)
