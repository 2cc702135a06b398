"""A drift as SARIF 2.1.0, for GitHub's code scanning and other viewers.

https://docs.oasis-open.org/sarif/sarif/v2.1.0/sarif-v2.1.0.html
"""

from __future__ import annotations

import hashlib
import json
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote, urlsplit

if TYPE_CHECKING:
    from collections.abc import Iterable

    from harel_schema.drift import Difference, Kind
    from harel_schema.report.comparison import Comparison

__all__ = ["sarif"]

_SCHEMA: Final = (
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
)


def sarif(report: Comparison, *, version: str) -> str:
    """Return one SARIF document with one run; `version` is that of this tool.

    A result's place is the database's file, or the server's name as if it were one, because
    GitHub takes no other address; the table and column are its logical location.
    """
    run = {
        "tool": {
            "driver": {
                "name": "harel-schema",
                "version": version,
                "rules": list(map(_rule, _kinds(report.differences))),
            }
        },
        # GitHub keeps the results of each id apart, so that two databases do not close each
        # other's alerts.
        "automationDetails": {"id": f"harel-schema/{report.prefix}/{report.target}/"},
        "columnKind": "unicodeCodePoints",
        "results": [_result(each, report) for each in report.differences],
    }
    log = {"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}
    return json.dumps(log, ensure_ascii=False, indent=2)


def _kinds(differences: Iterable[Difference]) -> list[Kind]:
    return sorted({difference.kind for difference in differences})


def _rule(kind: Kind) -> dict[str, Any]:
    return {
        "id": kind.value,
        "shortDescription": {"text": kind.summary},
        "fullDescription": {"text": kind.summary},
        "help": {"text": "`harel-schema check --fix-plan` prints what mends it."},
    }


def _result(difference: Difference, report: Comparison) -> dict[str, Any]:
    fix = f"\nfix: {difference.fix}" if difference.fix else ""
    identity = f"{report.target}\x00{difference.kind}\x00{difference.where}"
    return {
        "ruleId": difference.kind.value,
        "level": difference.severity,
        "message": {"text": f"{difference}{fix}"},
        "locations": [
            {
                "physicalLocation": {
                    "artifactLocation": {"uri": _uri(report.target)},
                    "region": {"startLine": 1},
                },
                "logicalLocations": [{"fullyQualifiedName": difference.where}],
            }
        ],
        # The name under which GitHub recognises an alert again.
        "partialFingerprints": {
            "primaryLocationLineHash": f"{hashlib.sha256(identity.encode()).hexdigest()[:16]}:1"
        },
    }


def _uri(target: str) -> str:
    parts = urlsplit(target)
    if parts.scheme in ("http", "https"):
        return quote(parts.netloc + parts.path)
    path = PurePath(target)
    return path.as_uri() if path.is_absolute() else quote(path.as_posix())
