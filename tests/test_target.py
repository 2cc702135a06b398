"""A database's name is read in every promised form, and a token in it is never shown."""

from __future__ import annotations

import dataclasses
import os
import pickle
from pathlib import Path

import pytest
from hypothesis import given

from harel_schema.errors import NotADatabaseError, TargetError
from harel_schema.target import Target
from tests.support.text import any_text

SECRET = "eyJhbGciOi.S3cr3t-tok_en"


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("state.db", "state.db"),
        ("/var/lib/state.db", "/var/lib/state.db"),
        ("sqlite:///state.db", "state.db"),
        ("sqlite:////var/lib/state.db", "/var/lib/state.db"),
        ("sqlite+pysqlite:///state.db", "state.db"),
        ("sqlite+libsql:///state.db", "state.db"),
        ("sqlite+harel:///a b/ü?.db".replace("?", ""), "a b/ü.db"),
        ("dir/what?.db", "dir/what?.db"),
        ("odd:name.db", "odd:name.db"),
    ],
)
def test_file_forms(text: str, path: str) -> None:
    """A path names itself, and a SQLAlchemy URL the file after its third slash."""
    target = Target.parse(text)
    assert (target.kind, target.path) == ("file", Path.cwd() / path)


@pytest.mark.parametrize(
    "text", [":memory:", "sqlite://", "sqlite:///:memory:", "sqlite+libsql://", "sqlite+harel:///"]
)
def test_memory_forms(text: str) -> None:
    """Memory is named as SQLite and SQLAlchemy name it."""
    assert Target.parse(text) == Target("memory")
    assert str(Target.parse(text)) == ":memory:"


@pytest.mark.parametrize(
    ("text", "url"),
    [
        ("libsql://db-org.turso.io", "https://db-org.turso.io"),
        ("libsql://host:8080?tls=0", "http://host:8080"),
        ("libsql://127.0.0.1:8080", "http://127.0.0.1:8080"),
        ("libsql://127.0.0.1:8080?tls=1", "https://127.0.0.1:8080"),
        ("libsql://ns.localhost:8080", "http://ns.localhost:8080"),
        ("https://host/", "https://host"),
        ("HTTP://127.0.0.1:8080", "http://127.0.0.1:8080"),
        ("http://[::1]:8080/", "http://[::1]:8080"),
        ("https://host/path/db/", "https://host/path/db"),
        ("sqlite+libsql://host:8080/?secure=true", "https://host:8080"),
        ("sqlite+libsql://host:8080", "http://host:8080"),
    ],
)
def test_server_forms(text: str, url: str) -> None:
    """A server's name becomes the URL that requests go to."""
    assert Target.parse(text) == Target("remote", url=url)
    assert str(Target.parse(text)) == url


@pytest.mark.parametrize("scheme", ["libsql", "https", "http", "sqlite+libsql"])
def test_token_in_the_url_is_taken_and_hidden(scheme: str) -> None:
    """A token in the URL is used, and shown by neither str, repr nor a format."""
    target = Target.parse(f"{scheme}://host/?authToken={SECRET}")
    assert target.auth_token == SECRET
    assert SECRET not in f"{target} {target!r} {[target]} {target.url}"
    assert pickle.loads(pickle.dumps(target)) == target


def test_token_apart_is_stripped() -> None:
    """A token read from a file keeps working with its line break."""
    assert Target.parse("https://host", auth_token=f"{SECRET}\n").auth_token == SECRET


def test_token_may_be_a_callable() -> None:
    """A callable token is kept and called later."""
    give = lambda: SECRET  # noqa: E731
    assert Target.parse("https://host", auth_token=give).auth_token is give


@pytest.mark.parametrize(
    "text",
    [
        "",
        "  ",
        "a\x00b",
        "a\nb",
        "ftp://host",
        "wss://host",
        "postgresql://u:p@host/db",
        "file:state.db",
        "libsql:state.db",
        "sqlite:state.db",
        "sqlite://state.db",
        "sqlite://host/state.db",
        "sqlite:///state.db?mode=ro",
        "libsql://",
        "https:///path",
        "https://host:port",
        "https://host:99999",
        "https://[::1",
        "https://host#part",
        "https://host?x=1",
        "https://host?tls=0",
        "libsql://host?tls=maybe",
        f"https://host?authToken={SECRET}&authToken={SECRET}",
        f"https://user:{SECRET}@host",
        f"libsql://{SECRET}@host",
        f"state.db?authToken={SECRET}",
        f"sqlite:///state.db?authToken={SECRET}",
        f"https://ho st/{SECRET}@x",
        f"https://host?authToken={SECRET}%20x",
    ],
)
def test_bad_names_get_one_clear_line(text: str) -> None:
    """A bad name is refused in one line that says what to do and shows no secret."""
    with pytest.raises(TargetError) as caught:
        Target.parse(text)
    message = str(caught.value)
    assert message
    assert "\n" not in message
    assert SECRET not in message


