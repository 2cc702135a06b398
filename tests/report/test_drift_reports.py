"""Every form of a drift's report says the same, and no name in a database can break out of it."""

from __future__ import annotations

import json
import re
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harel_schema import migrate, report
from harel_schema.drift import Difference, Drift, Kind, check
from harel_schema.report.comparison import Comparison
from harel_schema.report.schemas import DOCUMENTS, json_schema
from tests.report.names import odd, reports
from tests.support import schemas

if TYPE_CHECKING:
    from pathlib import Path

MISSING = Difference(
    kind=Kind.INDEX_MISSING,
    name="by_name",
    table="people",
    expected="(name)",
    fix="CREATE INDEX by_name ON people (name);",
)
BEHIND = Difference(
    kind=Kind.VERSION_BEHIND,
    name="harel_alembic_version",
    expected="0003",
    found="0002",
    fix="harel-schema upgrade",
    counts=False,
)
ROWS = Difference(
    kind=Kind.DATA_JSON,
    name="data",
    table="executions",
    expected="JSON",
    found="something else",
    rows=7,
    examples=("id='a'", "id='b'"),
)


def compared(*differences: Difference, **facts: object) -> Comparison:
    """Return a report of some differences."""
    drift = Drift(differences=differences, **facts)
    return Comparison.of(drift, "state.db", prefix="harel")


@pytest.mark.parametrize("fix", ["harel-schema adopt", "harel-schema adopt --prefix work"])
def test_a_command_names_the_database_and_the_prefix_once(fix) -> None:
    """Whether or not the difference already names the prefix."""
    found = Drift(differences=(BEHIND.model_copy(update={"fix": fix}),))
    plan = report.fix_plan(Comparison.of(found, "my state.db", prefix="work"))
    assert plan.endswith("-- run: harel-schema adopt 'my state.db' --prefix work")


def test_text_is_for_people() -> None:
    """A line a difference, its remedy under it, notes, and the verdict last."""
    assert report.drift_text(compared(MISSING, BEHIND, others=("mine",), revision="0002")) == (
        "index-missing people.by_name: expected (name), found nothing\n"
        "  fix: CREATE INDEX by_name ON people (name);\n"
        "note: version-behind harel_alembic_version: expected 0003, found 0002\n"
        "note: not harel's, not compared: mine\n"
        "state.db: 1 difference (revision 0002)"
    )
    assert report.drift_text(compared(revision="0003")) == "state.db: no drift (revision 0003)"


def test_colour_adds_nothing_but_colour() -> None:
    """The text on a terminal is the same, with escape sequences around some words."""
    found = compared(MISSING, BEHIND, others=("mine",))
    colored = report.drift_text(found, color=True)
    assert "\x1b[31mindex-missing\x1b[0m people.by_name" in colored
    assert re.sub(r"\x1b\[\d+m", "", colored) == report.drift_text(found)


@given(reports)
def test_no_name_adds_a_line_or_a_terminal_s_command(found: Comparison) -> None:
    """Whatever a thing is called, a difference is one line, and its remedy another."""
    lines = report.drift_text(found).split("\n")
    fixes = sum(1 for each in found.counted if each.fix)
    assert len(lines) == len(found.counted) + fixes + len(found.notes) + 1
    assert all(line.isprintable() for line in lines)


@given(reports)
def test_json_is_what_its_schema_says_and_comes_back(found: Comparison) -> None:
    """The document of --format json is valid by the published schema, and loses nothing."""
    text = found.model_dump_json()
    assert schemas.problems(json.loads(text), Comparison.model_json_schema()) == []
    assert Comparison.model_validate_json(text) == found


@pytest.mark.parametrize("name", DOCUMENTS)
def test_the_published_schemas_are_current(root: Path, name: str) -> None:
    """The files in docs/schemas are those of this version; `make generate` makes them again."""
    published = (root / "docs" / "schemas" / f"{name}.schema.json").read_text(encoding="utf-8")
    assert json.loads(published) == json.loads(json_schema(name))


def test_the_published_schema_refuses_what_is_no_report(root: Path) -> None:
    """A schema that takes everything would say nothing."""
    schema = json.loads((root / "docs" / "schemas" / "drift.schema.json").read_text("utf-8"))
    whole = json.loads(compared(MISSING).model_dump_json())
    assert schemas.problems(whole, schema) == []
    for wrong in ({"drift": "yes"}, {"more": 1}, {"command": "verify"}, {"differences": [{}]}):
        assert schemas.problems(whole | wrong, schema)


