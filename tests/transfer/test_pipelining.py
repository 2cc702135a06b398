"""Reading ahead of a server and writing behind it: what is done at once stays right."""

from __future__ import annotations

import math
import threading

import pytest

from harel_schema.errors import OperationalError, ServerError
from harel_schema.hrana import Client, Statement
from harel_schema.target import Target
from harel_schema.transfer import Limits, ahead, copy, remote
from harel_schema.transfer.access import open_database
from harel_schema.transfer.behind import Writer
from harel_schema.transfer.layout import Layout, Query, Scan
from harel_schema.transfer.pace import Pace
from tests.support.proxy import Answer, Hang, Pass
from tests.transfer.support import contents, edit, fetch

TABLE = Layout("t", ("k", "x"), (0,), ("k",), ("BINARY",))


def fill(url, *rows):
    """Make the table t on a server; `rows` are numbers of bytes."""
    with Client(url) as client:
        client.execute(Statement("CREATE TABLE t (k INTEGER PRIMARY KEY, x BLOB)"))
        for start in range(0, len(rows), 4):
            sizes = rows[start : start + 4]
            values = ", ".join(["(zeroblob(?))"] * len(sizes))
            client.execute(Statement(f"INSERT INTO t (x) VALUES {values}", sizes))


@pytest.fixture(params=["near", "far"])
def distance(request, monkeypatch):
    """Choose how far a server seems."""
    monkeypatch.setattr(remote, "_FAR", math.inf if request.param == "near" else -1)
    return request.param


def readers():
    """Return the threads that read ahead."""
    return [each for each in threading.enumerate() if each.name == "harel-schema-reader"]


@pytest.mark.usefixtures("distance")
def test_rows_of_any_size_are_read(sqld_url):
    """Where a page would be larger than a response may be, it is read in smaller ones."""
    sizes = [*[10] * 240, *[1_400_000] * 12, *[10] * 30]
    fill(sqld_url, *sizes)
    with open_database(Target.parse(sqld_url), read_only=True, timeout=30) as database:
        runs = [run for _, run in database.scan([Scan(TABLE)])]
    assert [(key, len(blob)) for run in runs for key, blob in run] == list(enumerate(sizes, 1))
    assert max(sum(len(blob) for _, blob in run) for run in runs) < 10_000_000


def test_a_stream_is_kept_while_rows_wait(proxy, monkeypatch):
    """While nobody takes a page, the server is kept from dropping the stream, and its snapshot."""
    monkeypatch.setattr(remote, "_FAR", math.inf)
    fill(proxy.url, *[1] * 500)
    monkeypatch.setattr(ahead, "_SILENCE", 0.01)
    ping = Hang(forward=True)
    # BEGIN, and three pages: one is taken, one waits for that, and one waits to wait.
    with open_database(Target.parse(proxy.url), read_only=True, timeout=30) as database:
        runs = database.scan([Scan(TABLE)])
        assert database.round_trip > 0
        proxy.script(Pass(), Pass(), Pass(), ping)
        found = list(next(runs)[1])
        assert ping.arrived.wait(10)
        fetch(proxy.url, "DELETE FROM t")
        ping.release.set()
        for _, run in runs:
            found += run
    assert len(found) == 500


@pytest.mark.usefixtures("distance")
def test_a_reader_that_is_left_ends(sqld_url):
    """When the rows are not read to their end, no thread stays behind."""
    fill(sqld_url, *[20_000] * 250)
    with open_database(Target.parse(sqld_url), read_only=True, timeout=30) as database:
        runs = database.scan([Scan(TABLE)])
        next(runs)
        assert readers()
        runs.close()
        assert not readers()


@pytest.mark.usefixtures("distance")
def test_an_error_ends_the_rows(sqld_url):
    """What keeps the thread from reading is raised where the rows are taken."""
    opened = open_database(Target.parse(sqld_url), read_only=True, timeout=30)
    with opened as database, pytest.raises(OperationalError, match="no such table: t"):
        list(database.scan([Scan(TABLE)]))
    assert not readers()


def test_actions_are_done_in_their_order():
    """Each action ends before the next one begins, and is told of in this thread."""
    done, told = [], []
    with Writer() as writer:
        for number in range(50):
            writer.put(
                lambda n=number: done.append(n),
                lambda n=number: told.append((n, len(done), threading.current_thread())),
            )
    assert done == list(range(50))
    assert [(n, there >= n + 1, thread) for n, there, thread in told] == [
        (n, True, threading.main_thread()) for n in range(50)
    ]


