"""`diagram`, and the pages of `check`, `diff` and `verify`, as their users meet them."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

import pytest

from harel_schema import dbapi, migrate
from harel_schema.diagram import Diagram
from harel_schema.testing import JwtKey, sqld_server
from tests.support import schemas

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def drifted(tmp_path: Path) -> Path:
    """Return a migrated file without one of its indexes."""
    migrate.upgrade(tmp_path / "x.db")
    with closing(sqlite3.connect(tmp_path / "x.db")) as connection:
        connection.execute("DROP INDEX harel_timers_by_fire_at")
    return tmp_path / "x.db"


def test_a_picture_is_mermaid_unless_asked_otherwise(run, drifted: Path) -> None:
    """Mermaid goes to stdout, with exit 0 for a drifted database too, and nothing is changed."""
    before = drifted.read_bytes()
    code, out, err = run("diagram", "x.db")
    assert (code, err) == (0, "")
    assert out.startswith('---\ntitle: "x.db: 1 difference (revision 0004)"\n---\nerDiagram\n')
    assert '        index harel_timers_by_fire_at "missing · (fire_at)"\n' in out
    assert "    harel_timers }o..|| harel_executions : " in out
    assert drifted.read_bytes() == before
    assert [path.name for path in drifted.parent.iterdir()] == ["x.db"]


def test_a_picture_is_svg_or_json_too(run, drifted: Path) -> None:
    """Each form is a whole document."""
    root = ET.fromstring(run("diagram", "x.db", "--format", "svg").out)
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    found = json.loads(run("diagram", "x.db", "--format", "json").out)
    assert schemas.problems(found, Diagram.model_json_schema(mode="serialization")) == []
    assert found["differences"] == 1


@pytest.mark.parametrize(("file", "form"), [("p.mmd", "mermaid"), ("p.svg", "svg")])
def test_a_file_has_the_form_of_its_ending(
    run, drifted: Path, tmp_path: Path, file: str, form: str
) -> None:
    """-o writes what would be printed, in the form of the ending, or in the one asked for."""
    printed = run("diagram", "x.db", "--format", form).out
    for arguments in ((file,), ("other.txt", "--format", form)):
        assert run("diagram", "x.db", "-o", *arguments) == (0, "", "")
        assert (tmp_path / arguments[0]).read_text(encoding="utf-8") == printed


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (("x.db", "-o", "x.pdf"), "x.pdf: no form of a report ends in '.pdf'"),
        (("x.db", "-o", "no/x.svg"), "no/x.svg: the folder does not exist"),
        (("x.db", "-o", "no/x", "--format", "svg"), "no/x: the folder does not exist"),
        (("x.db", "--format", "png"), "'png' is not one of"),
        (("missing.db",), "missing.db"),
        ((), "no database is named"),
    ],
)
def test_what_cannot_be_drawn_is_one_line(run, drifted: Path, arguments, line: str) -> None:
    """A wrong form, a wrong file and no database: exit 2, before anything is read."""
    code, out, err = run("diagram", *arguments)
    assert (code, out) == (2, "")
    assert line in err
    assert err.count("\n") == 1


def test_tables_of_others_are_drawn_when_asked_for(run, drifted: Path) -> None:
    """--all-tables adds them; without it they are not there."""
    with closing(sqlite3.connect(drifted)) as connection:
        connection.execute("CREATE TABLE orders (id INTEGER PRIMARY KEY)")
    assert "orders" not in run("diagram", "x.db").out
    assert "    orders {\n" in run("diagram", "x.db", "--all-tables").out


def test_a_server_is_drawn_without_its_token(run) -> None:
    """The picture of a server names it, and no form shows the token."""
    key = JwtKey()
    token = key.token()
    with sqld_server(auth_key=key.public) as server:
        with closing(dbapi.connect(server.url, auth_token=token)) as connection:
            connection.executescript(";".join(migrate.schema_sql()))
        for form in ("mermaid", "svg", "json"):
            code, out, err = run("diagram", f"{server.url}?authToken={token}", "--format", form)
            assert (code, err) == (0, "")
            assert "harel_executions" in out
            assert token not in out


def test_check_and_diff_save_a_page(run, drifted: Path, tmp_path: Path) -> None:
    """A page has the differences and the picture; with --strict that of other tables too."""
    with closing(sqlite3.connect(drifted)) as connection:
        connection.execute("CREATE TABLE orders (id INTEGER PRIMARY KEY)")
    migrate.upgrade(tmp_path / "y.db")
    assert run("check", "x.db", "--save", "r.html").code == 1
    page = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert page == run("check", "x.db", "--format", "html").out
    assert "CREATE INDEX harel_timers_by_fire_at" in page
    assert ">orders</text>" not in page
    assert ">orders</text>" in run("check", "x.db", "--strict", "--format", "html").out
    both = run("diff", "y.db", "x.db", "--format", "html")
    assert both.code == 1
    assert ">orders</text>" in both.out
    assert "Expected: y.db" in both.out


def test_verify_prints_and_saves_a_page(run, drifted: Path, tmp_path: Path) -> None:
    """The page of verify is printed or saved beside its text, and the exit code is the same."""
    migrate.upgrade(tmp_path / "y.db")
    code, out, _ = run("verify", "y.db", "x.db", "--save", "v.html", "--save", "v.txt", "-q")
    assert (code, (tmp_path / "v.txt").read_text(encoding="utf-8")) == (1, out)
    page = (tmp_path / "v.html").read_text(encoding="utf-8")
    assert "✗ different" in page
    assert run("verify", "y.db", "x.db", "--format", "html", "-q").out.startswith("<!DOCTYPE html>")
    assert run("verify", "y.db", "y.db", "--save", "v.pdf").code == 2


def test_doctor_prints_and_saves_a_page(run, drifted: Path, tmp_path: Path) -> None:
    """The page of doctor has its findings; what is saved is what would be printed."""
    with closing(sqlite3.connect(drifted)) as connection, connection:
        connection.execute("INSERT INTO harel_timers VALUES ('<b>', 'p', 1.5)")
    code, out, _ = run("doctor", "x.db", "--save", "d.html", "--save", "d.txt", "-q")
    assert (code, (tmp_path / "d.txt").read_text(encoding="utf-8")) == (1, out)
    page = (tmp_path / "d.html").read_text(encoding="utf-8")
    assert page == run("doctor", "x.db", "--format", "html", "-q").out
    assert "timer-orphan" in page
    assert "execution_id='&lt;b&gt;'" in page
