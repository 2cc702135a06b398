"""The picture of a schema says what is there and what differs, and no name can break out of it."""

from __future__ import annotations

import re
import sqlite3
from contextlib import closing
from itertools import combinations, pairwise
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from harel_schema import diagram, drift, migrate, report, tables
from harel_schema.diagram import Box, Diagram, Line, Link
from harel_schema.names import one_line
from harel_schema.report import layout
from tests.support.text import any_text

if TYPE_CHECKING:
    from pathlib import Path

SVG = "{http://www.w3.org/2000/svg}"
DRIFTED = """
    DROP TABLE harel_trace;
    DROP INDEX harel_transport_messages_by_group;
    CREATE INDEX mine ON harel_timers (path);
    ALTER TABLE harel_timers RENAME COLUMN fire_at TO due;
    ALTER TABLE harel_spawns ADD COLUMN note TEXT;
    ALTER TABLE harel_outbox RENAME TO queue_of_old;
    CREATE TABLE harel_copy_ledger (a);
    CREATE TRIGGER harel_fence_insert_spawns BEFORE INSERT ON harel_spawns
        BEGIN SELECT RAISE(ABORT, 'moved to x'); END;
    DROP TABLE harel_definitions;
    CREATE TABLE harel_definitions (definition_id TEXT NOT NULL, version BLOB NOT NULL,
        digest TEXT NOT NULL, source TEXT NOT NULL, PRIMARY KEY (definition_id, version)) STRICT;
    CREATE TABLE orders (id INTEGER PRIMARY KEY, execution TEXT NOT NULL
        REFERENCES harel_executions (id), UNIQUE (execution), CHECK (id > 0));
    CREATE VIEW open_orders AS SELECT * FROM orders;
"""


@pytest.fixture
def drifted(tmp_path: Path) -> Path:
    """Return a file with a difference of each sort, and with tables of somebody else."""
    migrate.upgrade(tmp_path / "x.db")
    with closing(sqlite3.connect(tmp_path / "x.db")) as connection:
        connection.executescript(DRIFTED)
    return tmp_path / "x.db"


def remarks(drawn: Diagram) -> dict[str, tuple[str, ...]]:
    """Return what is said of each box and each line, by its name."""
    said = {box.name: box.remarks for box in drawn.boxes}
    said |= {f"{box.name}.{each.name}": each.remarks for box in drawn.boxes for each in box.lines}
    return {name: words for name, words in said.items() if words}


def test_each_difference_is_marked_at_its_place(drifted: Path) -> None:
    """Missing, extra, renamed, changed and left over things are in the picture, in words."""
    drawn = diagram.read(drifted)
    assert drawn.differences == len([each for each in drift.check(drifted) if each.counts])
    assert remarks(drawn) == {
        "harel_trace": ("missing",),
        "harel_transport_messages.harel_transport_messages_by_group": ("missing",),
        "harel_timers.mine": ("extra",),
        "harel_timers.due": ("renamed: expected fire_at",),
        "harel_spawns.note": ("extra",),
        "queue_of_old": ("renamed: expected harel_outbox",),
        "harel_copy_ledger": ("left over",),
        "harel_spawns.harel_fence_insert_spawns": ("left over",),
        "harel_definitions.version": (
            "different: expected INTEGER (affinity INTEGER), found BLOB (affinity BLOB)",
        ),
        "harel_definitions.published_at": ("missing",),
        "harel_definitions.strict": ("different: expected not STRICT, found STRICT",),
    }


def test_a_database_as_promised_has_no_mark(tmp_path: Path) -> None:
    """A migrated file is drawn whole, with every relation and without a mark."""
    migrate.upgrade(tmp_path / "y.db", prefix="app")
    drawn = diagram.read(tmp_path / "y.db", prefix="app")
    assert (drawn.differences, drawn.revision, remarks(drawn)) == (0, "0004", {})
    assert len(drawn.links) == len(tables.relations("app"))
    assert {box.name for box in drawn.boxes} == {
        *tables.metadata("app").tables,
        "app_alembic_version",
    }


def test_an_empty_database_is_drawn_as_what_it_lacks(tmp_path: Path) -> None:
    """Where nothing is, every table of head is missing."""
    sqlite3.connect(tmp_path / "y.db").close()
    (tmp_path / "y.db").touch()
    drawn = diagram.read(tmp_path / "y.db")
    assert {box.mark for box in drawn.boxes} == {"missing"}
    assert len(drawn.boxes) == len(tables.metadata().tables)


