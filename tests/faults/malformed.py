"""What a verb may be handed: names, options and files of every kind that is wrong."""

from __future__ import annotations

import os
import shutil
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING, Any

import click
from hypothesis import strategies as st

from harel_schema import cli

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

SECRET = "eyJhbGciOiJFZERTQSJ9.S3cr3tTokenOfNobody"
GARBAGE = [
    *("", " ", "-", "--", "0", "-1", "9" * 400, "1e999", "nan", "%s%n", "{0}", "é☃𝄞", "a\nb", "\t"),
    *("\x1b[31m", "\udcff", "'; DROP TABLE harel_trace; --", "../..", "x" * 5000, "[bold]", "\\"),
    *("head", "base", "0001", "+1", "-1", "head+1", "0001:0003", "@", "harel", "sqlite_", "json"),
]
ADDRESSES = [
    *("http://", "http://[", "http://127.0.0.1:99999", "ftp://host", "libsql:/x", "file:x.db"),
    *("sqlite://host/x", "sqlite:///", "sqlite+libsql://", "http://a b", "https://user:pw@host"),
    f"http://127.0.0.1:1?authToken={SECRET}&authToken=other",
    f"https://{SECRET}@host",
    f"libsql://host?x={SECRET}",
    f"state.db?authToken={SECRET}",
    f"http://127.0.0.1:1/{'a' * 3000}?authToken={SECRET}",
]
# What a person, a crash or another tool may have left in a database.
DAMAGE = [
    "UPDATE harel_alembic_version SET version_num = '9999'",
    "UPDATE harel_alembic_version SET version_num = x'ff00'",
    "UPDATE harel_alembic_version SET version_num = 'a' || char(10) || 'b'",
    "UPDATE harel_alembic_version SET version_num = '0001'",
    "INSERT INTO harel_alembic_version VALUES ('0002')",
    "DELETE FROM harel_alembic_version",
    "DROP TABLE harel_alembic_version",
    "DROP TABLE harel_executions",
    "DROP TABLE harel_definitions",
    "DROP INDEX harel_timers_by_fire_at",
    "ALTER TABLE harel_timers RENAME COLUMN fire_at TO due",
    "ALTER TABLE harel_trace ADD COLUMN more",
    "CREATE VIEW harel_copy_ledger AS SELECT 1",
    "CREATE TABLE harel_copy_ledger (tbl, lower, upper, count, digest, source)",
    "UPDATE harel_copy_ledger SET upper = x'ff', digest = 'x', source = char(27)",
    "UPDATE harel_move SET peer = char(10) || 'http://[', state = 'x', run = 7",
    "UPDATE harel_move_log SET tbl = 'nobody', seq = -seq",
    "CREATE TABLE harel_move (a)",
    "CREATE TABLE harel_move_log (a)",
    "CREATE TRIGGER harel_fence_x AFTER DELETE ON harel_trace BEGIN SELECT RAISE(ABORT, 'no'); END",
    "CREATE TRIGGER t BEFORE INSERT ON harel_trace BEGIN SELECT RAISE(ABORT, 'moved to x'); END",
    "CREATE TABLE executions (id)",
    'CREATE TABLE "evil \x1b[31m \x90 \u2028" ("a\nb" TEXT DEFAULT \'\x07\')',
    'CREATE INDEX "evil \x1b]0;x\x07" ON harel_trace (entry)',
    "CREATE TABLE more (a, b, PRIMARY KEY (a, b)) WITHOUT ROWID",
    "UPDATE harel_executions SET id = id || char(27) || '[2J', definition_id = char(10, 0, 155)",
    "UPDATE harel_executions SET data = '{' || id",
    "UPDATE harel_executions SET data = CAST(x'ff80' AS TEXT)",
    "UPDATE harel_executions SET data = x'00', version = 'seven'",
    "UPDATE harel_executions SET data = '{\"status\": NaN}'",
    "UPDATE harel_timers SET fire_at = 'soon'",
    "UPDATE harel_trace SET entry = '[' || hex(zeroblob(2000))",
    "UPDATE sqlite_sequence SET seq = -9e999",
    "UPDATE sqlite_sequence SET seq = 'x'",
    "PRAGMA user_version = -1",
    "PRAGMA journal_mode = WAL",
    "PRAGMA journal_mode = TRUNCATE",
]
# The text of the schema itself; not every one of these leaves a file that SQLite can open.
SCHEMAS = [
    "UPDATE sqlite_schema SET sql = 'CREATE TABLE x(' WHERE name = 'harel_trace'",
    "UPDATE sqlite_schema SET sql = replace(sql, 'TEXT', 'T€XT') WHERE name = 'harel_trace'",
    "UPDATE sqlite_schema SET rootpage = 9999 WHERE name = 'harel_outbox'",
    "UPDATE sqlite_schema SET name = 'harel_nobody' WHERE name = 'harel_trace'",
    "UPDATE sqlite_schema SET sql = NULL WHERE name = 'harel_timers_by_fire_at'",
    "DELETE FROM sqlite_schema WHERE name = 'harel_spawns'",
]
TEXTS = [b"", b"\n", b"# nothing\n", b"state.db\n\xff\xfe\n", b"missing.db\n", b"x\0y", b"\r\r"]


def run_unsynced(path: Path, *statements: str) -> None:
    """Run statements on a file, and wait for no disk."""
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("PRAGMA synchronous = OFF")
        for each in statements:
            connection.execute(each)


def _truncated(path: Path, draw: Any) -> None:
    os.truncate(path, draw(st.integers(0, path.stat().st_size)))


