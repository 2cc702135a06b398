"""Write the pages below a folder, the checkout by default."""

from __future__ import annotations

import sys
from contextlib import chdir
from pathlib import Path
from tempfile import TemporaryDirectory

from harel_schema import diagram, migrate, report
from tools.reference import errors, man, pages
from tools.reference.commands import group, verbs

CHECKOUT = Path(__file__).resolve().parents[2]


def picture() -> str:
    """Return the schema at head as SVG."""
    with TemporaryDirectory() as folder, chdir(folder):
        migrate.upgrade("state.db")
        return report.svg(diagram.read("state.db"))


def main(root: Path) -> None:
    """Write every page."""
    whole, each = group(), verbs()
    for name, text in {
        "docs/images/schema.svg": picture(),
        "docs/reference/cli.md": pages.command_line(whole, each),
        "docs/reference/errors.md": pages.errors(errors.tree(), errors.classes(CHECKOUT)),
        "man/harel-schema.1": man.page(whole, each, CHECKOUT / "docs" / "reference"),
    }.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(Path(*sys.argv[1:]) if sys.argv[1:] else CHECKOUT)
