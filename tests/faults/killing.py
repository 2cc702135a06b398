"""Rounds of workers that commit to one database until somebody is killed; an audit after each.

Started as ``python -m tests.faults.killing MODES FOLDER ROUNDS SEED``: one mode after another, with
commas between. A mode names what the workers commit to, ``libsql`` or ``sqlite3`` (a file),
``server`` or ``replica``, and they are killed with SIGKILL at a random moment of their opening or
committing; with ``server-killed`` the server is, and the workers go on; with ``stopped:SECONDS`` it
is stopped for so long. Prints one JSON object a round: its mode, how many commits were acknowledged
in it so far, and what is wrong.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import sys
import threading
import time
import traceback
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harel_schema import LibsqlStore
from harel_schema.testing import sqld_server
from tests.faults.ledger import Ledger, advance, audit, read, work

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from harel_schema.testing import Server

WORKERS = 2
# Loaded once, before any process is forked.
LOADED = [import_module(name) for name in ("httpx", "libsql", "harel_schema.backends.server")]


def forked(run: Callable[[], object]) -> int:
    """Start `run` in a process of its own, which ends with 0 or says why not; return its id."""
    child = os.fork()
    if child:
        return child
    try:
        run()
    except BaseException:  # noqa: BLE001 - the child ends here, whatever it is
        sys.stderr.write(traceback.format_exc())
        sys.stderr.flush()
        os._exit(1)
    os._exit(0)


def ended(child: int) -> int:
    """Wait for a process, and return how it ended."""
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def spin(seconds: float) -> None:
    """Let some time pass."""
    until = time.perf_counter() + seconds
    while time.perf_counter() < until:
        pass


class Rounds:
    """The workers, what they commit to, and the one that kills."""

    def __init__(self, mode: str, folder: Path, chance: random.Random) -> None:
        self.mode, _, self.seconds = mode.partition(":")
        self.folder = folder
        self.chance = chance
        self.ledger = folder / "ledger"
        self.server: Server | None = None

    @property
    def database(self) -> str:
        """What is audited."""
        return self.server.url if self.server else str(self.folder / "state.db")

    def opened(self, worker: int) -> Any:
        """Open a worker's store."""
        if self.mode == "replica":
            return LibsqlStore(self.folder / f"replica{worker}.db", sync_url=self.database)
        if self.server:
            return LibsqlStore(self.database, request_timeout=2.0)
        return LibsqlStore(self.database, driver=self.mode)

    def started(self, name: str, pipe: int) -> list[int]:
        """Start the workers; each writes its number to `pipe` for every acknowledged commit."""

        def run(worker: int) -> None:
            say = partial(os.write, pipe, bytes([worker]))
            with self.opened(worker) as store:
                work(store, f"{name}w{worker}", Ledger(self.ledger, say))

        return [forked(partial(run, worker)) for worker in range(WORKERS)]

    @contextmanager
    def working(self, name: str) -> Iterator[int]:
        """Let workers run in the block, which gets a pipe of their commits; kill them then."""
        reading, writing = os.pipe()
        children = self.started(name, writing)
        os.close(writing)
        try:
            yield reading
        finally:
            for child in children:
                os.kill(child, signal.SIGKILL)
            endings = [ended(child) for child in children]
            os.close(reading)
        if endings != [-signal.SIGKILL] * WORKERS:
            raise RuntimeError(f"a worker ended by itself: {endings}")

    def kill_workers(self, number: int) -> list[str]:
        """Kill them all at a random moment; return what is wrong after that."""
        commits = self.chance.choice([0, 0, *range(1, 40)])
        with self.working(f"r{number}") as pipe:
            for _ in range(commits):
                os.read(pipe, 1)
            spin(self.chance.random() * (0.005 if commits else 0.05))
        wrong = self.reopened(number)
        return wrong + audit(self.database, read(self.ledger))

    def reopened(self, number: int) -> list[str]:
        """Open the stores as the next worker will, and write; return what is wrong."""

        def run(worker: int) -> None:
            key = f"opened{number}w{worker}"
            with self.opened(worker) as store:
                advance(store, key, Ledger(self.ledger), key)
                if store.load(key).version != 1:
                    raise RuntimeError("it does not read its own write")

        endings = [ended(forked(partial(run, worker))) for worker in range(WORKERS)]
        wrong = [f"the next open failed: {endings}"] if any(endings) else []
        for replica in self.folder.glob("replica?.db"):
            wrong += self.checked(replica)
        return wrong

    def checked(self, replica: Path) -> list[str]:
        """Return what is wrong with a copy of a replica's file: its own is the driver's alone."""
        copies = self.folder / "copy"
        copies.mkdir()
        for path in self.folder.glob(f"{replica.name}*"):
            shutil.copy(path, copies / path.name.replace(replica.name, "copy.db"))
        wrong = audit(copies / "copy.db", [])
        shutil.rmtree(copies)
        return [f"{replica.name}: {each}" for each in wrong]

    def fail_server(self, pipe: int) -> list[str]:
        """Kill the server, or stop it for a while, under workers that must go on then."""
        for _ in range(self.chance.randrange(1, 60)):
            os.read(pipe, 1)
        spin(self.chance.random() * 0.005)
        if self.mode == "server-killed":
            self.server.kill()
            spin(self.chance.random() * 0.05)
            self.server.start()
        else:
            self.server.pause()
            threading.Event().wait(float(self.seconds))
            self.server.resume()
        os.set_blocking(pipe, False)
        with suppress(BlockingIOError):
            while os.read(pipe, 65536):
                pass
        os.set_blocking(pipe, True)
        waited_for = set(range(WORKERS))
        while waited_for:
            waited_for -= set(os.read(pipe, 4096))
        return audit(self.database, read(self.ledger))

    def run(self, rounds: int) -> Iterator[list[str]]:
        """Yield what is wrong after each round, and once more at the end."""
        with ExitStack() as stack:
            if self.mode not in ("libsql", "sqlite3"):
                self.server = stack.enter_context(sqld_server(self.folder / "sqld"))
            if self.mode in ("libsql", "sqlite3", "server", "replica"):
                yield from map(self.kill_workers, range(rounds))
                return
            with self.working("w") as pipe:
                for _ in range(rounds):
                    yield self.fail_server(pipe)
            yield audit(self.database, read(self.ledger))


def main() -> None:
    """Run the rounds of each mode; stop at the first one after which something is wrong."""
    modes, folder, rounds, seed = sys.argv[1:]
    for mode in modes.split(","):
        own = Path(folder) / mode
        own.mkdir()
        loop = Rounds(mode, own, random.Random(int(seed)))
        for wrong in loop.run(int(rounds)):
            found = {"mode": mode, "acknowledged": len(read(loop.ledger)), "wrong": wrong[:20]}
            sys.stdout.write(json.dumps(found) + "\n")
            sys.stdout.flush()
            if wrong:
                return


if __name__ == "__main__":
    main()
