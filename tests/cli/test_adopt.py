"""The verb adopt, as its users meet it."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING

import pytest

from harel_schema import migrate

if TYPE_CHECKING:
    from pathlib import Path

HEAD = migrate.history()[-1].revision


@pytest.fixture
def old(root: Path, tmp_path: Path) -> Path:
    """Return a file that harel 0.2.0 wrote."""
    return shutil.copy(root / "tests" / "legacy" / "harel-0.2.0.db", tmp_path / "old.db")


def test_adopt_says_what_it_did(run, old) -> None:
    """A line a table, the warnings with the names of executions, and the revisions."""
    code, out, err = run("adopt", "old.db")
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert "executions -> harel_executions" in lines
    assert "groups -> harel_transport_groups" in lines
    assert any("fan-out" in line and line.endswith(": billing, line, lines") for line in lines)
    assert any("finished_at" not in line and "and 6 more" in line for line in lines)
    assert lines[-1].startswith(f"old.db: base -> {HEAD} (ran ")
    assert run("check", "old.db").code == 0
    assert run("adopt", "old.db").out.splitlines()[-1] == f"old.db: already at {HEAD}"


def test_a_dry_run_prints_sql_and_writes_nothing(run, old) -> None:
    """Comments say what would be done, the rest is SQL; the file stays as it was, to the byte."""
    before = old.read_bytes()
    code, out, _ = run("adopt", "old.db", "--dry-run")
    assert code == 0
    assert "ALTER TABLE executions RENAME TO harel_executions;" in out
    assert f"SET version_num='{HEAD}'" in out
    assert "would run 0002" in out
    assert old.read_bytes() == before
    assert [path.name for path in old.parent.iterdir()] == ["old.db"]


def test_adopt_as_json(run, old) -> None:
    """One document with all that was done and all that was found."""
    found = json.loads(run("adopt", "old.db", "--format", "json").out)
    assert ["messages", "harel_transport_messages"] in found["renamed"]
    assert {each["kind"]: each["total"] for each in found["caveats"]} == {
        "fan-out": 3,
        "undated": 16,
    }
    assert (found["before"], found["after"], found["dry_run"]) == (None, HEAD, False)


def test_upgrade_names_adopt_with_the_prefix(run, old) -> None:
    """The command that an upgrade names is the one that works."""
    code, out, err = run("upgrade", "old.db", "--prefix", "work")
    assert (code, out) == (2, "")
    assert "take them over with `harel-schema adopt --prefix work`" in err
    assert run("adopt", "old.db", "--prefix", "work").code == 0
    assert run("upgrade", "old.db", "--prefix", "work").out == f"old.db: already at {HEAD}\n"


@pytest.mark.parametrize("name", ["missing.db", "empty.db"])
def test_nothing_to_adopt_is_one_line(run, tmp_path: Path, name: str) -> None:
    """A missing file and an empty one are refused; nothing is made."""
    (tmp_path / "empty.db").touch()
    code, out, err = run("adopt", name)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert [path.name for path in tmp_path.iterdir()] == ["empty.db"]