def test_the_relations_are_those_of_real_columns() -> None:
    """What the tables are said to refer to exists."""
    meta = tables.metadata("app")
    for each in tables.relations("app"):
        assert each.column in meta.tables[each.table].columns
        assert each.parent_column in meta.tables[each.parent].columns


def test_foreign_keys_and_renamed_tables_are_related(drifted: Path) -> None:
    """A declared key is told from a relation of the store's, which follows a renamed table."""
    assert "orders" in diagram.read(drifted).others
    drawn = diagram.read(drifted, all_tables=True)
    assert drawn.others == ()
    links = {link.table: link for link in drawn.links}
    assert links["orders"] == Link(
        table="orders",
        columns=("execution",),
        parent="harel_executions",
        parent_columns=("id",),
        declared=True,
        optional=False,
        many=False,
        parent_many=False,
    )
    assert (links["queue_of_old"].declared, links["queue_of_old"].optional) == (False, True)
    kinds = {box.name: (box.kind, box.own) for box in drawn.boxes}
    assert kinds["open_orders"] == ("view", False)
    assert kinds["orders"] == ("table", False)


def test_two_databases_are_drawn_as_their_difference(drifted: Path, tmp_path: Path) -> None:
    """What a diff finds is marked in the picture of the second database."""
    migrate.upgrade(tmp_path / "y.db")
    found = drift.examine_pair(tmp_path / "y.db", drifted)
    said = remarks(diagram.draw(found, "x.db", all_tables=True))
    assert said["orders"] == ("extra",)
    assert said["harel_trace"] == ("missing",)


SMALL = Diagram(
    target="state.db",
    prefix="harel",
    revision="0004",
    differences=2,
    boxes=(
        Box(
            name="people",
            lines=(
                Line(kind="column", name="id", detail="INTEGER", keys=("PK",)),
                Line(kind="column", name="the name", detail="VARCHAR(9)", nullable=True),
                Line(kind="index", name="by_name", detail="(name)", mark="missing"),
            ),
        ),
        Box(name="pk", mark="extra"),
    ),
    links=(
        Link(
            table="pk",
            columns=("a", "b"),
            parent="people",
            parent_columns=("id", "name"),
            declared=False,
            optional=False,
            many=True,
            parent_many=False,
        ),
    ),
    others=("mine",),
)


# Names that would break out of a page, a picture or a box; letters of many widths.
DIAGRAM = Diagram(
    target="<script>alert(1)</script>\x1b.db",
    prefix="harel",
    revision="0003",
    differences=3,
    boxes=(
        *SMALL.boxes,
        Box(name="<script>alert(1)</script>" * 3, mark="missing", kind="virtual table", own=False),
        Box(
            name="表" * 40,
            mark="renamed",
            notes=("expected " + "größe" * 20,),
            lines=(
                Line(kind="column", name="🙂 مفتاح हिन्दी", detail="W" * 60, nullable=True),
                Line(kind="column", name="i" * 60, detail="表" * 20, mark="different"),
                Line(kind="trigger", name="\u202e\x00", mark="left over"),
                Line(kind="constraint", name="check", detail="(a < b)", mark="extra"),
            ),
        ),
    ),
    links=(
        *SMALL.links,
        SMALL.links[0].model_copy(update={"table": "表" * 40, "declared": True}),
        SMALL.links[0].model_copy(update={"table": "people"}),
    ),
    others=("mine",),
)


def test_mermaid_is_an_er_diagram() -> None:
    """Names stand as they are where they can; the rest is in labels and comments."""
    assert report.mermaid(SMALL) == (
        "---\n"
        'title: "state.db: 2 differences (revision 0004)"\n'
        "---\n"
        "erDiagram\n"
        "    people {\n"
        "        INTEGER id PK\n"
        '        VARCHAR_9 the_name "named the name · VARCHAR(9) · null"\n'
        '        index by_name "missing · (name)"\n'
        "    }\n"
        '    table2["pk · extra"] {\n'
        "    }\n"
        '    table2 }o..|| people : "a, b"\n'
        "    classDef different stroke:#cf222e,stroke-width:2px\n"
        "    class people different\n"
        "    classDef extra stroke:#9a6700,stroke-width:2px\n"
        "    class table2 extra"
    )


