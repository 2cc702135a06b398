"""What real stores have written, however long and at random, is no finding."""

from __future__ import annotations

import random
import shutil
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from typing import TYPE_CHECKING, Any

import pytest
from harel import DurableRunner, Event, SqliteStore
from harel.engine.control import PurgeRefused

from harel_schema import LibsqlStore, StoreConflict, migrate, models, transfer
from harel_schema import harel as binding
from harel_schema.doctor import diagnose
from tests.adopt.conftest import EARLIER, LATER, original
from tests.store.test_zoo import Clock, runner

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


class Crash(RuntimeError):
    """The end of a worker."""


class Mortal:
    """A store whose worker dies at a call of the relay now and then."""

    def __init__(self, store: Any, chance: random.Random) -> None:
        self._store = store
        self._chance = chance

    def __getattr__(self, name: str) -> Any:
        dies = name in {"pending_spawns", "ack_spawn", "ack_outbox", "delete_timer", "purge"}
        if dies and self._chance.random() < 0.02:
            raise Crash
        return getattr(self._store, name)


def harel_lives(store: Any, chance: random.Random, steps: int) -> None:
    """Let harel's own engine work on zoos, with commands, crashes, and purges."""
    clock = Clock()
    zoo = runner(DurableRunner, Mortal(store, chance), clock)
    names: list[str] = []

    def create() -> None:
        names.append(f"z{len(names)}")
        zoo.create("zoo", {"items": [True] * chance.randrange(3)}, names[-1])

    def event() -> None:
        kind = chance.choice(["Early", "Go", "Go", "Left", "Left", "Reset"])
        zoo.process(chance.choice(names), Event(kind=kind, data={"note": "x"}))

    def time() -> None:
        clock.now += chance.choice([1, 31, 61, 4_000])
        zoo.fire_due_timers()

    def control() -> None:
        command = chance.choice([zoo.terminate, zoo.cancel, zoo.suspend, zoo.resume])
        command(chance.choice(names))

    def purge() -> None:
        with suppress(PurgeRefused):
            zoo.purge(chance.choice(names))

    actions = [create, *[event] * 5, *[time] * 3, control, purge, lambda: zoo.recover("zoo")]
    create()
    for _ in range(steps):
        # The name may be of one that was purged, or was never born.
        with suppress(Crash, KeyError):
            chance.choice(actions)()


class Worker:
    """Calls our store's methods at random, as an engine may: every status, every companion."""

    def __init__(self, store: Any, chance: random.Random) -> None:
        store.publish_definition("a", 1, "d", "{}")
        store.publish_definition("b", 1, "d", "{}")
        store.trace_max = 7
        self.store, self.chance = store, chance
        self.now = 1000.0
        self.exes: dict[str, models.Execution] = {}

    def work(self, steps: int) -> None:
        """Do so many things."""
        actions = [*[self.commit] * 9, self.purge, self.conflict, self.ack, self.sweep]
        for _ in range(steps):
            self.chance.choice(actions)()

    def commit(self) -> None:
        """Advance an execution, with all that may come with it."""
        chance, exes = self.chance, self.exes
        self.now += chance.random() * 100
        key = f"e{chance.randrange(20)}"
        exe = exes.get(key) or models.Execution(id=key, definition_id=chance.choice("ab"))
        exe.status = chance.choice([*models.Status])
        exe.parent_id = exe.parent_id or chance.choice([None, *exes])
        exe.updated_at = self.now
        exes[key] = exe
        op = "cancel" if exe.status is models.Status.DONE else "schedule"
        self.store.commit(
            exe,
            [(chance.choice([None, *exes]), models.Event(kind="Go"))] * chance.randrange(3),
            str(chance.random()),
            timers=[models.TimerOp(op, "a", self.now + 60)],
            spawns=[(f"{key}:{self.now}", "", {})] * chance.randrange(2),
            trace={"x": float("nan")},
        )

    def purge(self) -> None:
        """Purge one that is nobody's parent."""
        parents = {exe.parent_id for exe in self.exes.values()}
        leaf = next((key for key in self.exes if key not in parents), None)
        if leaf is not None:
            assert self.store.purge(leaf, self.exes.pop(leaf).version)

    def conflict(self) -> None:
        """Lose a version check."""
        for key in self.chance.sample([*self.exes], min(1, len(self.exes))):
            with pytest.raises(StoreConflict):
                self.store.save(models.Execution(id=key, definition_id="a"))

    def ack(self) -> None:
        """Deliver half of what waits."""
        for event in self.store.pending_outbox()[::2]:
            self.store.ack_outbox(event.seq)
        for spawn in self.store.pending_spawns()[::2]:
            self.store.ack_spawn(spawn.seq)

    def sweep(self) -> None:
        """Fire what is due."""
        for timer in self.store.due_timers(self.now):
            self.store.delete_timer(*timer)


