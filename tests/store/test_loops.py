"""An async store and the event loops of a process."""

from __future__ import annotations

import asyncio
import gc
import threading
from typing import Any

import pytest

from harel_schema import AsyncLibsqlStore
from harel_schema.errors import HarelSchemaError, StoreError
from tests.store.conftest import arguments
from tests.store.support import new


async def opened(settings: dict[str, Any]) -> AsyncLibsqlStore:
    """Return a store that has committed, and is about to commit again when its loop is closed."""
    store = await AsyncLibsqlStore.create(**settings)
    await store.save(new("a"))
    asyncio.create_task(store.save(new("late")))  # noqa: RUF006 - the loop takes it with it
    return store


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("mode", ["libsql", "sqlite3", "memory", "remote", "replica"])
def test_a_store_goes_on_in_the_next_event_loop(request, mode) -> None:
    """A store that outlives its loop commits and reads in the next one, and closes there."""
    store = asyncio.run(opened(arguments(request, mode)))

    async def go_on() -> None:
        exe = new("b")
        await asyncio.gather(store.save(exe), *(store.save(new(f"c{at}")) for at in range(5)))
        assert await store.load("b") == exe
        assert (await store.load("a")).version == 1
        await store.close()

    asyncio.run(go_on())
    # The sockets of a loop that is closed can only be dropped; Python says so, here and not later.
    gc.collect()


@pytest.mark.parametrize("mode", ["remote", "replica"])
async def test_two_loops_at_once_need_a_store_each(request, mode) -> None:
    """Sockets and futures belong to a loop: the second one gets a clear error, and none hangs."""
    async with await AsyncLibsqlStore.create(**arguments(request, mode)) as store:
        with pytest.raises(StoreError, match="another event loop"):
            await asyncio.to_thread(asyncio.run, store.save(new("e")))
        await store.save(new("e"))


@pytest.mark.parametrize("mode", ["libsql", "sqlite3", "memory"])
async def test_two_loops_share_a_local_store(request, mode) -> None:
    """A file is used by a thread of the store's own, so any loop may ask it."""
    async with await AsyncLibsqlStore.create(**arguments(request, mode)) as store:
        await asyncio.gather(
            *(asyncio.to_thread(asyncio.run, store.save(new(f"e{at}"))) for at in range(4)),
            store.save(new("mine")),
        )
        assert len(await store.ids_with_prefix("e")) == 4


@pytest.mark.parametrize("driver", ["libsql", "sqlite3"])
async def test_what_another_loop_hands_in_beside_close_ends(tmp_path, driver) -> None:
    """A loop's jobs wait for the end of its turn: closed meanwhile, they fail, and none hangs."""
    store = await AsyncLibsqlStore.create(tmp_path / "state.db", driver=driver)
    asked, closed = threading.Event(), threading.Event()

    async def ask() -> list[Any]:
        jobs = [asyncio.create_task(call) for call in (store.save(new("e")), store.load("e"))]
        await asyncio.sleep(0)
        asked.set()
        closed.wait()
        async with asyncio.timeout(10):
            return await asyncio.gather(*jobs, return_exceptions=True)

    other = asyncio.create_task(asyncio.to_thread(asyncio.run, ask()))
    await asyncio.to_thread(asked.wait)
    await store.close()
    closed.set()
    assert [isinstance(each, HarelSchemaError) for each in await other] == [True, True]


async def test_a_close_that_is_cancelled_at_once_leaves_no_task_behind(tmp_path) -> None:
    """It still closes, and what it had begun ends."""
    store = await AsyncLibsqlStore.create(tmp_path / "state.db")
    before = asyncio.all_tasks()
    closing = asyncio.create_task(store.close())
    await asyncio.sleep(0)
    closing.cancel()
    async with asyncio.timeout(10):
        while left := asyncio.all_tasks() - before:
            await asyncio.wait(left)
