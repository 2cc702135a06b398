"""A copy that was stopped goes on where it was, and ends as if nothing had happened."""

from __future__ import annotations

import random
import subprocess
import sys
from math import inf

import pytest

from harel_schema import drift
from harel_schema.drift import Kind
from harel_schema.errors import TransferError
from harel_schema.target import Target
from harel_schema.transfer import Limits, copy, database, remote
from harel_schema.transfer.access import Insert, open_database
from harel_schema.transfer.job import Job
from harel_schema.transfer.layout import Layout, Query
from harel_schema.transfer.ledger import Ledger, Range
from harel_schema.verify import verify
from tests.support.proxy import Answer, Cut, Drop, Pass
from tests.transfer.support import contents, edit, fetch, make_source

BATCH = Limits(rows=9)


class Stop(BaseException):
    """Raised out of a progress callback, as Ctrl-C is."""


def stopping_at(number, error=Stop):
    """Return a callback that raises at the `number`th report of the phase "copy"."""
    seen = iter(range(number))

    def progress(report):
        if report.phase == "copy" and next(seen, None) is None:
            raise error

    return progress


SUICIDAL = """
import os, sys
from harel_schema.transfer import Limits, copy

source, dest, number = sys.argv[1:]
seen = iter(range(int(number)))

def progress(report):
    if report.phase == "copy" and next(seen, None) is None:
        os._exit(7)

copy(source, dest, limits=Limits(rows=9), progress=progress)
"""


def killed(source, dest, number):
    """Run a copy in a process that ends without any cleaning up, at report `number`."""
    command = [sys.executable, "-c", SUICIDAL, str(source), str(dest), str(number)]
    return subprocess.run(command, check=False, timeout=60).returncode


@pytest.mark.parametrize("number", [0, 1, 2, 7, 20, 34])
def test_killed_anywhere_the_rerun_ends_equal(source, dest, number):
    """A process that dies between two batches leaves a copy that the next one finishes."""
    assert killed(source, dest, number) == 7
    report = copy(source, dest, limits=BATCH)
    assert report.action == "resumed"
    assert contents(dest) == contents(source)
    assert not drift.check(dest)


def test_what_was_copied_is_not_copied_again(source, dest):
    """The rerun writes the rows that were missing, and no other."""
    with pytest.raises(Stop):
        copy(source, dest, limits=BATCH, progress=stopping_at(12))
    report = copy(source, dest, limits=BATCH)
    there = report.rows - report.written
    assert 0 < there < report.rows
    assert copy(source, dest).action == "already equal"


def test_stopped_after_every_batch(source, dest):
    """A copy that is stopped one batch further each time still ends equal."""
    number = 0
    while True:
        number += 1
        try:
            copy(source, dest, limits=BATCH, progress=stopping_at(number))
        except Stop:
            continue
        break
    assert number > 30
    assert contents(dest) == contents(source)


def test_ctrl_c_between_batches(source, dest):
    """KeyboardInterrupt leaves the ledger right."""
    with pytest.raises(KeyboardInterrupt):
        copy(source, dest, limits=BATCH, progress=stopping_at(8, KeyboardInterrupt))
    copy(source, dest, limits=BATCH)
    assert contents(dest) == contents(source)


def test_half_a_copy_is_drift(source, dest):
    """A check reports the ledger of an unfinished copy, and that there is no revision yet."""
    with pytest.raises(Stop):
        copy(source, dest, limits=BATCH, progress=stopping_at(8))
    kinds = {difference.kind for difference in drift.check(dest)}
    assert {Kind.LEFTOVER_LEDGER, Kind.VERSION_MISSING} <= kinds
    assert not verify(source, dest).equal


