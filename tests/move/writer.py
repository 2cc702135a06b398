"""A worker of its own process that commits until its database is moved, and keeps a ledger.

Started as ``python -m tests.move.writer KIND DATABASE NAME``, KIND being ``ours``, ``async``,
``harel`` (harel's own SqliteStore) or ``binding`` (ours with harel's models). Prints a line when
it has begun, another when its database was moved and it writes at the new address (our stores do),
and ends after some more commits there: then with its ledger, one JSON object, of what it had
acknowledged and nothing else.
"""

from __future__ import annotations

import json
import sqlite3
import sys
from contextlib import ExitStack, closing, suppress
from dataclasses import asdict, dataclass, field
from typing import Any

from harel_schema import StoreMoved, errors, models
from tests.store.support import Opener

EXECUTIONS = 6
MORE = 20
# Seconds to wait for a lock: four processes fight for it, on a machine that may be busy.
PATIENCE = 30.0


@dataclass
class Ledger:
    """What was acknowledged, as rows of the tables."""

    versions: dict[str, int] = field(default_factory=dict)
    outbox: dict[int, tuple[str | None, str]] = field(default_factory=dict)
    processed: list[tuple[str, str]] = field(default_factory=list)
    timers: dict[str, float] = field(default_factory=dict)
    spawns: list[str] = field(default_factory=list)
    trace: dict[str, int] = field(default_factory=dict)
    commits: int = 0
    moved_to: str | None = None


class Worker:
    """Advances its executions in turn, with everything that a commit can have."""

    def __init__(self, name: str, model: Any) -> None:
        self._name = name
        self._model = model
        self._executions: dict[str, Any] = {}
        self.ledger = Ledger()

    def step(self, store: Any, number: int) -> None:
        """Make one commit, and what follows of it; note each when it is acknowledged."""
        ledger, key = self.ledger, f"{self._name}-{number % EXECUTIONS}"
        exe = self._executions.get(key)
        if exe is None:
            exe = self._model.Execution(id=key, definition_id="d")
        event = self._model.Event(id=f"{key}-{number}", kind="k")
        op = "cancel" if number % 5 == 4 else "schedule"
        path = f"p{number % 2}"
        seqs = store.commit(
            exe,
            [(key, event), (None, event)],
            event.id,
            [self._model.TimerOp(op, path, number + 0.1)],
            [(f"{key}/{number}", "root", {})],
            trace={"n": number},
        )
        self._executions[key] = exe
        ledger.commits += 1
        ledger.versions[key] = exe.version
        ledger.outbox |= dict(zip(seqs, ((key, event.id), (None, event.id)), strict=True))
        ledger.processed.append((key, event.id))
        ledger.spawns.append(f"{key}/{number}")
        ledger.trace[key] = ledger.trace.get(key, 0) + 1
        ledger.timers.pop(f"{key} {path}", None)
        if op == "schedule":
            ledger.timers[f"{key} {path}"] = number + 0.1
        store.ack_outbox(seqs[0])
        del ledger.outbox[seqs[0]]
        if number % 7 == 6:
            self._purge(store, key)

    def _purge(self, store: Any, key: str) -> None:
        ledger = self.ledger
        if not store.purge(key, ledger.versions[key]):
            raise AssertionError(key)
        del self._executions[key], ledger.versions[key], ledger.trace[key]
        ledger.processed = [row for row in ledger.processed if row[0] != key]
        ledger.spawns = [child for child in ledger.spawns if not child.startswith(f"{key}/")]
        ledger.outbox = {seq: row for seq, row in ledger.outbox.items() if row[0] != key}
        ledger.timers = {k: v for k, v in ledger.timers.items() if not k.startswith(f"{key} ")}


def model_of(kind: str) -> Any:
    """Return where the classes of a kind are."""
    if kind in ("ours", "async"):
        return models
    from harel.engine import execution, store  # noqa: PLC0415 - not every kind needs harel
    from harel.spec import states  # noqa: PLC0415

    class Harel:
        Execution = execution.Execution
        Event = states.Event
        TimerOp = store.TimerOp

    return Harel


def opened(kind: str, database: str, stack: ExitStack) -> Any:
    """Open a store of a kind."""
    if kind == "harel":
        from harel.engine.store import SqliteStore  # noqa: PLC0415

        return stack.enter_context(closing(SqliteStore(database)))
    if kind == "binding":
        from harel_schema.harel import LibsqlStore  # noqa: PLC0415

        return stack.enter_context(LibsqlStore(database, timeout=PATIENCE))
    return Opener("async" if kind == "async" else "sync", database, stack, timeout=PATIENCE)()


def say(line: str) -> None:
    """Tell the test."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def until_moved(worker: Worker, store: Any) -> str:
    """Commit until a fence is met; return the address in it."""
    for number in range(10**9):
        try:
            worker.step(store, number)
        except StoreMoved as moved:
            return moved.address
        except sqlite3.IntegrityError as error:
            return str(error).removeprefix("moved to ")
        if number == MORE:
            say("begun")
    raise AssertionError("never moved")


def main() -> None:
    """Work at the source, then at the destination; print the ledger."""
    kind, database, name = sys.argv[1:]
    worker = Worker(name, model_of(kind))
    with ExitStack() as stack:
        address = until_moved(worker, opened(kind, database, stack))
    worker.ledger.moved_to = address
    say("moved")
    if kind != "harel":
        follow(worker, kind, address)
    say(json.dumps(asdict(worker.ledger)))


def follow(worker: Worker, kind: str, address: str) -> None:
    """Go on at the destination."""
    with ExitStack() as stack:
        store = None
        while store is None:
            # Between the fence and the opening of the destination neither takes a commit.
            with suppress(errors.StoreError):
                store = opened(kind, address, stack)
        for number in range(MORE):
            worker.step(store, 10**6 + number)


if __name__ == "__main__":
    main()
