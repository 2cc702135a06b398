"""Results as text for people and as documents for machines. Pure: nothing prints or reads."""

from __future__ import annotations

from harel_schema.report.differences import drift_text
from harel_schema.report.doctor import doctor_text
from harel_schema.report.document import to_json
from harel_schema.report.fixes import fix_plan
from harel_schema.report.github import github_annotations
from harel_schema.report.html import doctor_html, drift_html, verify_html
from harel_schema.report.markdown import drift_markdown
from harel_schema.report.mermaid import mermaid
from harel_schema.report.moving import abort_text, move_text, unfence_text
from harel_schema.report.sarif import sarif
from harel_schema.report.svg import svg
from harel_schema.report.text import (
    adopted_text,
    copy_text,
    current_line,
    current_text,
    history_text,
    migrated_line,
    migrated_text,
    plan_line,
    plan_text,
    verify_text,
)

__all__ = [
    "abort_text",
    "adopted_text",
    "copy_text",
    "current_line",
    "current_text",
    "doctor_html",
    "doctor_text",
    "drift_html",
    "drift_markdown",
    "drift_text",
    "fix_plan",
    "github_annotations",
    "history_text",
    "mermaid",
    "migrated_line",
    "migrated_text",
    "move_text",
    "plan_line",
    "plan_text",
    "sarif",
    "svg",
    "to_json",
    "unfence_text",
    "verify_html",
    "verify_text",
]