def test_github_gets_an_annotation_a_difference() -> None:
    """What counts is an error with its remedy, the rest a notice, and the verdict a plain line."""
    assert report.github_annotations(compared(MISSING, BEHIND)) == (
        "::error title=harel-schema index-missing::state.db: index-missing people.by_name:"
        " expected (name), found nothing%0Afix: CREATE INDEX by_name ON people (name);\n"
        "::notice title=harel-schema::state.db: version-behind harel_alembic_version:"
        " expected 0003, found 0002\n"
        "harel-schema check: state.db: 1 difference"
    )


def commands(log: str) -> list[tuple[str, str]]:
    """Read a log as GitHub's runner does: the level and the message of each command."""
    found = []
    for line in re.split(r"\r\n|\r|\n", log):
        if match := re.match(r"\s*::(\S+?)(?: .*?)?::(.*)", line):
            message = match[2].replace("%0A", "\n").replace("%0D", "\r").replace("%25", "%")
            found.append((match[1], message))
    return found


@given(reports)
def test_no_name_is_a_workflow_command(found: Comparison) -> None:
    """Whatever a thing is called, there is one command a difference and one a note."""
    read = commands(report.github_annotations(found))
    errors = [message for level, message in read if level == "error"]
    assert [level for level, _ in read] == ["error"] * len(errors) + ["notice"] * len(found.notes)
    assert errors == [
        f"{found.databases}: {each}" + (f"\nfix: {each.fix}" if each.fix else "")
        for each in found.counted
    ]


@given(reports)
def test_sarif_is_valid_by_the_official_schema(found: Comparison) -> None:
    """Every report is SARIF 2.1.0, with a result a difference and a rule a kind."""
    log = json.loads(report.sarif(found, version="1.2.3"))
    assert schemas.problems(log, schemas.SARIF) == []
    (run,) = log["runs"]
    assert [(each["ruleId"], each["level"]) for each in run["results"]] == [
        (each.kind, each.severity) for each in found.differences
    ]
    rules = [rule["id"] for rule in run["tool"]["driver"]["rules"]]
    assert rules == sorted({each.kind for each in found.differences})


def test_sarif_has_what_github_asks_for() -> None:
    """A place without a foreign scheme, a line, a fingerprint that outlives the run, a category."""
    found = Comparison.of(
        Drift(differences=(MISSING, ROWS)), "https://db.turso.io:8080/ns", prefix="app"
    )
    (run,) = json.loads(report.sarif(found, version="1"))["runs"]
    assert run["automationDetails"]["id"] == "harel-schema/app/https://db.turso.io:8080/ns/"
    first, second = run["results"]
    assert first["locations"] == [
        {
            "physicalLocation": {
                "artifactLocation": {"uri": "db.turso.io%3A8080/ns"},
                "region": {"startLine": 1},
            },
            "logicalLocations": [{"fullyQualifiedName": "people.by_name"}],
        }
    ]
    prints = [each["partialFingerprints"]["primaryLocationLineHash"] for each in (first, second)]
    assert len(set(prints)) == 2
    assert all(re.fullmatch(r"[0-9a-f]{16}:1", each) for each in prints)
    again = Comparison.of(Drift(differences=(ROWS,)), "https://db.turso.io:8080/ns", prefix="app")
    assert prints[1] in report.sarif(again, version="2")


@pytest.mark.parametrize(
    ("target", "uri"),
    [("a b/ü%.db", "a%20b/%C3%BC%25.db"), ("/var/a b.db", "file:///var/a%20b.db")],
)
def test_sarif_names_files_by_uris(target: str, uri: str) -> None:
    """A file in the checkout is named relative to it, any other by its file URI."""
    found = Comparison.of(Drift(differences=(MISSING,)), target, prefix="harel")
    assert f'"uri": "{uri}"' in report.sarif(found, version="1")


def test_markdown_is_a_comment_on_a_pull_request() -> None:
    """A mark to find the comment by, the verdict, a table, the remedies folded away, the notes."""
    assert report.drift_markdown(compared(MISSING, ROWS, BEHIND)) == (
        "<!-- harel-schema -->\n"
        "### ❌ harel-schema check: 2 differences\n\n"
        "`state.db`\n\n"
        "| kind | where | expected | found |\n"
        "|---|---|---|---|\n"
        "| index-missing | `people.by_name` | `(name)` | nothing |\n"
        "| data-json | `executions.data` | `JSON` | `something else` in 7: `id='a', id='b'` |\n\n"
        "<details><summary>What mends it</summary>\n\n"
        "```sql\n"
        "CREATE INDEX by_name ON people (name);\n"
        "```\n\n"
        "</details>\n\n"
        "> note: `version-behind harel_alembic_version: expected 0003, found 0002`\n"
    )
    assert "### ✅ harel-schema check: no drift" in report.drift_markdown(compared())


