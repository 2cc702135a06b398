"""Run the harel that is installed, whatever its release, and leave a file full of its work.

Run by `make.py` in a virtual environment of its own: ``python write.py FILE``. It imports harel
only, and of that only what every release from 0.1 on has.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from harel import Event, SqliteStore, definition_from_dsl_file
from harel.engine.distributed import DistributedRunner
from harel.engine.transport import SqliteTransport

# Epoch seconds; a float that has no short decimal form, so that a copy of it must be exact.
START = 1_750_000_000.1
LEASE = 30.0


class Killed(Exception):
    """The worker died."""


class Store(SqliteStore):
    """harel's own store; a worker on it can die between its commit and the relay."""

    dying = False

    def pending_spawns(self) -> Any:
        """Return what the relay asks for, or die."""
        if self.dying:
            raise Killed
        return super().pending_spawns()

    def pending_outbox(self) -> Any:
        """Return what the relay asks for, or die."""
        if self.dying:
            raise Killed
        return super().pending_outbox()


def fail(*_: Any) -> None:
    """Fail, as an action of a machine."""
    raise RuntimeError("out of paper: “A4”, naïve 📎")


class Service:
    """Orders on one file, at a time that only moves when it is told to."""

    def __init__(self, path: str) -> None:
        source = Path(__file__).with_name("order.stm")
        order = definition_from_dsl_file(source, "order", actions={"fail": fail})
        self.now = START
        self.store = Store(path)
        # One step of each trace is kept: the files are to be small.
        self.store.trace_max = 1
        self.queue = SqliteTransport(path, lambda: self.now)
        self.runner = DistributedRunner(
            self.store, self.queue, {order.id: order}, clock=lambda: self.now, trace=True
        )
        self.sent = 0

    def close(self) -> None:
        """Let go of the file."""
        self.queue.close()
        self.store.close()

    def order(self, name: str, **context: Any) -> None:
        """Create an order and let it come to wait."""
        self.runner.create("order", {"customer": "Søren", **context}, name)
        self.work()

    def send(self, execution: str, kind: str, **data: Any) -> None:
        """Put an event into the queue."""
        self.sent += 1
        self.runner.send(execution, Event(id=f"e-{self.sent}", kind=kind, data=data))

    def take(self, execution: str, kind: str, **data: Any) -> None:
        """Put an event into the queue and let a worker take all that there is."""
        self.send(execution, kind, **data)
        self.work()

    def work(self) -> None:
        """Let a worker empty the queue."""
        self.now += 1.25
        worker = self.runner.worker("worker", LEASE, clock=lambda: self.now)
        while worker.step():
            pass

    def die(self, execution: str, kind: str, **data: Any) -> None:
        """Let a worker commit an event, and die before it passes on what came of it."""
        self.send(execution, kind, **data)
        self.store.dying = True
        try:
            self.runner.worker("dead", LEASE, clock=lambda: self.now).step()
        except Killed:
            self.store.dying = False
        else:
            raise RuntimeError(f"{kind} for {execution} left nothing to pass on")

    def child(self, parent: str, number: int) -> str:
        """Return the id of a machine that an order started."""
        children = self.store.load(parent).children.items()
        return [name for name, child in children if child.submachine][number]

    def prepared(self, name: str, lines: list[str]) -> None:
        """Bring an order to where its lines are checked."""
        self.order(name, lines=lines, amount=2**53 + 1)
        self.take(name, "Pay", amount=2**53 + 1)
        self.take(name, "Pack", box="“large”")
        self.take(name, "Label", carrier="J. 'Jo' O\"Hara")

    def billed(self, name: str) -> None:
        """Bring an order to where it is billed."""
        self.prepared(name, ["ink"])
        self.take(self.child(name, 0), "Check", note="ok")


def live(service: Service) -> None:
    """Leave something of everything in the file."""
    service.billed("delivered")
    service.take(service.child("delivered", -1), "Bill", number=1)
    service.take("delivered", "Deliver", to="the neighbour")

    service.order("terminated")
    service.runner.terminate("terminated")
    service.order("waiting")
    service.order("failed")
    service.take("failed", "Break", why="no paper")
    service.order("regions")
    service.take("regions", "Pay", amount=-1)
    service.take("regions", "Pack", box="small")
    service.prepared("lines", ["ink", "paper"])
    service.take(service.child("lines", 0), "Check", note="ok")
    service.prepared("line", ["ink"])
    service.billed("billing")
    service.order("suspended")
    service.runner.suspend("suspended")

    # From here on the queue is not emptied any more.
    service.order("spawning")
    service.order("emitting")
    service.take("emitting", "Pay", amount=7)
    service.die("spawning", "Pay", amount=0)
    service.die(next(iter(service.store.load("emitting").children)), "Pack", box="round")
    service.send("suspended", "Pay", amount=5)
    park(service)
    service.send("waiting", "Pay", amount=3)
    service.send("regions", "Label", carrier="on foot")
    service.send("waiting", "Pack", box="flat")
    service.send("nobody", "Pay", amount=1)


def park(service: Service) -> None:
    """Let a worker put the event of a suspended order aside."""
    lease = service.queue.claim("worker", LEASE)
    if lease is None or lease.group_id != "suspended":
        raise RuntimeError(f"claimed {lease} instead")
    service.queue.nack(lease, delay=60.0)


if __name__ == "__main__":
    service = Service(sys.argv[1])
    try:
        live(service)
    finally:
        service.close()