# Any text, and what means something to Mermaid, wherever it stands.
words = st.sampled_from(
    [
        *("direction TB", "Direction  lr", "style a:b#c;", "%%{init: {}}%%", "%% x", "one", "to"),
        *("accTitle: x", "---", "<script>", "#quot;", "`a`", "**b**", "_i_", "__proto__", "~a~ b"),
        *(
            "end",
            "pk",
            "1a",
            "[x]",
            "{y}",
            "||--o{",
            "::: x",
            ":#",
            "  ",
            "table1",
            'a"b',
            "\\",
            "",
        ),
    ]
)
odd = any_text() | words | st.builds("".join, st.lists(words, min_size=2, max_size=3))
marks = st.sampled_from([None, "missing", "extra", "renamed", "different", "left over"])
lines = st.builds(
    Line,
    kind=st.sampled_from(["column", "index", "trigger", "constraint"]),
    name=odd,
    detail=odd,
    keys=st.sampled_from([(), ("PK",), ("PK", "FK")]),
    nullable=st.booleans(),
    mark=marks,
    notes=st.lists(odd, max_size=1).map(tuple),
)
boxes = st.builds(
    Box,
    name=odd,
    kind=st.sampled_from(["table", "view", "virtual table"]),
    own=st.booleans(),
    lines=st.lists(lines, max_size=4).map(tuple),
    mark=marks,
    notes=st.lists(odd, max_size=1).map(tuple),
)


@st.composite
def diagrams(draw: st.DrawFn) -> Diagram:
    """Draw a schema of odd names."""
    some = draw(st.lists(boxes, max_size=4, unique_by=lambda box: box.name.lower()))
    links = []
    if some:
        table = st.sampled_from([box.name for box in some])
        flags = dict.fromkeys(("declared", "optional", "many", "parent_many"), st.booleans())
        name = odd.map(lambda text: (text,))
        link = st.builds(
            Link, table=table, parent=table, columns=name, parent_columns=name, **flags
        )
        links = draw(st.lists(link, max_size=4))
    return Diagram(
        target=draw(odd),
        prefix="harel",
        revision=None,
        differences=1,
        boxes=tuple(some),
        links=tuple(links),
        others=(),
    )


# What Mermaid 11's parser was seen to take in whatever order; older ones take no classes.
TEXT = r'"(?! *")(?:[^"%~<>&`*\\\n\r\t\[\]{}|$;#]|#\d+;)+"'
WORD = r"(?!(?i:direction|style|class|end|pk|fk|uk|one|many|to|u|title)\b)[A-Za-z_][A-Za-z0-9_]*"
GRAMMAR = re.compile(
    "|".join(
        (
            rf"    {WORD}(?:\[{TEXT}\])? \{{",
            r"    \}",
            rf"        {WORD} {WORD}(?: PK(?:, FK)?)?(?: {TEXT})?",
            rf"    {WORD} [}}|]o(?:--|\.\.)(?:\|\||o\||o\{{) {WORD} : {TEXT}",
            r"    classDef [a-z]+ [a-z0-9:,#-]+",
            r"    class [A-Za-z0-9_]+(?:,[A-Za-z0-9_]+)* [a-z]+",
        )
    )
)


@given(diagrams())
@example(DIAGRAM)
def test_no_name_is_mermaid(drawn: Diagram) -> None:
    """Whatever a thing is called, each line is one of a few forms, and there are as many."""
    first, title, last, kind, *body = report.mermaid(drawn).split("\n")
    assert (first, last, kind) == ("---", "---", "erDiagram")
    assert re.fullmatch(r'title: "(?:[A-Za-z0-9 ().,:=?!+/_-]|\\U[0-9a-f]{8})*"', title)
    assert [line for line in body if not GRAMMAR.fullmatch(line)] == []
    assert not any(re.search(r"(?i)direction\s+(TB|BT|LR|RL)|style.*:\S*#", line) for line in body)
    assert sum(line.endswith(" {") for line in body) == len(drawn.boxes)
    held = [line for line in body if line.startswith("        ")]
    assert len(held) == sum(len(box.lines) for box in drawn.boxes)
    assert sum(" : " in line and not line.startswith("     ") for line in body) >= len(drawn.links)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("größe", "größe"),
        ("a\nb", "a#92;nb"),
        ("_i_", "#95;i#95;"),
        ("snake_case", "snake_case"),
        ("direction LR", "#100;irection LR"),
        ('"', "#34;"),
        ("", "#34;#34;"),
        (" ", "#34; #34;"),
    ],
)
def test_mermaid_shows_names_as_they_are(name: str, text: str) -> None:
    """What cannot stand in a text is an entity code, which is drawn as its character."""
    drawn = SMALL.model_copy(update={"boxes": (Box(name=name),), "links": ()})
    label = re.search(r'\["(.*)"\]', report.mermaid(drawn))
    assert (label[1] if label else name) == text


