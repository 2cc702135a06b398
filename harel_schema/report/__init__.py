"""Results as text for people and as documents for machines. Pure: nothing prints or reads."""

from __future__ import annotations

from harel_schema.report.differences import drift_text
from harel_schema.report.document import to_json
from harel_schema.report.moving import abort_text, move_text, unfence_text
from harel_schema.report.text import (
    adopted_text,
    copy_text,
    current_text,
    history_text,
    migrated_text,
    plan_text,
    verify_text,
)

__all__ = [
    "abort_text",
    "adopted_text",
    "copy_text",
    "current_text",
    "drift_text",
    "history_text",
    "migrated_text",
    "move_text",
    "plan_text",
    "to_json",
    "unfence_text",
    "verify_text",
]