def test_a_source_that_changed_meanwhile(source, dest):
    """Rows that changed, came or went in a part that was done are right in the end."""
    with pytest.raises(Stop):
        copy(source, dest, limits=BATCH, progress=stopping_at(30))
    edit(
        source,
        "UPDATE harel_executions SET data = 'changed' WHERE id = 'e0003'",
        "DELETE FROM harel_executions WHERE id IN ('e0008', 'e0009', 'e0017')",
        "INSERT INTO harel_executions VALUES ('a first', 'd', '{}', 1), ('e0008x', 'd', '', 2)",
        "DELETE FROM harel_timers",
        "UPDATE harel_outbox SET seq = seq + 1000",
        "UPDATE sqlite_sequence SET seq = 5000",
    )
    for number in range(25):
        row = (f"e0004-{number:02}", "d", "{}", 1)
        edit(source, ("INSERT INTO harel_executions VALUES (?, ?, ?, ?)", row))
    copy(source, dest, limits=BATCH)
    assert contents(dest) == contents(source)


def test_other_limits_on_the_rerun(source, dest):
    """The rerun may cut batches in another way; what is done stays."""
    with pytest.raises(Stop):
        copy(source, dest, limits=BATCH, progress=stopping_at(12))
    ((done,),) = fetch(dest, "SELECT sum(count) FROM harel_copy_ledger WHERE tbl <> ''")
    report = copy(source, dest, limits=Limits(rows=2))
    assert report.rows - report.written == done
    assert contents(dest) == contents(source)


def test_another_source_is_refused(source, dest, tmp_path):
    """Half a copy of one source is not finished from another one."""
    with pytest.raises(Stop):
        copy(source, dest, limits=BATCH, progress=stopping_at(8))
    before = contents(dest)
    other = make_source(tmp_path / "other.db")
    with pytest.raises(TransferError, match=r"unfinished copy of .*source\.db; .*--replace"):
        copy(other, dest)
    assert contents(dest) == before
    assert copy(other, dest, replace=True).action == "replaced"
    assert contents(dest) == contents(other)


def test_other_options_are_refused(source, dest):
    """Half a copy of harel's tables is not finished with all tables."""
    edit(source, "CREATE TABLE app (x)")
    with pytest.raises(Stop):
        copy(source, dest, limits=BATCH, progress=stopping_at(8))
    with pytest.raises(TransferError, match="other tables"):
        copy(source, dest, all_tables=True)
    with pytest.raises(TransferError, match="unfinished"):
        copy(source, dest, merge=True)


def test_a_symbolic_link_is_the_same_source(source, dest, tmp_path):
    """A source is known by its real path."""
    with pytest.raises(Stop):
        copy(source, dest, limits=BATCH, progress=stopping_at(8))
    link = tmp_path / "link.db"
    link.symlink_to(source)
    assert copy(link, dest).action == "resumed"


@pytest.mark.parametrize("fault", [Cut(0), Cut(40), Cut(120), Drop(), Answer(503), Answer(429)])
def test_answers_that_get_lost(source, sqld, proxy, fault):
    """Whatever becomes of a request to write or of its answer, each batch is applied once."""
    proxy.script(*([fault, Pass(), Pass()] * 60))
    copy(source, proxy.url, limits=BATCH)
    assert contents(sqld.url) == contents(source)


def test_cut_at_every_byte_of_an_answer(proxy):
    """The answer to a batch may break off at any byte: then the ledger is asked."""
    table = Layout("t", ("x",), (0,), ("x",), ("BINARY",))
    with open_database(Target.parse(proxy.url), read_only=False, timeout=30) as database:
        ledger = Ledger(database, "harel")
        begin = [Query("CREATE TABLE t (x PRIMARY KEY)"), *ledger.begin("source", ["t"], b"run")]
        database.transact(begin, lambda: False)
        size, left = len(proxy.last_response), Range("t")
        for byte in range(size + 1):
            done = Range("t", left.lower, (byte,), 1, b"digest")
            work = [*ledger.advance(left, done), Insert(table, [(byte,)])]
            proxy.script(Cut(byte))
            database.transact(work, lambda done=done: ledger.holds(done))
            left = Range("t", (byte,))
    assert size > 100
    assert fetch(proxy.url, "SELECT x FROM t ORDER BY x") == [(n,) for n in range(size + 1)]


