"""An adoption is whole or not at all: killed, cut off, or in a race with others."""

from __future__ import annotations

import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from harel_schema import drift, migrate
from harel_schema.errors import ConnectionLost
from tests.adopt import killed
from tests.adopt.conftest import Database, load, original
from tests.adopt.test_releases import HEAD, promised
from tests.support.proxy import Cut, Drop, Fault, FaultyProxy, Hang, Recorded

ADOPT = """
import json, sys
from harel_schema import migrate
print("ready", flush=True)
sys.stdin.readline()
done = migrate.adopt(sys.argv[1])
print(json.dumps([done.renamed, done.after]))
"""


def test_killed_before_any_statement(file, tmp_path):
    """What a killed process leaves is the old database or the adopted one, and goes to head."""
    before = file("0.1.4").everything()
    folder = tmp_path / "killed"
    folder.mkdir()
    command = [sys.executable, killed.__file__, str(original("0.1.4")), str(folder)]
    subprocess.run(command, check=True, timeout=100)
    left = sorted(folder.glob("*.db"), key=lambda path: int(path.stem))
    *old, new = (Database(str(path)) for path in left)
    # BEGIN, 7 names, groups, its rows, 2 indexes, the version table, its row, COMMIT.
    assert len(old) == 15
    for database in old:
        assert database.everything() == before
    assert migrate.current(new.target).revision == "0001"
    assert not drift.check(new.target, strict=True)
    for database in (old[0], old[-1], new):
        migrate.adopt(database.target)
        assert database.everything() == promised(before)


def at(statement: bytes, fault: Fault, url: str) -> FaultyProxy:
    """Return a proxy that does `fault` to the first request that holds a statement."""

    class Proxy(FaultyProxy):
        def take(self, request: Recorded) -> Fault:
            passed = super().take(request)
            seen = sum(statement in each.body for each in self.requests)
            return fault if statement in request.body and seen == 1 else passed

    return Proxy(url)


@pytest.mark.parametrize(
    ("statement", "fault"),
    [
        (b"BEGIN IMMEDIATE", Drop()),
        # The server lets go of a transaction when another writer has waited for it.
        (b"RENAME TO", Cut(after=0)),
        (b"COMMIT", Cut(after=0)),
    ],
)
def test_a_lost_answer_is_found_out(statement, fault, file, sqld_url):
    """Whether what was lost had been done or not, the adoption comes to its end, once."""
    before = file("0.1.4").everything()
    load(original("0.1.4"), sqld_url)
    with at(statement, fault, sqld_url) as proxy:
        done = migrate.adopt(proxy.url)
    assert len(done.renamed) == 7
    assert Database(sqld_url).everything() == promised(before)


def test_a_server_that_dies_loses_nothing(file, sqld):
    """A server killed before the COMMIT has the old tables when it starts again."""
    before = file("0.6.1").everything()
    load(original("0.6.1"), sqld.url)
    hang = Hang()
    with at(b"COMMIT", hang, sqld.url) as proxy, ThreadPoolExecutor() as pool:
        adopting = pool.submit(migrate.adopt, proxy.url)
        assert hang.arrived.wait(60)
        sqld.kill()
        hang.release.set()
        with pytest.raises(ConnectionLost):
            adopting.result(60)
    sqld.start()
    assert Database(sqld.url).everything() == before
    migrate.adopt(sqld.url)
    assert Database(sqld.url).everything() == promised(before)


def test_several_at_once(written):
    """Of processes that adopt one database, each succeeds and one does it."""
    database = written("0.1.4")
    before = database.everything()
    command = [sys.executable, "-c", ADOPT, database.target]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    processes = [subprocess.Popen(command, **pipes) for _ in range(4)]
    for process in processes:
        assert process.stdout.readline() == "ready\n"
    for process in processes:
        process.stdin.write("go\n")
        process.stdin.flush()
    results = [json.loads(process.communicate(timeout=60)[0]) for process in processes]
    assert [process.returncode for process in processes] == [0] * 4
    assert [after for _, after in results] == [HEAD] * 4
    assert sorted(len(renamed) for renamed, _ in results) == [0, 0, 0, 7]
    assert database.everything() == promised(before)
