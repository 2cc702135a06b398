"""A parcel service on harel: what the demo's database is full of.

`first_day` runs on harel's own SqliteStore and ends badly: two workers are killed between a commit
and the relay that delivers what the commit left behind, so rows stay in the outbox and in the
spawns. `later_days` goes on from there, on any store, until every parcel has come to its end.

    python examples/parcels.py state.db
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from harel import DurableRunner, Event, ObservedStore, SqliteStore, definition_from_dsl_file
from harel.engine.distributed import DistributedRunner
from harel.engine.transport import SqliteTransport

if TYPE_CHECKING:
    from collections.abc import Iterable

    from harel import Execution, Step

# Epoch seconds. The machines live on this clock, so that nobody has to wait for a timer.
MORNING = 1_790_000_000.125
MINUTE = 60.0
DAY = 24 * 60


class Happening(NamedTuple):
    """What happens to a parcel, in minutes after the first morning; "Order" creates it."""

    minute: int
    parcel: str
    kind: str
    data: dict[str, Any]

    @property
    def event(self) -> Event:
        """The event, with the same id each time: sent again, it changes nothing."""
        return Event(id=f"{self.parcel}/{self.kind}/{self.minute}", kind=self.kind, data=self.data)


FIRST_DAY = [
    Happening(0, "p-1", "Order", {"customer": "Ada"}),
    Happening(0, "p-2", "Order", {"customer": "Søren 🐝"}),
    Happening(0, "p-3", "Order", {"customer": "nobody pays"}),
    Happening(1, "p-1", "Pay", {"amount": 1999}),
    Happening(2, "p-2", "Pay", {"amount": 2**53 + 1}),
    Happening(3, "p-1", "Pack", {"box": "small"}),
    Happening(4, "p-1", "Label", {"carrier": "Ruche & Cie"}),
    Happening(5, "p-2", "Label", {"carrier": 'J. "Jo" O\'Hara'}),
    Happening(6, "p-2", "Pack", {"box": "large"}),
    Happening(200, "p-1", "Scan", {"place": "Aarhus"}),
    Happening(400, "p-1", "Deliver", {"to": "the neighbour"}),
    Happening(410, "p-6", "Order", {"customer": "never at home"}),
    Happening(411, "p-6", "Pay", {"amount": 600}),
    Happening(412, "p-6", "Pack", {"box": "small"}),
    Happening(413, "p-6", "Label", {"carrier": "on foot"}),
    Happening(480, "p-4", "Order", {"customer": "never packed"}),
    Happening(481, "p-4", "Pay", {"amount": 400}),
    Happening(490, "p-5", "Order", {"customer": "forgot to pay"}),
    Happening(491, "p-7", "Order", {"customer": "Grace"}),
    Happening(492, "p-8", "Order", {"customer": "Alan"}),
    Happening(493, "p-8", "Pay", {"amount": 800}),
]
QUEUED = Happening(494, "p-2", "Scan", {"place": "Ørsted"})
# The worker dies once it has committed the event and the machine stands in that state.
KILLED = [
    (Happening(495, "p-7", "Pay", {"amount": 700}), "Preparing"),
    (Happening(496, "p-8", "Pack", {"box": "round"}), "Preparing.Packing.Packed"),
]
LATER_DAYS = [
    # Who got no answer sends again.
    *(happening for happening, _ in KILLED),
    Happening(500, "p-4", "Label", {"carrier": "on foot"}),
    Happening(501, "p-7", "Label", {"carrier": "Ruche & Cie"}),
    Happening(502, "p-7", "Pack", {"box": "flat"}),
    Happening(503, "p-8", "Label", {"carrier": "Ruche & Cie"}),
    Happening(DAY, "p-7", "Scan", {"place": "Aarhus"}),
    Happening(DAY + 1, "p-2", "Deliver", {"to": "the customer"}),
    Happening(DAY + 2, "p-7", "Deliver", {"to": "the customer"}),
    Happening(DAY + 3, "p-8", "Deliver", {"to": "the customer"}),
]
LAST_SWEEP = 5 * DAY
ENDS = {
    "p-1": ("Delivered", "success"),
    "p-2": ("Delivered", "success"),
    "p-3": ("Cancelled", "cancelled"),
    "p-4": ("Cancelled", "cancelled"),
    "p-5": ("Cancelled", "cancelled"),
    "p-6": ("Lost", "failed"),
    "p-7": ("Delivered", "success"),
    "p-8": ("Delivered", "success"),
}


def hand_over(stm: Any, _event: Event) -> None:
    """Note in the parcel's context what the two regions reported."""
    context = stm.execution_ctx
    context["handed_over"] = sorted(context["region_results"].items())