@pytest.mark.parametrize("way", [inf, -1], ids=["pages", "stream"])
# All bytes of an answer of rows in the long tests, and 500 of the schema's.
@pytest.mark.parametrize("most", [1, pytest.param(500, marks=pytest.mark.soak)])
@pytest.mark.timeout(3600)
def test_cut_at_any_byte_of_what_is_read(source, proxy, target_file, way, most):
    """Each answer of a copy from a server may break off at any byte: the rows are all there."""
    chance = random.Random(most)
    edit(source, "DELETE FROM harel_trace", "DELETE FROM harel_executions WHERE id > 'e0003'")
    copy(source, proxy.url)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(remote, "_FAR", way)
        # How long another attempt is waited for is no part of what is tested.
        patch.setattr(database, "_LONGEST_WAIT", 0.0)
        before = len(proxy.responses)
        copy(proxy.url, target_file)
        sizes = list(map(len, proxy.responses[before:]))
        for number, size in enumerate(sizes):
            for byte in chance.sample(range(size + 1), min(most, size + 1)):
                target_file.unlink()
                proxy.forget()
                proxy.script(*[Pass()] * number, Cut(byte))
                copy(proxy.url, target_file)
                assert contents(target_file) == contents(source), (number, byte)
    assert len(sizes) > 9


@pytest.fixture
def breaking(source, proxy, target_file, monkeypatch):
    """Return a server whose connection breaks twice while the first table of size is read."""
    # A server counts as near, and is asked no more about it, however slow the machine is.
    monkeypatch.setattr(remote, "_FAR", inf)
    copy(source, proxy.url)
    before = len(proxy.requests)
    copy(proxy.url, target_file)
    target_file.unlink()
    requests = proxy.requests[before:]
    pages = [at for at, request in enumerate(requests) if b" LIMIT " in request.body]
    size = len(proxy.responses[before + pages[2]])
    # After a page that broke off come BEGIN, and what is left of the table before.
    proxy.script(*[Pass()] * pages[2], Cut(size // 2), Pass(), Pass(), Cut(size // 4))
    return proxy.url


def test_a_server_that_breaks_off_is_read_again(breaking, sqld, target_file):
    """It goes on after the last row, and then brings what changed before to one moment."""
    changes = [
        "UPDATE harel_executions SET version = 7 WHERE id = 'e0000'",
        "DELETE FROM harel_executions WHERE id = 'e0001'",
        "INSERT INTO harel_executions VALUES ('a', 'd', '{}', 1)",
    ]

    def change(progress):
        if progress.phase == "copy" and progress.table == "harel_trace":
            while changes:
                fetch(sqld.url, changes.pop())

    report = copy(breaking, target_file, limits=BATCH, progress=change)
    assert not changes
    assert report.snapshots == 1
    assert [note for note in report.notes if "read again, in one snapshot" in note]
    assert contents(target_file) == contents(sqld.url)
    executions = next(each for each in report.tables if each.name == "harel_executions")
    assert executions.written > executions.rows


def test_a_server_that_always_breaks_off(breaking, source, target_file, monkeypatch):
    """When no pass is read in one snapshot, the report says in how many."""
    monkeypatch.setattr(Job, "passes", 1)
    report = copy(breaking, target_file, limits=BATCH)
    assert report.snapshots == 3
    assert "3 snapshots" in report.notes[0]
    assert contents(target_file) == contents(source)


def test_a_server_that_is_gone(source, sqld, monkeypatch):
    """When the server stays away the copy gives up, and the next one goes on."""
    monkeypatch.setattr(database, "_LONGEST_WAIT", 0.01)

    def kill(report):
        if report.phase == "copy" and report.rows_done > 20:
            sqld.kill()

    with pytest.raises(TransferError, match="run the same command again"):
        copy(source, sqld.url, limits=BATCH, progress=kill)
    sqld.start()
    report = copy(source, sqld.url)
    assert report.action == "resumed"
    assert report.written < report.rows
    assert contents(sqld.url) == contents(source)
