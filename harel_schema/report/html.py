"""Results as a page of HTML, to be read, sent and printed."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from harel_schema.names import listed
from harel_schema.report.doctor import doctor_verdict
from harel_schema.report.fixes import fix_command, fix_plan
from harel_schema.report.markup import element, visible
from harel_schema.report.page import (
    Page,
    block,
    card,
    code,
    figure,
    folded,
    page,
    points,
    section,
    table,
)
from harel_schema.report.svg import drawing
from harel_schema.report.text import found_in, verify_verdict
from harel_schema.report.words import count, size, size_and_free

if TYPE_CHECKING:
    from collections.abc import Iterable

    from harel_schema.diagram import Diagram
    from harel_schema.doctor import Diagnosis, Figures, Finding
    from harel_schema.drift import Difference
    from harel_schema.report.comparison import Comparison
    from harel_schema.report.markup import Element
    from harel_schema.verify import RowDifference, TableVerify, VerifyReport

__all__ = ["doctor_html", "drift_html", "verify_html"]


def drift_html(report: Comparison, diagram: Diagram, *, version: str) -> str:
    """Return a page with the differences, what mends each, and the picture of the schema."""
    facts = _standing(report)[0 if report.against is None else 1 :]
    databases: tuple[str, ...] = (report.target,)
    if report.against is not None:
        databases = (f"Expected: {report.against}", f"Found: {report.target}")
    plan = folded("What mends all of it, as a script", block(fix_plan(report)))
    differences = [_difference(each, report) for each in report.counted]
    content = Page(
        command=f"harel-schema {report.command}",
        databases=databases,
        verdict=report.verdict,
        good=not report.drift,
        facts=tuple(facts),
        sections=(
            section("Differences", *differences, plan if differences else None),
            section("Notes", points(report.notes)),
            section("Schema", figure(drawing(diagram, heading=False), "The schema")),
        ),
    )
    return page(content, version=version)


def verify_html(report: VerifyReport, *, version: str) -> str:
    """Return a page with each table, the rows that differ, and the differences of the schema."""
    facts = [
        ("Compared", "quickly" if report.quick else "every cell of every row"),
        ("Time", f"{report.seconds:.1f} s"),
    ]
    differing = [_row(each) for each in report.rows]
    counted = sum(each.changed + each.missing + each.extra for each in report.tables)
    more = counted - len(report.rows)
    left = element("p", f"… and {count(more, 'row')} more (--show)", class_="soft")
    titles = ("Table", "Rows in A", "Rows in B", "Result")
    tables = table(titles, map(_table, report.tables), numbers=2) if report.tables else None
    content = Page(
        command="harel-schema verify",
        databases=(f"A: {report.a}", f"B: {report.b}"),
        verdict=verify_verdict(report),
        good=report.equal,
        facts=tuple(facts),
        sections=(
            section("Differences of the schema", *map(_difference, report.schema)),
            section("Tables", tables),
            section("Rows that differ", *differing, left if differing and more else None),
            section("What was not seen", points(filter(None, [report.blind_spot]))),
        ),
    )
    return page(content, version=version)


def doctor_html(report: Diagnosis, *, version: str) -> str:
    """Return a page with the findings, worst first, what helps, and how large the tables are."""
    facts = _standing(report)
    facts += [("Size", size_and_free(report.bytes, report.free))] if report.bytes else []
    if report.measured_at is not None:
        facts.append(("Ages at", _moment(report.measured_at)))
    titles = ("Table", "Rows", "Finished", "Bytes of cells")
    tables = table(titles, map(_figures, report.tables), numbers=3) if report.tables else None
    content = Page(
        command="harel-schema doctor",
        databases=(report.target,),
        verdict=doctor_verdict(report),
        good=report.sound,
        facts=tuple(facts),
        sections=(
            section("Errors", *map(_finding, report.of("error"))),
            section("Warnings", *map(_finding, report.of("warning"))),
            section("Notes", *map(_finding, report.of("note")), points(report.notes)),
            section("Tables", tables),
        ),
    )
    return page(content, version=version)


def _standing(report: Comparison | Diagnosis) -> list[tuple[str, str]]:
    """Where a database stands."""
    newest = report.head if report.head != report.revision else None
    return [
        ("Revision", report.revision or "unknown"),
        *([("Newest", newest)] if newest else []),
        ("Prefix", report.prefix),
    ]


def _moment(seconds: float) -> str:
    # A store may hold any number.
    try:
        return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M:%S} UTC"
    except (OverflowError, ValueError, OSError):
        return str(seconds)


def _figures(figures: Figures) -> tuple[Element | str, ...]:
    finished = "" if figures.finished is None else f"{figures.finished:,}"
    return code(figures.table), f"{figures.rows:,}", finished, size(figures.bytes)


def _finding(finding: Finding) -> Element:
    facts = [(f"{finding.count:,} in all", code(listed(finding.examples, finding.count)))]
    if finding.remedy:
        runs = finding.remedy.endswith(";") or finding.remedy.startswith("harel-schema ")
        words = element("span", *visible(finding.remedy))
        facts.append(("remedy", block(finding.remedy) if runs else words))
    tone = {"error": "bad", "warning": "odd", "note": "soft"}[finding.severity]
    said = dict.fromkeys((finding.kind.summary, finding.detail))
    told = (element("p", *visible(text), class_="soft") for text in said)
    return card(finding.kind, finding.table or "", *told, facts=facts, tone=tone)


def _difference(difference: Difference, report: Comparison | None = None) -> Element:
    facts = [("expected", _side(difference.expected)), ("found", _side(difference.found))]
    if difference.rows is not None:
        rows = code(listed(difference.examples, difference.rows))
        facts.append((f"in {count(difference.rows, 'row')}", rows))
    if difference.fix:
        fix = fix_command(difference, report) if report else difference.fix
        facts.append(("fix", block(fix)))
    summary = element("p", difference.kind.summary, class_="soft")
    return card(difference.kind, difference.where, summary, facts=facts)


def _side(text: str | None) -> Element:
    return element("span", "nothing", class_="soft") if text is None else code(text)


def _table(result: TableVerify) -> tuple[Element | str, ...]:
    tone, told = ("good", "✓ equal") if result.equal else ("bad", f"✗ {found_in(result)}")
    verdict = element("span", told, class_=tone)
    return code(result.name), f"{result.rows_a:,}", f"{result.rows_b:,}", verdict


def _row(row: RowDifference) -> Element:
    key = ", ".join(f"{column}={value!r}" for column, value in row.key)
    cells: Iterable[tuple[Element | str, ...]] = (
        (code(cell.column), code(f"{cell.class_a} {a}"), code(f"{cell.class_b} {b}"))
        for cell in row.cells
        for a, b in [cell.excerpts]
    )
    shown = table(("Column", "A", "B"), cells) if row.cells else None
    return card(row.kind, f"{row.table} {key}", shown)