class Service:
    """The parcel service on one store, at a time that only moves when something happens."""

    def __init__(self, store: Any, *, execution: str = "background") -> None:
        source = Path(__file__).with_name("parcel.stm")
        machine = definition_from_dsl_file(source, "parcel", actions={"hand_over": hand_over})
        self.now = MORNING
        self.store = store
        self.definitions = {machine.id: machine}
        self.runner = DurableRunner(
            store, self.definitions, clock=lambda: self.now, trace=True, execution=execution
        )

    def live(self, happenings: Iterable[Happening]) -> None:
        """Let the time pass, the timers fire, and each event be processed."""
        for happening in happenings:
            self.sweep(happening.minute)
            self.take(happening)

    def sweep(self, minute: float) -> None:
        """Move to `minute` and fire the timers that are due."""
        self.now = MORNING + MINUTE * minute
        self.runner.fire_due_timers()

    def take(self, happening: Happening) -> None:
        """Create the parcel, or process the event."""
        if happening.kind == "Order":
            self.runner.create("parcel", happening.data, happening.parcel)
        else:
            self.runner.process(happening.parcel, happening.event)

    def take_from_queue(self, path: Path, happening: Happening) -> None:
        """Send the event through harel's transport in the same file, and work the queue off."""
        self.now = MORNING + MINUTE * happening.minute
        with closing(SqliteTransport(path, lambda: self.now)) as queue:
            sender = DistributedRunner(
                self.store, queue, self.definitions, clock=lambda: self.now, trace=True
            )
            sender.send(happening.parcel, happening.event)
            worker = sender.worker()
            while worker.step():
                pass


def first_day(path: Path) -> None:
    """Write a file on which some parcels are done, some wait, and two were left half handled."""
    with closing(SqliteStore(path)) as store:
        service = Service(store)
        service.live(FIRST_DAY)
        service.take_from_queue(path, QUEUED)
    for number in range(len(KILLED)):
        command = [sys.executable, __file__, str(path), str(number)]
        worker = subprocess.run(command, check=False)
        if worker.returncode != -signal.SIGKILL:
            raise RuntimeError(f"worker {number} ended with {worker.returncode}, not by SIGKILL")


def killed_worker(path: Path, number: int) -> None:
    """Process one event, and die after its commit, before the relay."""
    happening, last_path = KILLED[number]

    def die(step: Step, execution: Execution) -> None:
        if step.event_id == happening.event.id and execution.active_path == last_path:
            os.kill(os.getpid(), signal.SIGKILL)

    service = Service(ObservedStore(SqliteStore(path), die), execution="inline")
    service.now = MORNING + MINUTE * happening.minute
    service.take(happening)


def later_days(store: Any) -> dict[str, tuple[str | None, str | None]]:
    """Go on to the end on any store; return each parcel's last state and outcome."""
    service = Service(store)
    service.now = MORNING + MINUTE * LATER_DAYS[0].minute
    service.runner.recover("parcel")
    service.live(LATER_DAYS)
    service.sweep(LAST_SWEEP)
    parcels = {parcel: store.load(parcel) for parcel in ENDS}
    return {parcel: (found.active_path, found.outcome) for parcel, found in parcels.items()}


if __name__ == "__main__":
    match sys.argv[1:]:
        case [path]:
            first_day(Path(path))
        case [path, number]:
            killed_worker(Path(path), int(number))
        case _:
            sys.exit("usage: python parcels.py FILE")
