"""Every kind of store behind one face, so that one contract runs on all of them."""

from __future__ import annotations

import asyncio
import inspect
from typing import TYPE_CHECKING, Any

from harel_schema import AsyncLibsqlStore, LibsqlStore
from harel_schema.models import Event, Execution, TimerOp

if TYPE_CHECKING:
    from contextlib import ExitStack

    from harel_schema.commit.unit import Statement


def new(name: str = "e", **fields: Any) -> Execution:
    """Return an execution that no store has."""
    return Execution(id=name, definition_id="d", **fields)


class Blocking:
    """An async store whose methods block: the same calls, on an event loop of its own."""

    def __init__(self, runner: asyncio.Runner, store: Any) -> None:
        object.__setattr__(self, "_runner", runner)
        object.__setattr__(self, "store", store)

    def __getattr__(self, name: str) -> Any:
        value = getattr(self.store, name)
        if inspect.isasyncgenfunction(value):
            return lambda **filters: iter(self._runner.run(listed(value(**filters))))
        if inspect.iscoroutinefunction(value):
            return lambda *args, **kwargs: self._runner.run(value(*args, **kwargs))
        return value

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self.store, name, value)


async def listed(generator: Any) -> list[Any]:
    """Return what an async generator yields."""
    return [item async for item in generator]


class Opener:
    """Opens stores of one flavour on one database, and closes them."""

    def __init__(self, flavour: str, database: Any, stack: ExitStack, **options: Any) -> None:
        self.flavour = flavour
        self.database = database
        self._stack = stack
        self._options = options
        self._runner: asyncio.Runner | None = None

    def __call__(self, *, sync: type = LibsqlStore, twin: type = AsyncLibsqlStore, **options: Any):
        """Return a new store; an async one as `Blocking`."""
        options = {**self._options, **options}
        if self.flavour == "sync":
            return self._stack.enter_context(sync(self.database, **options))
        if self._runner is None:
            self._runner = self._stack.enter_context(asyncio.Runner())
        store = self._runner.run(twin.create(self.database, **options))
        self._stack.callback(lambda: self._runner.run(store.close()))
        return Blocking(self._runner, store)


def rows(store: Any, sql: str, *args: object) -> list[tuple[Any, ...]]:
    """Return what a query finds, through the store's own connection or client."""
    statement: Statement = (sql, args)
    if isinstance(store, Blocking):
        return list(store._runner.run(store.store._backend.read(statement)))
    return list(store._backend.read(statement))


def full_commit(exe: Execution, **parts: Any) -> dict[str, Any]:
    """Return the arguments of a commit with one of everything, and several of some."""
    return {
        "emits": [
            (exe.id, Event(id=f"{exe.id}-1", kind="One")),
            ("other", Event(id=f"{exe.id}-2", kind="Two", data={"é": "\x00☃"})),
            (None, Event(id=f"{exe.id}-3", kind="Three")),
        ],
        "processed_event_id": "handled",
        "timers": (TimerOp("schedule", "A.B", 12.25), TimerOp("cancel", "A.C")),
        "spawns": (("c:1", "A", {"n": 1}), ("c:2", "B", {"é": float("inf")})),
        "trace": {"event": "One", "é": "ü"},
    } | parts