def texts(root: ET.Element) -> list[str]:
    """Return what can be read in a picture, its tooltips included."""
    return ["".join(node.itertext()) for node in root.iter(f"{SVG}text")]


@given(diagrams())
@example(DIAGRAM)
def test_no_name_is_svg(drawn: Diagram) -> None:
    """Whatever a thing is called, the picture is XML, and every element in it one of ours."""
    root = ET.fromstring(report.svg(drawn))
    known = {"svg", "title", "desc", "style", "rect", "path", "g", "text"}
    assert {node.tag.removeprefix(SVG) for node in root.iter()} <= known
    shown = " ".join(texts(root))
    assert shown.isprintable()
    for box in drawn.boxes:
        assert one_line(box.name)[:30] in shown
        for said in (*box.remarks, *(said for line in box.lines for said in line.remarks)):
            assert one_line(said)[:30] in shown


def test_svg_tells_those_who_cannot_see_it() -> None:
    """The picture has a title and says its differences, for a screen reader."""
    root = ET.fromstring(report.svg(SMALL))
    assert root.get("role") == "img"
    assert root.findtext(f"{SVG}title") == "state.db: 2 differences (revision 0004)"
    assert root.findtext(f"{SVG}desc") == "2 tables; people.by_name: missing; pk: extra"
    assert "1 table of others not shown (--all-tables)" in texts(root)
    assert "prefers-color-scheme: dark" in str(root.findtext(f"{SVG}style"))


Sizes = list[tuple[float, float]]


@st.composite
def pictures(draw: st.DrawFn) -> tuple[Sizes, list[layout.Line]]:
    """Draw boxes of some rows, and lines between their rows."""
    rows = draw(st.lists(st.integers(1, 12), max_size=60))
    sizes: Sizes = [(draw(st.integers(200, 500)), 36.0 + 20 * count) for count in rows]
    paths = []
    for _ in range(draw(st.integers(0, 2 * len(rows)))):
        child, parent = (draw(st.integers(0, len(rows) - 1)) for _ in range(2))
        downs = [draw(st.integers(0, rows[box] - 1)) * 20 + 43 for box in (child, parent)]
        paths.append(layout.Line(layout.End(child, downs[0] - 4), layout.End(parent, downs[1] + 4)))
    return sizes, paths


Segment = tuple[float, float, float, float]


def overlap(a: Segment, b: Segment) -> tuple[float, float]:
    """Return how much two rectangles, or lines, share in x and in y; negative where nothing."""
    return (min(a[2], b[2]) - max(a[0], b[0]), min(a[3], b[3]) - max(a[1], b[1]))


@given(pictures())
def test_nothing_in_a_picture_lies_on_another_thing(picture) -> None:
    """Boxes keep apart, lines run beside them, and only lines to one parent share a way."""
    sizes, paths = picture
    plan = layout.arrange(sizes, paths)
    frames = [(p.x, p.y, p.x + p.width, p.y + p.height) for p in plan.places]
    for place, (width, height) in zip(plan.places, sizes, strict=True):
        assert place.width >= width
        assert place.height == height
        assert 0 <= place.x <= plan.width - place.width
        assert 0 <= place.y <= plan.height - place.height
    for a, b in combinations(frames, 2):
        assert min(overlap(a, b)) <= -10
    drawn: list[tuple[layout.Line, Segment]] = []
    for line, path in zip(paths, plan.paths, strict=True):
        for (x, y), (u, v) in pairwise(path):
            assert x == u or y == v
            drawn.append((line, (min(x, u), min(y, v), max(x, u), max(y, v))))
    for _, segment in drawn:
        assert all(0 <= each <= max(plan.width, plan.height) for each in segment)
        assert all(min(overlap(segment, frame)) <= 0 for frame in frames)
    for (one, a), (two, b) in combinations(drawn, 2):
        if one.parent != two.parent and one.child != two.child:
            wide, high = overlap(a, b)
            assert not (max(wide, high) > 0 and min(wide, high) == 0 and upright(a) == upright(b))


def upright(segment: Segment) -> bool:
    """Tell whether a segment is vertical."""
    return segment[0] == segment[2]
