"""Workers of several processes write while their store is moved: no commit is lost."""

from __future__ import annotations

import json
import subprocess
import sys
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest

from harel_schema.move import move
from harel_schema.transfer import copy
from harel_schema.verify import verify
from tests.move.writer import MORE
from tests.transfer.support import fetch, make_source

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

INITIAL = 1_000


class Worker:
    """A process of `tests.move.writer`."""

    def __init__(self, kind: str, database: str, name: str) -> None:
        command = [sys.executable, "-m", "tests.move.writer", kind, database, name]
        self._process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )

    def said(self) -> str:
        """Return its next line; fails with what it says when it has ended without one."""
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line, self._process.communicate()[1]
        return line

    def wait_for(self, line: str) -> None:
        """Wait until it has said so."""
        assert self.said().strip() == line

    def ledger(self) -> dict[str, Any]:
        """Return its ledger, after it has met the fence."""
        self.wait_for("moved")
        found: dict[str, Any] = json.loads(self.said())
        return found

    def stop(self) -> None:
        """End it, if it has not ended."""
        self._process.kill()
        self._process.communicate()


@pytest.fixture
def start() -> Iterator[Any]:
    """Start workers, which end with the test."""
    with ExitStack() as stack:

        def start(kinds: list[str], database: Path | str) -> list[Worker]:
            workers = [Worker(kind, str(database), f"w{n}") for n, kind in enumerate(kinds)]
            for worker in workers:
                stack.callback(worker.stop)
            for worker in workers:
                worker.wait_for("begun")
            return workers

        yield start


def check_ledgers(dest: Path | str, ledgers: list[dict[str, Any]]) -> None:
    """See that the destination holds what was acknowledged, all of it and nothing else."""
    versions, outbox, processed, timers, spawns, trace = ({}, {}, [], {}, [], {})
    for ledger in ledgers:
        versions |= ledger["versions"]
        outbox |= {int(seq): tuple(row) for seq, row in ledger["outbox"].items()}
        processed += map(tuple, ledger["processed"])
        timers |= ledger["timers"]
        spawns += ledger["spawns"]
        trace |= ledger["trace"]
    # What was there before the workers came has other names.
    ours = "LIKE 'w%'"
    rows = fetch(dest, f"SELECT id, version FROM harel_executions WHERE id {ours}")
    assert dict(rows) == versions
    sql = "SELECT seq, target_id, event ->> 'id' FROM harel_outbox WHERE event LIKE '%\"w%'"
    assert {seq: tuple(row) for seq, *row in fetch(dest, sql)} == outbox
    table = "harel_processed_events"
    rows = fetch(dest, f"SELECT execution_id, event_id FROM {table} WHERE execution_id {ours}")
    assert sorted(rows) == sorted(processed)
    rows = fetch(
        dest,
        f"SELECT execution_id || ' ' || path, fire_at FROM harel_timers WHERE execution_id {ours}",
    )
    assert dict(rows) == timers
    rows = fetch(dest, f"SELECT child_id FROM harel_spawns WHERE parent_id {ours}")
    assert sorted(child for (child,) in rows) == sorted(spawns)
    rows = fetch(
        dest,
        f"SELECT execution_id, count(*) FROM harel_trace WHERE execution_id {ours}"
        " GROUP BY execution_id",
    )
    assert dict(rows) == trace


@pytest.mark.parametrize("dest_kind", ["file", "server"])
def test_a_file_under_four_writers(tmp_path, start, request, dest_kind):
    """Two workers on our store and two on harel's: all that they were told is stored is there."""
    source = make_source(tmp_path / "source.db", executions=INITIAL)
    is_file = dest_kind == "file"
    dest = str(tmp_path / "dest.db") if is_file else request.getfixturevalue("sqld_url")
    workers = start(["ours", "harel", "async", "harel"], source)
    report = move(source, dest)
    ledgers = [worker.ledger() for worker in workers]
    assert {ledger["moved_to"] for ledger in ledgers} == {dest}
    assert all(ledger["commits"] > MORE for ledger in ledgers)
    assert report.switch.pause < 2
    check_ledgers(dest, ledgers)


def test_a_server_under_four_writers(tmp_path, start, sqld_url):
    """Four workers on a server: all that they were told is stored is in the file."""
    copy(make_source(tmp_path / "initial.db", executions=INITIAL), sqld_url)
    workers = start(["ours", "async", "binding", "ours"], sqld_url)
    dest = tmp_path / "dest.db"
    move(sqld_url, dest)
    ledgers = [worker.ledger() for worker in workers]
    assert {ledger["moved_to"] for ledger in ledgers} == {str(dest)}
    check_ledgers(dest, ledgers)


def test_workers_that_never_follow(tmp_path, start, sqld_url):
    """Workers on harel's own store end at the fence, and both ends are the same then."""
    source = make_source(tmp_path / "source.db")
    workers = start(["harel"] * 4, source)
    move(source, sqld_url)
    ledgers = [worker.ledger() for worker in workers]
    check_ledgers(sqld_url, ledgers)
    assert all(table.equal for table in verify(source, sqld_url).tables)
