"""What the verbs did, as text for people."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harel_schema.names import one_line
from harel_schema.report.differences import difference_lines
from harel_schema.report.words import count, size

if TYPE_CHECKING:
    from collections.abc import Iterable

    from harel_schema.migrate import Adopted, Caveat, Current, Migrated, Plan, Revision
    from harel_schema.transfer import CopyReport, Estimate, TableCopy
    from harel_schema.verify import TableVerify, VerifyReport

__all__ = [
    "adopted_text",
    "copy_text",
    "current_line",
    "current_text",
    "found_in",
    "history_text",
    "migrated_line",
    "migrated_text",
    "plan_line",
    "plan_text",
    "verify_text",
    "verify_verdict",
]

# How many executions a line names; JSON has more of them.
_NAMED = 10
_CAVEATS = {
    "fan-out": "may wait for a fan-out of harel 0.2.0 or older, which an engine since 0.2.1 starts "
    "again (let the old release finish them first)",
    "undated": "finished before harel noted when (`harel purge` passes them over without "
    "--include-undated)",
}


def migrated_text(result: Migrated) -> str:
    """Return what an upgrade, a downgrade or a stamp did."""
    lines = []
    if result.adopted:
        found = ", ".join(result.adopted)
        lines.append(f"{result.target}: took over the tables that harel made, as revision {found}")
    after = result.after or "base"
    if result.applied or result.before != result.after:
        steps = f" (ran {', '.join(result.applied)})" if result.applied else ""
        lines.append(f"{result.target}: {result.before or 'base'} -> {after}{steps}")
    else:
        lines.append(f"{result.target}: already at {after}")
    lines += [f"  dropped {name}" for name in result.dropped]
    return "\n".join(lines)


def migrated_line(result: Migrated) -> str:
    """Return what an upgrade did, in one line and without the name of the database."""
    steps = [
        f"{verb} {', '.join(names)}"
        for verb, names in (("took over", result.adopted), ("ran", result.applied))
        if names
    ]
    after = result.after or "base"
    if not steps and result.before == result.after:
        return f"already at {after}"
    done = f" ({', '.join(steps)})" if steps else ""
    return f"{result.before or 'base'} -> {after}{done}"


def plan_line(plan: Plan) -> str:
    """Return what an upgrade would do, in one line and without the name of the database."""
    steps = [
        f"would {verb} {', '.join(names)}"
        for verb, names in (("take over", plan.adopted), ("run", plan.pending))
        if names
    ]
    return f"{plan.revision or 'base'}, {', '.join(steps)}" if steps else "nothing to do"


def plan_text(plan: Plan) -> str:
    """Return the steps that an upgrade would run, and their SQL."""
    line = f"{plan.target}: {plan_line(plan)}"
    if plan.is_long:
        line += f", writers would wait about {plan.seconds:.0f} s"
    return f"-- {line}\n{plan.sql.strip()}" if plan.sql else line


def adopted_text(result: Adopted) -> str:
    """Return what an adoption did, a line a table; of a dry run, the SQL that it would run."""
    lines = [f"{old} -> {new}" for old, new in result.renamed]
    lines += [f"{name}: created" for name in result.created]
    lines += [f"{name}: was empty, dropped" for name in result.dropped]
    lines += [f"note: {note}" for note in result.notes]
    lines += [f"warning: {_caveat(caveat)}" for caveat in result.caveats]
    at = f"{result.target}: {result.before or 'base'}"
    steps = ", ".join(result.applied)
    if result.dry_run:
        lines.append(f"{at}, would run {steps}" if steps else f"{result.target}: nothing to run")
        return "\n".join([*(f"-- {line}" for line in lines), result.sql.strip()]).strip()
    if result.renamed or steps or result.before != result.after:
        lines.append(f"{at} -> {result.after}" + (f" (ran {steps})" if steps else ""))
    else:
        lines.append(f"{result.target}: already at {result.after}")
    return "\n".join(lines)


def _caveat(caveat: Caveat) -> str:
    names = caveat.executions[:_NAMED]
    more = caveat.total - len(names)
    # A line break would end the comment in a dry run's SQL.
    named = one_line(", ".join(names))
    named += f" and {more:,} more" if more else ""
    return f"{count(caveat.total, 'execution')} {_CAVEATS[caveat.kind]}: {named}"


def current_text(result: Current) -> str:
    """Return where a database stands, and a line for each difference from its revision."""
    lines = [f"{result.target}: {current_line(result)}"]
    return "\n".join([*lines, *(f"  {each}" for each in result.shape or ())])


def current_line(result: Current) -> str:
    """Return where a database stands, in one line and without its name."""
    at = result.revision or "no revision"
    if result.pending:
        at += f", head {result.head}, pending: {', '.join(result.pending)}"
    else:
        at += " (head)"
    if result.shape is None:
        return at
    found = count(len(result.shape), "difference")
    return f"{at}, tables differ ({found})" if result.shape else f"{at}, tables match"


def history_text(revisions: Iterable[Revision]) -> str:
    """Return the chain, a line a revision."""
    return "\n".join(f"{each.revision}  {each.summary}" for each in revisions)


def copy_text(result: CopyReport) -> str:
    """Return a line a table, the notes, and what was done."""
    lines = [f"  {_table_copy(table, result)}" for table in result.tables]
    lines += [f"note: {note}" for note in result.notes]
    pair = f"{result.source} -> {result.dest}"
    if result.dry_run:
        lines += [_estimate(result.estimate)] if result.estimate else []
        revision = f" (revision {result.revision})" if result.revision else ""
        lines.append(f"{pair}{revision}: would be {result.action}; nothing was written")
        return "\n".join(lines)
    done = f"{count(result.rows, 'row')}, {result.written:,} written in {result.seconds:.1f} s"
    return "\n".join([*lines, f"{pair}: {result.action}, {done}"])


def _table_copy(table: TableCopy, result: CopyReport) -> str:
    rows = f"{table.name}: {count(table.rows, 'row')}"
    if not result.dry_run:
        return f"{rows}, {table.written:,} written"
    return rows if table.bytes is None else f"{rows}, {size(table.bytes)}"


def _estimate(guess: Estimate) -> str:
    seconds = f"about {count(max(1, round(guess.seconds)), 'second')}"
    free = "" if guess.free is None else f"; {size(guess.free)} are free there"
    return f"{size(guess.bytes)} with indexes, {seconds}{free}"


def verify_text(report: VerifyReport) -> str:
    """Return the differences, a line each, a line a table, and the verdict."""
    lines = [line for each in report.schema for line in difference_lines(each)]
    lines += map(str, report.rows)
    lines += [f"  {_table(table)}" for table in report.tables]
    how = "quickly " if report.quick else ""
    lines.append(f"{report.a} and {report.b}: {how}compared, {verify_verdict(report)}")
    return "\n".join(lines)


def verify_verdict(report: VerifyReport) -> str:
    """Return the result in a few words."""
    return f"the same ({count(report.compared, 'row')})" if report.equal else "different"


def _table(table: TableVerify) -> str:
    if table.equal:
        return f"{table.name}: {count(table.rows_a, 'row')}, equal"
    return f"{table.name}: {table.rows_a:,} and {count(table.rows_b, 'row')}, {found_in(table)}"


def found_in(table: TableVerify) -> str:
    """Return what differs in a table, in a few words."""
    found = [
        f"{number:,} {what}"
        for number, what in (
            (table.changed, "changed"),
            (table.missing, "missing"),
            (table.extra, "extra"),
        )
        if number
    ]
    return ", ".join([*found, *(f"{name} differs" for name in table.aggregates)])