def without_code(line: str) -> str:
    """Return a line of Markdown without its code spans, read as CommonMark reads them."""
    at, text = 0, ""
    while match := re.compile("`+").search(line, at):
        closing_ = re.compile(rf"(?<!`){match[0]}(?!`)").search(line, match.end())
        text += line[at : match.start()] + ("" if closing_ else match[0])
        at = closing_.end() if closing_ else match.end()
    return text + line[at:]


@given(reports)
def test_no_name_is_markdown(found: Comparison) -> None:
    """Whatever a thing is called, its row has four cells, and nothing of it is outside of code."""
    text = report.drift_markdown(found)
    rows = [line for line in text.split("\n") if line.startswith("| ")][1:]
    assert len(rows) >= len(found.counted)
    for row, each in zip(rows, found.counted, strict=False):
        assert len(re.findall(r"(?<!\\)\|", row)) == 5
        outside = f"| {each.kind} |  |  |  |".replace(" ", "")
        bare = without_code(row.replace("\\|", "x")).replace("nothing", "")
        assert re.sub(r"in\d+:", "", bare.replace(" ", "")) == outside


def test_markdown_of_a_thousand_differences_fits_into_a_comment() -> None:
    """A comment has room for 65,536 characters; what does not fit is counted."""
    fixes = {n: "x" * 90 + f"{n};" for n in range(2000)}
    many = (MISSING.model_copy(update={"name": f"i{n}", "fix": fix}) for n, fix in fixes.items())
    text = report.drift_markdown(compared(*many))
    assert len(text) < 65_000
    left_off = [int(n.replace(",", "")) for n in re.findall(r"… and ([\d,]+) more", text)]
    assert text.count("| index-missing |") + left_off[0] == 2000
    assert len(re.findall(r"^x{90}", text, re.MULTILINE)) + left_off[1] == 2000


def test_a_plan_says_what_it_loses_what_to_run_and_what_it_cannot_mend() -> None:
    """A plan is SQL: commands, and what no statement mends, stand in it as comments."""
    drop = Difference(kind=Kind.TABLE_EXTRA, name="t", found="(a)", fix="DROP TABLE t;")
    found = Comparison.of(
        Drift(differences=(BEHIND, MISSING, MISSING, drop, ROWS)), "a b.db", prefix="app"
    )
    assert report.fix_plan(found) == (
        "-- a b.db: 4 differences\n\n"
        "-- no statement mends this: data-json executions.data: expected JSON, found something"
        " else in 7 rows: id='a', id='b', …\n\n"
        "BEGIN IMMEDIATE;\n\n"
        "-- index-missing people.by_name: expected (name), found nothing\n"
        "CREATE INDEX by_name ON people (name);\n\n"
        "-- index-missing people.by_name: expected (name), found nothing\n"
        "-- mended by a statement above\n\n"
        "-- table-extra t: expected nothing, found (a)\n"
        "-- what it holds is lost\n"
        "DROP TABLE t;\n\n"
        "COMMIT;\n\n"
        "-- version-behind harel_alembic_version: expected 0003, found 0002\n"
        "-- run: harel-schema upgrade 'a b.db' --prefix app"
    )
    assert report.fix_plan(compared()) == "-- state.db: no drift"


@given(st.lists(odd, min_size=1, max_size=3))
def test_no_name_ends_a_comment_of_a_plan(names: list[str]) -> None:
    """Whatever a thing is called, a plan without statements runs nothing."""
    differences = tuple(
        Difference(kind=Kind.PRIMARY_KEY, name=name, table=name, found=name) for name in names
    )
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        seen: list[str] = []
        connection.set_trace_callback(seen.append)
        connection.executescript(report.fix_plan(compared(*differences, others=tuple(names))))
        assert [each for each in seen if not each.startswith("--")] == []


def test_a_plan_that_is_run_mends_all_it_promises(tmp_path: Path) -> None:
    """After the script of a plan nothing is left but what it said that it cannot mend."""
    path = tmp_path / "state.db"
    migrate.upgrade(path)
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript("""
            DROP TABLE harel_trace;
            DROP INDEX harel_transport_messages_by_group;
            ALTER TABLE harel_timers RENAME COLUMN fire_at TO due;
            ALTER TABLE harel_spawns ADD COLUMN note TEXT;
            ALTER TABLE harel_outbox RENAME TO queue_of_old;
            CREATE TABLE harel_copy_ledger (a);
            CREATE TRIGGER harel_fence_insert_spawns BEFORE INSERT ON harel_spawns
                BEGIN SELECT RAISE(ABORT, 'stop'); END;
            INSERT INTO harel_timers VALUES ('a', CAST('p' AS BLOB), 'soon');
        """)
        found = Comparison.of(check(path, data=True), "state.db", prefix="harel")
        assert len(found.counted) == 8
        connection.executescript(report.fix_plan(found))
    assert [each.where for each in check(path, data=True)] == ["harel_timers.fire_at"]
