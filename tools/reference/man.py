"""The man page, in the macros of man(7)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from harel_schema import __version__
from tools.reference.commands import NAME

if TYPE_CHECKING:
    from pathlib import Path

    from tools.reference.commands import Command

__all__ = ["page"]

_ESCAPES = str.maketrans(
    {
        "\\": "\\e",
        "-": "\\-",
        "'": "\\(aq",
        "^": "\\(ha",
        "~": "\\(ti",
        "`": "",
        "…": "...",
    }
)


def page(whole: Command, verbs: list[Command], reference: Path) -> str:
    """Return the page; exit codes and variables are those of the pages in `reference`."""
    lines = [
        '.\\" Made from the code by `make generate`.',
        f'.TH HAREL\\-SCHEMA 1 "" "harel\\-schema {__version__}" "harel\\-schema"',
        ".SH NAME",
        f"{_text(NAME)} \\- migrations, checks and data tools for the database of harel",
        ".SH SYNOPSIS",
        *(line for verb in verbs for line in (".br", _usage(verb))),
        ".SH DESCRIPTION",
        *_paragraphs([whole.summary, *whole.paragraphs]),
        ".SH COMMANDS",
    ]
    for verb in verbs:
        lines += [f".SS {_text(verb.name)}", *_paragraphs([verb.summary, *verb.paragraphs])]
        lines += _entries(verb.options)
    lines += [".SH EXIT STATUS", *_entries(_table(reference / "exit-codes.md"))]
    lines += [".SH ENVIRONMENT", *_entries(_table(reference / "environment.md"))]
    lines += [".SH SEE ALSO", ".BR sqlite3 (1)"]
    return "\n".join(lines) + "\n"


def _usage(verb: Command) -> str:
    program, name, *rest = verb.usage.split()
    return f"\\fB{_text(program)} {_text(name)}\\fR {_text(' '.join(rest))}".rstrip()


def _paragraphs(paragraphs: list[str]) -> list[str]:
    return [line for text in paragraphs for line in (".PP", _text(text))][1:]


def _entries(entries: list[tuple[str, str]]) -> list[str]:
    return [
        line for name, text in entries for line in (".TP", f"\\fB{_text(name)}\\fR", _text(text))
    ]


def _table(path: Path) -> list[tuple[str, str]]:
    """Return the rows of a page's first table, without the marks of Markdown."""
    rows = re.findall(r"^\| (.+?) \| (.+?) \|$", path.read_text(encoding="utf-8"), re.MULTILINE)
    plain = [tuple(re.sub(r"`|\[(.+?)\]\(.+?\)", r"\1", cell) for cell in row) for row in rows]
    return [(name, text) for name, text in plain[1:]]


def _text(text: str) -> str:
    """Escape what troff would read as its own, and what it would make of a hyphen."""
    escaped = text.replace("\\", "\\e").replace("-", "\\-").replace("'", "\\(aq")
    escaped = (
        escaped.replace("`", "").replace("…", "...").replace("^", "\\(ha").replace("~", "\\(ti")
    )
    return f"\\&{escaped}" if escaped.startswith(".") else escaped
