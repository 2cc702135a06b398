"""The main job, end to end, on real input: `make demo`.

A file that the real harel engine wrote is brought under migrations, copied to a real libSQL
server, verified and checked there; the same machines then go on from the server to their end.
Last, the server's database is tampered with, and the tools must name what was done to it.

Every command is the one that a user types; its output is shown as it came. The demo exits 1, and
keeps its folder, as soon as anything is not as it should be.
"""

from __future__ import annotations

import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from contextlib import closing
from importlib.metadata import version
from pathlib import Path

import parcels

from harel_schema import dbapi
from harel_schema.devserver import run
from harel_schema.harel import LibsqlStore

ROOT = Path(__file__).resolve().parent.parent
BIN = Path(sys.executable).parent
TABLES = ("executions", "outbox", "processed_events", "timers", "spawns", "trace")
LOST_INDEX = "harel_transport_messages_by_group"


def main() -> None:
    """Run the demo in a folder of its own."""
    folder = Path(tempfile.mkdtemp(prefix="harel-schema-demo-"))
    demo = Demo(folder)
    started = time.monotonic()
    try:
        demo.run()
    except Surprise as surprise:
        print(f"\nNOT AS IT SHOULD BE: {surprise}\nThe files are kept in {folder}")
        sys.exit(1)
    shutil.rmtree(folder)
    print(f"\nAll as it should be, in {time.monotonic() - started:.1f} s.")


class Surprise(Exception):
    """Something was not as the demo promises."""


class Demo:
    """The story, told by real commands in `folder`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.steps = 0

    def run(self) -> None:
        """Tell it."""
        self.write_a_file()
        self.migrate_it()
        with run(self.folder / "server") as server:
            self.say(f"A real libSQL server runs on {server.url}")
            self.move_to(server.url)
            self.go_on_from(server.url)
            self.find_what_was_tampered_with(server.url)

    def write_a_file(self) -> None:
        """Let harel's own store write the file."""
        self.say(f"harel {version('harel')} runs a day of parcels; two workers are killed")
        self.command("python", str(ROOT / "examples" / "parcels.py"), "state.db")
        left = self.count("state.db")
        print("   rows: " + ", ".join(f"{table} {rows}" for table, rows in left.items()))
        for table in TABLES:
            self.expect(left[table] > 0, f"{table} is empty")

    def migrate_it(self) -> None:
        """Take the file over, as a deploy does."""
        self.say("A deploy brings the file under migrations")
        before = self.count("state.db")
        config = str(ROOT / "alembic.ini")
        upgrade = ["alembic", "-c", config, "-x", "target=state.db", "upgrade", "head"]
        self.command(*upgrade, shows=["taken over"])
        self.command("harel-schema", "current", "state.db", shows=["(head)"])
        self.command("harel-schema", "check", "state.db")
        self.expect(self.count("state.db") == before, "the migration changed rows")

    def move_to(self, url: str) -> None:
        """Copy the file to the server, and prove it."""
        self.say("The file is copied to the server, verified and checked")
        self.command("harel-schema", "copy", "state.db", url)
        self.command("harel-schema", "verify", "state.db", url)
        self.command("harel-schema", "check", url)
        self.expect(self.count("state.db") == self.count(url), "the row counts differ")

    def go_on_from(self, url: str) -> None:
        """Let the same machines live on, on our store."""
        self.say("The same machines go on from the server, through harel_schema.harel.LibsqlStore")
        with LibsqlStore(url) as store:
            ends = parcels.later_days(store)
        for parcel, (state, outcome) in ends.items():
            print(f"   {parcel} ends in {state} ({outcome})")
        self.expect(ends == parcels.ENDS, f"expected {parcels.ENDS}")
        left = self.count(url)
        for table in ("outbox", "spawns", "timers"):
            self.expect(left[table] == 0, f"{table} still has rows")

    def find_what_was_tampered_with(self, url: str) -> None:
        """Change a row and drop an index; the tools must name both."""
        self.say("A copy of the end is kept; then a row is changed and an index dropped")
        self.command("harel-schema", "copy", url, "end.db")
        self.command("harel-schema", "verify", "end.db", url)
        self.tamper(url, "UPDATE harel_executions SET version = version + 1 WHERE id = 'p-5'")
        self.tamper(url, f"DROP INDEX {LOST_INDEX}")
        named = ["p-5", LOST_INDEX]
        self.command("harel-schema", "verify", "end.db", url, exit_code=1, shows=named)
        self.command("harel-schema", "check", url, exit_code=1, shows=[LOST_INDEX])

    def say(self, text: str) -> None:
        """Begin a step of the story."""
        self.steps += 1
        print(f"\n{self.steps}. {text}")

    def command(self, *command: str, exit_code: int = 0, shows: list[str] | None = None) -> None:
        """Run a command of this environment, show it, and hold it to its promise."""
        shown = shlex.join(command).replace(str(ROOT), ".")
        print(f"   $ {shown}", flush=True)
        started = time.monotonic()
        done = subprocess.run(
            [str(BIN / command[0]), *command[1:]],
            cwd=self.folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        for line in done.stdout.splitlines():
            print(f"     {line}")
        print(f"     [exit {done.returncode}, {time.monotonic() - started:.1f} s]")
        self.expect(done.returncode == exit_code, f"{shown}: exit {done.returncode}")
        for text in shows or []:
            self.expect(text in done.stdout, f"{shown} does not say {text}")

    def tamper(self, url: str, sql: str) -> None:
        """Run one statement behind everybody's back."""
        print(f"   sql> {sql}")
        with closing(dbapi.connect(url)) as connection, connection:
            connection.execute(sql)

    def count(self, database: str) -> dict[str, int]:
        """Return the number of rows of harel's tables."""
        name = database if "://" in database else str(self.folder / database)
        with closing(dbapi.connect(name)) as connection:
            return {
                table: connection.execute(f"SELECT count(*) FROM harel_{table}").fetchone()[0]
                for table in TABLES
            }

    def expect(self, holds: bool, otherwise: str) -> None:  # noqa: FBT001
        """End the demo when a promise is broken."""
        if not holds:
            raise Surprise(otherwise)


if __name__ == "__main__":
    main()
