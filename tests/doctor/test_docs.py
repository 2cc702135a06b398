"""The page about the doctor has every kind, as the code has it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from harel_schema import drift
from harel_schema.doctor import Kind, Thresholds

if TYPE_CHECKING:
    from pathlib import Path


def test_the_table_of_findings_is_that_of_the_code(root: Path) -> None:
    """Each kind with its severity, its sentence and its remedy, and no other."""
    page = (root / "docs" / "doctor.md").read_text("utf-8")
    rows = re.findall(r"^\| `([a-z-]+)` \| (\w+) \| (.+?) \| (.+?) \|$", page, re.MULTILINE)
    rules = [each for each in drift.Kind if each.startswith("data-")]
    assert rows == [(each.value, each.severity, each.summary, each.remedy) for each in Kind] + [
        (each.value, "error", each.summary, "see `harel-schema check --data`") for each in rules
    ]


def test_the_thresholds_are_those_of_the_code(root: Path) -> None:
    """The defaults that the page names."""
    page = (root / "docs" / "doctor.md").read_text("utf-8")
    found = dict(re.findall(r"^\| `(--[a-z-]+) [A-Z]+` \| ([^|]+) \|", page, re.MULTILINE))
    limits = Thresholds()
    assert found == {
        "--max-age": "a day",
        "--max-queue": f"{limits.queue:,}",
        "--trace-max": str(limits.trace),
    }
    assert limits.age == 24 * 3600
