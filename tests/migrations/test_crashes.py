"""A process that migrates is killed, or stopped: what it leaves is a revision, and goes on."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from functools import partial
from itertools import count
from typing import TYPE_CHECKING

import pytest

from harel_schema import dbapi, migrate
from harel_schema.testing import sqld_server
from tests.migrations.conftest import ALEMBIC, CHAIN, HEAD, Database
from tests.migrations.dying import dies, stopped

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

WAYS = {"up": ("base", HEAD), "down": (HEAD, "base")}
# Of how many statements one is the last: all of them in the long tests.
FILE = pytest.mark.parametrize("every", [4, pytest.param(1, marks=pytest.mark.soak)])
SERVER = pytest.mark.parametrize("every", [11, pytest.param(1, marks=pytest.mark.soak)])


def go(target: str, to: str) -> None:
    """Migrate up or down, by force where rows are in the way."""
    if to == HEAD:
        migrate.upgrade(target)
    else:
        migrate.downgrade(target, to, force=True)


def stations(way: str, folder: Path) -> tuple[Path, list[object]]:
    """Return a file at the start of the way, and the fingerprints of all revisions on it."""
    start = folder / f"{way}.db"
    walked = Database(str(folder / f"walked-{way}.db"))
    if way == "up":
        start.touch()
        steps: list[Callable[[], object]] = [
            partial(migrate.upgrade, walked.target, each) for each in CHAIN
        ]
    else:
        migrate.upgrade(walked.target)
        shutil.copy(walked.target, start)
        steps = [
            partial(migrate.downgrade, walked.target, each) for each in (*CHAIN[-2::-1], "base")
        ]
    found = [walked.fingerprint()]
    for step in steps:
        step()
        found.append(walked.fingerprint())
    return start, found


def killed_everywhere(way: str, targets: Iterator[str], every: int) -> list[Database]:
    """Migrate a database for `every` so many statements, in a process that dies there.

    It dies before the statement or after it.
    """
    left = []
    for number in count(0, every):
        for after in (False, True):
            database = Database(next(targets))
            if not dies(partial(go, database.target, WAYS[way][1]), number, after=after):
                # Each revision is a BEGIN, its statements, its version row and a COMMIT.
                assert number > 4 * len(CHAIN)
                return left
            left.append(database)
    return left


@FILE
@pytest.mark.parametrize("way", WAYS)
def test_killed_before_and_after_a_statement(way, tmp_path, every):
    """A file holds exactly one revision's schema after each kill, and the rerun reaches the end."""
    start, allowed = stations(way, tmp_path)

    def copies() -> Iterator[str]:
        for number in count():
            yield str(shutil.copy(start, tmp_path / f"{number}.db"))

    left = killed_everywhere(way, copies(), every)
    found = [database.fingerprint() for database in left]
    assert all(each in allowed for each in found)
    assert [each for each in allowed if each not in found] == [], "no kill left this revision"
    for database in left:
        go(database.target, WAYS[way][1])
        assert database.fingerprint() == allowed[-1]


@SERVER
@pytest.mark.parametrize("way", WAYS)
def test_killed_before_and_after_a_statement_on_a_server(way, tmp_path, every):
    """So does a database on sqld, which rolls back what a killed client had begun."""
    _, allowed = stations(way, tmp_path)
    with sqld_server(tmp_path / "sqld", admin=True, namespaces=True) as server:

        def namespaces() -> Iterator[str]:
            for number in count():
                url = server.create_namespace(f"n{number}")
                if way == "down":
                    migrate.upgrade(url)
                yield url

        left = killed_everywhere(way, namespaces(), every)
        found = [database.fingerprint() for database in left]
        assert all(each in allowed for each in found)
        # A server keeps a killed client's transaction for 5 s; one that waits takes it over.
        inside = [each for at, each in enumerate(left) if at % 2 == 0][1::4]
        processes = [start(each.target, way) for each in inside]
        assert [process.wait(timeout=60) for process in processes] == [0] * len(inside)
        assert all(each.fingerprint() == allowed[-1] for each in inside)


def start(target: str, way: str) -> subprocess.Popen[str]:
    """Start the migration in a process of its own."""
    code = "import sys; from tests.migrations.test_crashes import go; go(*sys.argv[1:])"
    return subprocess.Popen([sys.executable, "-c", code, target, WAYS[way][1]], text=True)


def killed_at_random(folder: Path, kills: int) -> None:
    """Kill `alembic upgrade head` from outside again and again, and compare what it leaves."""
    source, allowed = stations("up", folder)
    chosen = random.Random(4)
    ini = folder / "alembic.ini"
    done = 0
    for number in count():
        if done == kills:
            break
        database = Database(str(shutil.copy(source, folder / f"killed-{number}.db")))
        command = [*ALEMBIC, "-c", str(ini), "-x", f"target={database.target}", "upgrade", "head"]
        with subprocess.Popen(command, stderr=subprocess.PIPE) as process:
            assert process.stderr is not None
            # Where the log says that a revision is done, the next one is under way.
            for _ in range(chosen.randrange(len(CHAIN))):
                process.stderr.readline()
            until = time.perf_counter() + chosen.random() * 0.01
            while time.perf_counter() < until:
                pass
            process.kill()
        done += process.returncode == -signal.SIGKILL
        assert database.fingerprint() in allowed
        migrate.upgrade(database.target)
        assert database.fingerprint() == allowed[-1]


@pytest.mark.parametrize("kills", [4, pytest.param(100, marks=pytest.mark.soak)])
def test_killed_from_outside_at_any_moment(kills, tmp_path, root):
    """`kill -9` at random moments leaves a revision, whose rerun reaches head."""
    ini = (root / "alembic.ini").read_text().replace("%(here)s", str(root))
    (tmp_path / "alembic.ini").write_text(ini)
    killed_at_random(tmp_path, kills)


def test_a_stopped_migration_whose_transaction_is_stolen_starts_again(sqld_url):
    """Stopped for as long as the server waits, it leaves nothing behind, and runs again whole."""
    migrate.upgrade(sqld_url, "0003")
    before = Database(sqld_url).fingerprint()
    # Two of the six indexes are made.
    child = stopped(partial(migrate.upgrade, sqld_url), 3)
    other = dbapi.connect(sqld_url, timeout=30.0)
    other.execute("INSERT INTO harel_trace VALUES ('a', 0, 'b')")
    assert Database(sqld_url).fingerprint() == before
    other.commit()
    other.close()
    os.kill(child, signal.SIGCONT)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    assert migrate.current(sqld_url, shape=True).shape == ()
    assert Database(sqld_url).rows("SELECT * FROM harel_trace") == [("a", 0, "b")]
