"""Half a copy is told as such by every verb, taken for a database by none, and finished by one."""

from __future__ import annotations

import re
import shlex

import pytest

from harel_schema import LibsqlStore, cli, drift, migrate
from harel_schema.doctor import diagnose
from harel_schema.drift import Kind
from harel_schema.errors import MigrationError, StoreError, TransferError
from harel_schema.report.comparison import Comparison
from harel_schema.report.fixes import fix_command
from harel_schema.target import Target
from harel_schema.transfer import Limits, copy
from tests.transfer.support import contents, make_source


def stop_midway(progress):
    """Stop a copy when a part of its rows is there."""
    if progress.phase == "copy" and progress.rows_done > 100:
        raise KeyboardInterrupt


@pytest.fixture(params=["into nothing", "into an empty store"])
def half(request, source, dest):
    """Return the destination of a copy that was stopped."""
    if request.param == "into an empty store":
        copy(make_source(source.with_name("empty.db"), executions=0), dest)
    with pytest.raises(KeyboardInterrupt):
        copy(source, dest, limits=Limits(rows=20), progress=stop_midway)
    return dest


def test_no_store_opens_it(half, source):
    """Also where the destination was a store at head before; when it is finished, one does."""
    with pytest.raises(StoreError, match="a copy or a move into it is not finished"):
        LibsqlStore(half, driver="sqlite3")
    copy(source, half)
    with LibsqlStore(half, driver="sqlite3") as store:
        assert len(store.ids_with_prefix("e")) == 30


@pytest.mark.parametrize(
    "verb",
    [
        migrate.upgrade,
        migrate.plan,
        migrate.adopt,
        lambda target: migrate.downgrade(target, "base"),
        lambda target: migrate.downgrade(target, "0003"),
        lambda target: migrate.stamp(target, "head"),
    ],
    ids=["upgrade", "plan", "adopt", "downgrade to base", "downgrade to 0003", "stamp"],
)
def test_no_migration_takes_it_over(half, source, verb):
    """Its tables look like harel's own; what is missing in them would be lost."""
    before = contents(half)
    finish = f"finish that: harel-schema copy {source} {Target.parse(half)}"
    said = re.escape(f"is half a copy of {source}; {finish}")
    with pytest.raises(MigrationError, match=f"{said}$"):
        verb(half)
    assert contents(half) == before


@pytest.mark.parametrize("all_tables", [False, True])
def test_it_is_no_source(half, source, tmp_path, all_tables):
    """A copy of it would be half a copy too, and not known as one."""
    with pytest.raises(TransferError, match=f"is half a copy of {source}; finish that: "):
        copy(half, tmp_path / "third.db", all_tables=all_tables)
    assert not (tmp_path / "third.db").exists()


def test_check_names_the_command_that_finishes_it(half, source):
    """One line for it, no statement that would make it look whole; the command mends it all."""
    found = drift.check(half)
    version, ledger = found
    assert (version.kind, version.fix) == (Kind.VERSION_MISSING, None)
    assert (ledger.kind, ledger.found) == (Kind.LEFTOVER_LEDGER, f"half a copy of {source}")
    report = Comparison.of(found, str(half), prefix="harel")
    name, *args = shlex.split(fix_command(ledger, report))
    assert (name, args) == ("harel-schema", ["copy", str(source), str(half)])
    with pytest.raises(SystemExit) as ended:
        cli.main(args)
    assert ended.value.code == 0
    assert not drift.check(half)
    assert contents(half) == contents(source)


def test_doctor_does_not_offer_to_take_it_over(half):
    """What is wrong with it is that it is half a copy."""
    diagnosis = diagnose(half)
    assert not [note for note in diagnosis.notes if "upgrade" in note]
    (drifted,) = (each for each in diagnosis.findings if each.kind == "schema-drift")
    assert "half a copy of" in drifted.examples[1]
