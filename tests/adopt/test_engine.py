"""After an adoption, harel itself goes on: it loads, claims and finishes what it finds."""

from __future__ import annotations

import json
from contextlib import ExitStack, closing
from typing import TYPE_CHECKING, Any

import pytest
from harel import SqliteStore, definition_from_dsl_file
from harel.engine.distributed import DistributedRunner
from harel.engine.transport import LibsqlTransport, SqliteTransport

from harel_schema import drift, migrate
from harel_schema.harel import LibsqlStore
from tests.adopt.conftest import EARLIER, FILES, LATER, Database, load, original

if TYPE_CHECKING:
    from harel import Execution

# Later than anything that the files hold, and than every lease in them.
NOW = 1_750_001_000.0
HOUR = 3600.0


class Service:
    """harel on an adopted database, at a time that it is told."""

    def __init__(self, store: Any, transport: type, target: str) -> None:
        order = definition_from_dsl_file(FILES / "order.stm", "order", actions={"fail": print})
        self.now = NOW
        self.store = store
        self.queue = noting(transport)(target, self.time, create_schema=False)
        self.runner = DistributedRunner(
            store, self.queue, {order.id: order}, clock=self.time, execution="inline"
        )
        self.worker = self.runner.worker("worker", clock=self.time)

    def time(self) -> float:
        """Return what the time is."""
        return self.now

    def work(self) -> None:
        """Take every message that can be claimed."""
        while self.worker.step():
            pass

    def finish(self) -> None:
        """Let time pass, with all timers fired, until nothing waits any more."""
        self.work()
        while self.store.due_timers(float("inf")):
            self.now += HOUR
            self.worker.fire_due_timers()
            self.work()

    def close(self) -> None:
        """Let go of the database."""
        self.queue.close()
        self.store.close()


def noting(transport: type) -> type:
    """Return a transport of harel's that notes the number of each message it hands out."""

    class Noting(transport):
        def __init__(self, *arguments: Any, **options: Any) -> None:
            super().__init__(*arguments, **options)
            self.claimed: set[int] = set()

        def claim(self, *arguments: Any, **options: Any) -> Any:
            lease = super().claim(*arguments, **options)
            self.claimed |= {lease.seq} if lease else set()
            return lease

    return Noting


@pytest.fixture(params=["harel", "ours"])
def service(request, file):
    """Return a function that adopts what a release wrote and starts an engine on it."""
    with ExitStack() as stack:

        def start(release: str) -> tuple[Database, Service]:
            database = file(release)
            migrate.adopt(database.target)
            store: Any = (
                SqliteStore(database.target, create_schema=False)
                if request.param == "harel"
                else LibsqlStore(database.target, driver="sqlite3", create_schema=False)
            )
            service = Service(store, SqliteTransport, database.target)
            stack.callback(service.close)
            return database, service

        yield start


def left(database: Database) -> dict[str, int]:
    """Count what still waits, by table."""
    names = ("outbox", "spawns", "timers", "transport_messages", "transport_groups")
    return {name: database.rows(f"SELECT count(*) FROM harel_{name}")[0][0] for name in names}


@pytest.mark.parametrize("release", [*EARLIER, *LATER])
def test_every_execution_loads(release, service):
    """The engine's model of each execution holds what the release wrote of it."""
    database, running = service(release)
    rows = database.rows("SELECT id, data FROM harel_executions")
    for name, data in rows:
        found: Execution = running.store.load(name)
        written = json.loads(data)
        loaded = json.loads(found.model_dump_json())
        for child in written["children"]:
            loaded["children"][child] = {
                key: loaded["children"][child][key] for key in written["children"][child]
            }
        assert {key: loaded[key] for key in written} == written
    assert len(running.store.list_executions(limit=1000).items) == len(rows)


@pytest.mark.parametrize("release", [*EARLIER, *LATER])
def test_every_message_is_claimed_and_every_machine_ends(release, service):
    """The queue is emptied, what a killed worker left is passed on, and nothing waits at last."""
    check_the_end(*service(release))


def test_the_same_on_a_server(tmp_path, sqld_url):
    """Adopted on a server, the machines come to their end on our store and harel's transport."""
    load(original(EARLIER[0]), sqld_url)
    migrate.adopt(sqld_url)
    with closing(Service(LibsqlStore(sqld_url), LibsqlTransport, sqld_url)) as running:
        check_the_end(Database(sqld_url), running)


def check_the_end(database: Database, running: Service) -> None:
    """Let the engine work to the end, and see that it came to one."""
    queued = {seq for (seq,) in database.rows("SELECT seq FROM harel_transport_messages")}
    assert len(queued) == 7
    assert min(left(database).values()) > 0
    running.runner.resume("suspended")
    running.work()
    assert queued <= running.queue.claimed
    running.finish()
    assert set(left(database).values()) == {0}
    items = running.store.list_executions(limit=1000).items
    ends = {each.id: each.status.value for each in items}
    assert ends.pop("failed") == "FAILED"
    assert set(ends.values()) <= {"DONE", "CANCELLED"}
    assert not drift.check(database.target)


@pytest.mark.parametrize(("release", "again"), [("0.2.0", True), ("0.2.2", False)])
def test_what_is_warned_of_is_true(release, again, service):
    """An old fan-out is started again by the engine, a later one goes on."""
    database, running = service(release)
    named = [
        each.executions for each in migrate.adopt(database.target).caveats if each.kind == "fan-out"
    ]
    assert ("lines" in sum(named, ())) is again
    before = set(running.store.load("lines").children)
    running.now += HOUR
    running.worker.fire_due_timers()
    running.work()
    assert (set(running.store.load("lines").children) - before != set()) is again
