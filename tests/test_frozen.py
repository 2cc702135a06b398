"""What is written down of the revisions is what they make, or is not used."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from harel_schema import frozen, revisions
from harel_schema.errors import MigrationError, TargetError
from harel_schema.introspect.tokens import canonical, tokenize
from harel_schema.scripts import script_directory

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture(autouse=True)
def _forget() -> Iterator[None]:
    """Read the file anew in each test, and after the last one."""
    frozen._frozen.cache_clear()
    yield
    frozen._frozen.cache_clear()


def test_what_is_written_down_is_current() -> None:
    """The file is what `make generate` would write now."""
    path = script_directory() / "frozen.json"
    assert path.read_text(encoding="utf-8") == frozen.freeze()
    assert frozen._frozen()


@pytest.mark.parametrize("prefix", ["harel", "_a9", "Orders", "order"])
def test_it_is_what_alembic_makes(prefix: str) -> None:
    """For any prefix and revision the statements are Alembic's own, quotes aside."""
    assert frozen.chain() == tuple(step.revision for step in revisions.history())
    for revision in (*frozen.chain(), "head"):
        ours, theirs = frozen.schema_sql(prefix, revision), revisions.schema_sql(prefix, revision)
        assert [canonical(tokenize(s)) for s in ours] == [canonical(tokenize(s)) for s in theirs]


def test_bad_prefixes_and_revisions_are_refused() -> None:
    """The errors are those of Alembic's way."""
    with pytest.raises(TargetError):
        frozen.schema_sql("a-b")
    with pytest.raises(MigrationError, match="9999"):
        frozen.schema_sql("harel", "9999")


@pytest.mark.parametrize("change", ["edited", "added", "not written"])
def test_it_is_passed_over_when_the_revisions_are_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    """An edited or a new revision, or no file: Alembic is asked."""
    folder = shutil.copytree(script_directory(), tmp_path / "migrations")
    written = folder / "frozen.json"
    document = json.loads(written.read_text(encoding="utf-8"))
    document["revisions"] = {"0001": ["SELECT 'old'"]}
    written.write_text(json.dumps(document), encoding="utf-8")
    monkeypatch.setattr(frozen, "script_directory", lambda: folder)
    frozen._frozen.cache_clear()
    assert frozen.chain() == ("0001",)
    if change == "edited":
        with (folder / "versions" / "0001_store_tables.py").open("a") as file:
            file.write("# edited\n")
    elif change == "added":
        (folder / "versions" / "9000_more.py").touch()
    else:
        written.unlink()
    frozen._frozen.cache_clear()
    assert frozen.schema_sql() == revisions.schema_sql()
    assert len(frozen.chain()) > 1


def test_a_check_needs_no_alembic(tmp_path: Path) -> None:
    """A fresh process that checks a database imports neither Alembic nor SQLAlchemy."""
    code = (
        "import sys; from harel_schema import drift; drift.check(sys.argv[1]);"
        "print(*{name.split('.')[0] for name in sys.modules})"
    )
    (tmp_path / "x.db").touch()
    done = subprocess.run(
        [sys.executable, "-c", code, tmp_path / "x.db"], capture_output=True, text=True, check=True
    )
    assert not {"alembic", "sqlalchemy", "httpx"} & set(done.stdout.split())