def test_an_action_that_fails_is_the_last():
    """An error comes up at the latest with the next action, which is not done."""
    done = []

    def fail():
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError), Writer() as writer:  # noqa: PT012
        writer.put(fail, lambda: done.append("told"))
        writer.put(lambda: done.append("next"), lambda: None)
    assert done == []


def test_leaving_waits_for_what_was_sent():
    """After an error the action under way is waited for: a request that was sent is applied."""
    begun, go, done = threading.Event(), threading.Event(), []

    def action():
        begun.set()
        go.wait(10)
        done.append("sent")

    with pytest.raises(KeyboardInterrupt), Writer() as writer:  # noqa: PT012
        writer.put(action, lambda: done.append("told"))
        begun.wait(10)
        threading.Timer(0.05, go.set).start()
        raise KeyboardInterrupt
    assert done == ["sent"]


def test_batches_grow_with_the_round_trip_and_shrink_when_slow():
    """A batch grows up to 8 MB while waiting is much of its time; limits that are given stay."""
    far, near, fixed = Pace(None, 0.05), Pace(None, 0.001), Pace(Limits(rows=7), 0.05)
    for pace in (far, near, fixed):
        for _ in range(9):
            pace.took(0.1)
    assert far.limits == Limits(rows=20_000, size=8_000_000)
    assert (near.limits, fixed.limits) == (Limits(), Limits(rows=7))
    far.took(3)
    assert far.limits == Limits(rows=10_000, size=4_000_000)


def test_a_request_that_is_refused_for_its_size_is_halved(source, sqld, proxy):
    """Behind a gateway with a limit of its own, batches become as small as it wants."""
    copy(source, proxy.url, replace=True, limits=Limits(rows=30))
    before = len(proxy.requests)
    copy(source, proxy.url, replace=True, limits=Limits(rows=30))
    requests = proxy.requests[before:]
    batches = [at for at, each in enumerate(requests) if b"INTO harel_executions" in each.body]
    refusal = Answer(413, b"<html>too large</html>", "text/html")
    # 30 rows, then 15, then 7: that passes.
    proxy.script(*[Pass()] * batches[0], refusal, refusal)
    report = copy(source, proxy.url, replace=True, limits=Limits(rows=30))
    assert report.written == report.rows
    assert contents(sqld.url) == contents(source)


def test_a_row_that_is_refused_for_its_size_is_an_error(source, sqld, proxy):
    """A single row that is refused stops the copy, which goes on when the gateway lets it."""
    copy(source, proxy.url, replace=True)
    before = len(proxy.requests)
    copy(source, proxy.url, replace=True)
    requests = proxy.requests[before:]
    batches = [at for at, each in enumerate(requests) if b"INTO harel_executions" in each.body]
    proxy.script(*[Pass()] * batches[0], *[Answer(413)] * 5)
    with pytest.raises(ServerError, match="413"):
        copy(source, proxy.url, replace=True)
    assert copy(source, proxy.url).action == "resumed"
    assert contents(sqld.url) == contents(source)


def test_the_order_of_a_descending_key(tmp_path, sqld_url, target_file):
    """A key that no index gives in ascending order is read in one stream, and comes over too."""
    source = tmp_path / "down.db"
    edit(source, "CREATE TABLE t (a INT, b TEXT, PRIMARY KEY (a DESC, b)) WITHOUT ROWID")
    edit(source, *(("INSERT INTO t VALUES (?, ?)", (n % 40, f"{n}")) for n in range(600)))
    copy(source, sqld_url, all_tables=True, limits=Limits(rows=90))
    copy(sqld_url, target_file, all_tables=True)
    assert contents(target_file) == contents(source)


def test_a_server_that_works_is_waited_for(proxy, monkeypatch):
    """While a long request is under way the server is asked now and then whether it is there."""
    hang = Hang()
    asked = []

    def ask():
        asked.append(True)
        if len(asked) == 3:
            hang.release.set()
        return True

    with open_database(Target.parse(proxy.url), read_only=True, timeout=0.05) as database:
        monkeypatch.setattr(database, "_is_there", ask)
        proxy.script(hang)
        # What hung is closed without an answer, and asked for again.
        assert database.survey([Query("SELECT 7")]) == [[(7,)]]
    assert len(asked) >= 3


def test_one_silence_of_a_server_that_is_there_is_passed_over(proxy):
    """A request that gets no answer is made again, when another one shows that it may get one."""
    with open_database(Target.parse(proxy.url), read_only=True, timeout=1) as database:
        proxy.script(Hang())
        assert database.query(Query("SELECT 7")) == [(7,)]