def by_harel(path: Path, chance: random.Random, steps: int) -> None:
    """Write by harel's own store, in a file that it made."""
    with closing(SqliteStore(path)) as store:
        harel_lives(store, chance, steps)


def by_harel_in_ours(path: Path, chance: random.Random, steps: int) -> None:
    """Write by harel's own store, in a migrated file."""
    migrate.upgrade(path)
    by_harel(path, chance, steps)


def by_both(path: Path, chance: random.Random, steps: int) -> None:
    """Write by harel's engine on our store."""
    with binding.LibsqlStore(path) as store:
        harel_lives(store, chance, steps)


def by_us(path: Path, chance: random.Random, steps: int) -> None:
    """Write by our store, without an engine."""
    with LibsqlStore(path) as store:
        Worker(store, chance).work(steps)


WRITERS = [by_harel, by_harel_in_ours, by_both, by_us]


def assert_sound(target: Any, **options: Any) -> None:
    """Fail with everything that was found."""
    assert "\n".join(map(str, diagnose(target, **options).findings)) == ""


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("write", WRITERS, ids=lambda write: write.__name__)
def test_what_stores_write_is_sound(tmp_path: Path, write: Callable[..., None], seed: int) -> None:
    """After each life nothing is found, on the file and on a server."""
    path = tmp_path / "state.db"
    write(path, random.Random(seed), 200)
    assert_sound(path)


def test_what_stores_write_is_sound_on_a_server(tmp_path: Path, sqld_url: str) -> None:
    """A server that got such a file finds nothing either."""
    path = tmp_path / "state.db"
    by_both(path, random.Random(9), 60)
    transfer.copy(path, sqld_url)
    assert_sound(sqld_url)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(2, 12))
@pytest.mark.parametrize("write", WRITERS, ids=lambda write: write.__name__)
def test_what_stores_write_for_long_is_sound(tmp_path: Path, write, seed: int) -> None:
    """The same for thousands of steps."""
    path = tmp_path / "state.db"
    for _ in range(5):
        write(path, random.Random(seed), 1_000)
        assert_sound(path)
        path.unlink()


@pytest.mark.parametrize("release", [*EARLIER, *LATER])
def test_what_old_releases_wrote_is_sound(tmp_path: Path, release: str) -> None:
    """Each release's file has all that harel keeps; adopted, it is sound."""
    path = tmp_path / "state.db"
    shutil.copy(original(release), path)
    migrate.adopt(path)
    assert_sound(path)
    assert sum(each.rows for each in diagnose(path).tables) > 100


def test_a_store_is_sound_while_it_is_written(sqld_url: str) -> None:
    """A server has no snapshot of all tables, and yet what is found fits together."""
    with LibsqlStore(sqld_url) as store, ThreadPoolExecutor(1) as pool:
        writing = pool.submit(Worker(store, random.Random(3)).work, 150)
        rounds = 0
        while not writing.done() or rounds < 3:
            assert_sound(sqld_url)
            rounds += 1
        writing.result()
