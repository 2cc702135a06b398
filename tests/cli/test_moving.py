"""The verbs move and unfence, as people and scripts meet them."""

from __future__ import annotations

import json

import pytest

from harel_schema import cli
from harel_schema.transfer import copy
from tests.transfer.support import contents, definitions, make_source


@pytest.fixture
def run(capsys):
    """Run the command in this process; return its exit code, stdout and stderr."""

    def run(*args):
        with pytest.raises(SystemExit) as ended:
            cli.main(list(map(str, args)))
        return (ended.value.code, *capsys.readouterr())

    return run


@pytest.fixture
def source(tmp_path):
    """Return a file at head with rows in every table."""
    return make_source(tmp_path / "source.db")


def test_a_move_is_told(run, source, sqld_url):
    """Rows a table, what was carried over, and how long writers waited; again, that it is done."""
    code, out, err = run("move", source, sqld_url)
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert "  harel_executions: 30 rows" in lines
    assert lines[-3] == "  carried over 0 changes in 0 rounds, and 0 under the lock"
    assert lines[-2].startswith("  writers waited ")
    assert lines[-1].startswith(f"source.db -> {sqld_url}: moved in ")
    code, out, _ = run("move", source, sqld_url)
    assert (code, out.count("\n")) == (0, 1)
    assert f"source.db -> {sqld_url}: already moved" in out


def test_a_move_as_json(run, source):
    """The report's fields, the pause in seconds among them."""
    code, out, _ = run("move", source, "dest.db", "--format", "json")
    report = json.loads(out)
    assert (code, report["action"], report["dest"], report["repaired"]) == (
        0,
        "moved",
        "dest.db",
        0,
    )
    assert 0 < report["switch"]["fence_pause"] < report["switch"]["pause"] < report["seconds"]
    assert report["rows"] == sum(table["rows"] for table in report["tables"])


def test_a_dry_run_is_told(run, source):
    """What would be done, and that nothing was."""
    before = definitions(source)
    code, out, _ = run("move", source, "dest.db", "--dry-run")
    assert code == 0
    assert out.splitlines()[-1] == "source.db -> dest.db: would be moved; nothing was written"
    assert definitions(source) == before


def test_unfence_is_told(run, source):
    """That it is open again, and what is not in it; without a fence, that there is none."""
    run("move", source, "dest.db")
    code, out, _ = run("unfence", source)
    assert (code, out.startswith("source.db: open again; what was written to")) == (0, True)
    assert run("unfence", source)[:2] == (0, "source.db: has no fence\n")
    assert json.loads(run("unfence", source, "--format", "json")[1])["moved_to"] is None


def test_abort_is_told(run, source, monkeypatch):
    """Ctrl-C in the middle of a move is no traceback, and --abort takes the rest away."""
    before = definitions(source)

    def interrupted(*_, **__):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("harel_schema.move.job.compare_tables", interrupted)
        code, out, err = run("move", source, "dest.db")
    assert (code, out) == (130, "")
    assert err.strip().startswith("error: interrupted; source.db is open and whole, ")
    assert definitions(source) != before
    code, out, _ = run("move", source, "dest.db", "--abort")
    assert (code, out.splitlines()[0]) == (0, "source.db: without a trace of the move")
    assert definitions(source) == before
    assert run("move", source, "dest.db", "--abort")[1] == "source.db: no move to give up\n"


OPEN = "{0} is open and whole, {1} cannot be opened yet; {2} goes on, {3} gives the move up"
STAGES = {
    "source.Source.install": "nothing was written",
    "catchup._compare": OPEN,
    "source.Source.fence": OPEN,
    "destination.Destination.publish": "{0} takes no more writes, {1} holds every row and is not "
    "open yet; {2} opens it, {3} opens {0} again",
    "switching.Switched": "the move is finished: {0} takes no more writes, {1} is open",
}


@pytest.fixture(params=["there", "back"])
def ends(request, source, sqld_url):
    """Return a file and a server, or a server and a file."""
    if request.param == "there":
        return "source.db", sqld_url
    copy(source, sqld_url)
    return sqld_url, "back.db"


@pytest.mark.parametrize("place", STAGES)
def test_an_interrupt_says_how_far_both_ends_are(run, ends, source, place):
    """Ctrl-C at any moment: what holds at either end then, and what goes on from there."""

    def interrupted(*_, **__):
        raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(f"harel_schema.move.{place}", interrupted)
        code, out, err = run("move", *ends)
    again = "run the same command again, which", "or with --abort, which"
    said = STAGES[place].format(*ends, *again)
    assert (code, out, err.strip()) == (130, "", f"error: interrupted; {said}")
    assert run("move", *ends)[0] == 0
    assert contents(ends[1]) == contents(source)


def test_an_interrupt_while_a_server_is_gone(run, source, sqld, monkeypatch):
    """When an end cannot be asked, the line says what holds in any case."""

    def interrupted(*_, **__):
        sqld.kill()
        raise KeyboardInterrupt

    copy(source, sqld.url)
    monkeypatch.setattr("harel_schema.move.job.compare_tables", interrupted)
    code, _, err = run("move", sqld.url, "back.db")
    assert code == 130
    assert (
        "run the same command again, which goes on where this one stopped, or with --abort" in err
    )


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["move", "missing.db", "dest.db"], "missing.db: no such file"),
        (["move", "source.db"], "Missing argument 'DEST'"),
        (["move", "source.db", "source.db"], "the same database"),
        (["move", "source.db", "full.db"], "full.db holds rows; name an empty database"),
        (["move", "source.db", "dest.db", "--abort", "--dry-run"], "--abort goes with neither"),
        (["move", "missing.db", "dest.db", "--abort"], "missing.db: no such file"),
        (["unfence", "missing.db"], "missing.db: no such file"),
    ],
)
def test_a_refusal_is_one_line(run, source, args, message):
    """Exit code 2, one line with the next step on stderr, and nothing changed."""
    full = make_source(source.with_name("full.db"), executions=3)
    before = contents(source), contents(full), sorted(source.parent.iterdir())
    code, out, err = run(*args)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert err.startswith("error: ")
    assert message in err
    assert (contents(source), contents(full), sorted(source.parent.iterdir())) == before