@pytest.mark.parametrize("token", ["two words", "tök", "a\x00"])
def test_broken_token_is_refused_unseen(token: str) -> None:
    """A token that HTTP cannot carry is refused without being shown."""
    with pytest.raises(TargetError) as caught:
        Target.parse("https://host", auth_token=token)
    assert token not in str(caught.value)


def test_a_file_takes_no_token() -> None:
    """A token for a file is a mistake, not ignored."""
    with pytest.raises(TargetError, match="takes no token"):
        Target.parse("state.db", auth_token=SECRET)


def test_two_different_tokens_are_refused() -> None:
    """A token in the URL and another one apart is a question, not a choice of ours."""
    with pytest.raises(TargetError, match="two different tokens"):
        Target.parse("https://host?authToken=a", auth_token="b")


@given(any_text())
def test_any_text_is_a_target_or_one_line(text: str) -> None:
    """Whatever is typed is a target or a `TargetError` of one line."""
    try:
        target = Target.parse(text)
    except TargetError as error:
        assert len(str(error).splitlines()) == 1  # noqa: PT017
        assert error.remedy  # noqa: PT017
    else:
        assert target.kind in ("file", "memory", "remote")
        assert len(str(target).splitlines()) == 1


@pytest.mark.parametrize("wrap", [str, Path])
@pytest.mark.parametrize("character", ["\n", "\r", "\0", "\x1b", "\x7f", "\x9b", "\u2028"])
def test_control_characters_are_refused(wrap: type, character: str) -> None:
    """A name that would break a message's line, or act on a terminal, is no name."""
    with pytest.raises(TargetError, match="a line break or a control character") as failure:
        Target.parse(wrap(f"x{character}[31m.db"))
    assert str(failure.value).isprintable()


def test_a_path_of_bytes_is_a_path() -> None:
    """A name that is no UTF-8 names the file that has it."""

    class Entry:
        def __fspath__(self) -> bytes:
            return b"bad\xff.db"

    target = Target.parse(Entry())
    assert target.path == Path.cwd() / "bad\udcff.db"
    assert str(target) == r"bad\udcff.db"


def test_a_relative_name_needs_a_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the working directory was removed, only a whole path can be meant."""
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    with pytest.raises(TargetError, match="give the whole path"):
        Target.parse("state.db")
    assert str(Target.parse(tmp_path / "state.db")) == str(tmp_path / "state.db")


@pytest.mark.parametrize(
    ("make", "line"),
    [
        (lambda p: None, "no such file"),
        (lambda p: p.mkdir(), "is a directory"),
        (lambda p: p.symlink_to("/dev/null"), "not a regular file"),
        (os.mkfifo, "not a regular file"),
        (lambda p: p.symlink_to(p), "symbolic links"),
    ],
    ids=["missing", "directory", "device", "fifo", "loop"],
)
def test_unreadable_files_are_refused(tmp_path: Path, make, line: str) -> None:
    """A name that is no readable file is refused before anything opens it."""
    make(tmp_path / "x.db")
    with pytest.raises(TargetError, match=line) as failure:
        Target.parse(tmp_path / "x.db").check_readable()
    assert failure.value.remedy


@pytest.mark.parametrize("check", ["check_readable", "check_writable"])
def test_other_files_are_refused_unchanged(tmp_path: Path, check: str) -> None:
    """A file that is not a database is refused, and left as it was."""
    file = tmp_path / "notes.txt"
    file.write_text("not a database, but a text of some length")
    with pytest.raises(NotADatabaseError, match=r"notes\.txt is not a SQLite database"):
        getattr(Target.parse(file), check)()
    assert file.read_text().startswith("not a database")
    assert list(tmp_path.iterdir()) == [file]


def test_missing_folder_is_refused(tmp_path: Path) -> None:
    """A file cannot be made in a folder that is not there."""
    with pytest.raises(TargetError, match="does not exist"):
        Target.parse(tmp_path / "no" / "x.db").check_writable()
    assert list(tmp_path.iterdir()) == []


def test_a_file_is_no_folder(tmp_path: Path) -> None:
    """A file where a folder should be is named as what it is, not as something to be made."""
    (tmp_path / "state.db").touch()
    with pytest.raises(TargetError, match=r"state\.db is no folder; check the path"):
        Target.parse(tmp_path / "state.db" / "x.db").check_writable()


def test_new_file_may_be_written_and_is_not_made(tmp_path: Path) -> None:
    """Checking a new name makes no file."""
    Target.parse(tmp_path / "new.db").check_writable()
    assert list(tmp_path.iterdir()) == []


def test_empty_file_is_an_empty_database(tmp_path: Path) -> None:
    """A file of no bytes is what SQLite itself takes for an empty database."""
    (tmp_path / "x.db").touch()
    Target.parse(tmp_path / "x.db").check_readable()
    Target.parse(tmp_path / "x.db").check_writable()


def test_a_target_is_frozen() -> None:
    """A target is a value."""
    with pytest.raises(dataclasses.FrozenInstanceError):
        Target("memory").kind = "file"