def _flipped(path: Path, draw: Any) -> None:
    content = bytearray(path.read_bytes() or b"\0")
    ends = st.sampled_from([min(length, len(content)) for length in (100, 4096, 10**9)])
    for _ in range(draw(st.integers(1, 12))):
        content[draw(st.integers(0, draw(ends) - 1))] ^= 1 << draw(st.integers(0, 7))
    path.write_bytes(content)


def _random(path: Path, draw: Any) -> None:
    head = draw(st.sampled_from([b"", b"SQLite format 3\0"]))
    path.write_bytes(head + draw(st.binary(max_size=600)) * draw(st.integers(1, 20)))


def _beside(path: Path, draw: Any) -> None:
    """Leave garbage, or a part of the file itself, as its log or journal."""
    suffix = draw(st.sampled_from(["-wal", "-journal", "-shm", "-sync", "-info"]))
    content = draw(st.one_of(st.binary(max_size=200), st.just(path.read_bytes()[:5000])))
    # The magic numbers of a log and of a journal.
    magic = draw(st.sampled_from([b"", b"7\x7f\x06\x82\0-\xe2\x18", b"\xd9\xd5\x05\xf9 \xa1c\xd7"]))
    path.with_name(path.name + suffix).write_bytes(magic + content)


def _edited(path: Path, draw: Any) -> None:
    for statement in draw(st.lists(st.sampled_from(DAMAGE), min_size=1, max_size=3)):
        try:
            run_unsynced(path, statement)
        except (sqlite3.Error, OverflowError):
            continue


def _rewritten(path: Path, draw: Any) -> None:
    run_unsynced(path, "PRAGMA writable_schema = ON", draw(st.sampled_from(SCHEMAS)))


DAMAGES: list[Callable[[Path, Any], None]] = [
    *(_truncated, _flipped, _random, _beside, _edited, _edited, _rewritten)
]


@st.composite
def files(draw: Any, originals: Path, folder: Path, *, pipes: bool = True) -> str:
    """Make a file in `folder`, mostly a damaged copy of one of `originals`; return its name."""
    name = f"{len(list(folder.iterdir()))}.db"
    path = folder / name
    odd = ["text", "directory", "loop", "device", *["pipe"] * pipes]
    kind = draw(st.sampled_from(["database"] * 20 + odd))
    match kind:
        case "database":
            shutil.copy(draw(st.sampled_from(sorted(originals.iterdir()))), path)
            for damage in draw(st.lists(st.sampled_from(DAMAGES), max_size=2)):
                try:
                    damage(path, draw)
                except (sqlite3.Error, OSError, ValueError):
                    continue
        case "text":
            path.write_bytes(draw(st.sampled_from(TEXTS)))
        case "directory":
            path.mkdir()
        case "loop":
            path.symlink_to(path)
        case "pipe":
            os.mkfifo(path)
        case "device":
            path.symlink_to(draw(st.sampled_from(["/dev/full", "/dev/null"])))
    return name


def texts() -> st.SearchStrategy[str]:
    """Texts that an argument vector can hold."""
    characters = st.characters(exclude_characters="\0", exclude_categories=["Cs"])
    return st.one_of(st.sampled_from(GARBAGE), st.text(characters, max_size=12))


@st.composite
def targets(draw: Any, originals: Path, folder: Path, servers: list[str]) -> str:
    """Name a database: a file, mostly, or an address, or nothing of the kind."""
    kind = draw(st.sampled_from(["file"] * 12 + ["missing", "address", "server", "text"]))
    match kind:
        case "file":
            return str(draw(files(originals, folder)))
        case "missing":
            return str(draw(st.sampled_from(["missing.db", "no/such/x.db", ":memory:"])))
        case "address":
            return str(draw(st.sampled_from(ADDRESSES)))
        case "server":
            return str(draw(st.sampled_from(servers)))
    return str(draw(texts()))


@st.composite
def values(draw: Any, option: click.Parameter, originals: Path, folder: Path) -> str:
    """Give an option a value: one that it knows, or one that it does not."""
    if "token" in option.opts[0]:
        return SECRET
    known = ["0", "1", "2.5"]
    if isinstance(option.type, click.Choice):
        known = list(option.type.choices)
    elif isinstance(option.type, click.Path):
        # A pipe waits for its other end, here as with any program.
        own = draw(files(originals, folder, pipes=False))
        known = [own, own, own, "out.json", "out.md", "out.html", "no/such/out.json"]
    elif "revision" in option.opts[0]:
        known = ["head", "base", "0001", "0003", "+1", "-1"]
    elif "prefix" in option.opts[0]:
        known = ["harel", "other"]
    return str(draw(st.one_of(st.sampled_from(known), texts())))


@st.composite
def command_lines(
    draw: Any, verb: str, originals: Path, folder: Path, servers: list[str]
) -> list[str]:
    """Give a verb arguments and options; the files that they name are made in `folder`."""
    command = cli.cli.get_command(click.Context(cli.cli), verb)
    if command is None:
        raise LookupError(verb)
    line = [verb]
    if verb == "dev-server":
        # It would run until it is interrupted: one of its options must be wrong.
        folders = [f"--dir={draw(files(originals, folder))}"] if draw(st.booleans()) else []
        return [verb, *folders, f"--port={draw(st.sampled_from(['', '-1', 'x', '65536']))}"]
    for each in command.params:
        if isinstance(each, click.Argument):
            count = 1 if each.nargs == 1 else draw(st.integers(0, 2))
            line += [draw(targets(originals, folder, servers)) for _ in range(count)]
        elif draw(st.integers(0, 7)) < (7 if each.required else 1):
            name = max(each.opts, key=len)
            line.append(name if each.is_flag else f"{name}={draw(values(each, originals, folder))}")
    extra = draw(st.integers(0, 30)) == 0
    return [*line, draw(texts())] if extra else line
