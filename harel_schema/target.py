"""Naming a database: a file, memory, or a libSQL server.

Every place that takes a database takes the same text:

=====================================  =====================================================
``state.db``, ``/var/lib/state.db``    a local file
``:memory:``                           a private database in memory
``sqlite:///state.db``                 the same file, as SQLAlchemy writes it
``sqlite+libsql:///state.db``          the same file, as sqlalchemy-libsql writes it
``sqlite+libsql://host/?secure=true``  a server, as sqlalchemy-libsql writes it
``libsql://host``                      a server over TLS (``?tls=0``, or a loopback host: without)
``https://host``, ``http://host:8080``  a server
=====================================  =====================================================

A server may carry its token as ``?authToken=…``. A token is never part of `str()` or `repr()`.
"""

from __future__ import annotations

import ipaddress
import os
import re
import stat
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal, TypeAlias
from urllib.parse import SplitResult, parse_qsl, urlsplit

from harel_schema import header
from harel_schema.errors import TargetError

__all__ = [
    "AUTH_REMEDY",
    "PATIENCE",
    "TARGET_VARIABLE",
    "TOKEN_VARIABLES",
    "Kind",
    "Target",
    "Token",
    "flag",
    "with_environment_token",
]

Kind: TypeAlias = Literal["memory", "file", "remote"]
Token: TypeAlias = str | Callable[[], str]

TARGET_VARIABLE: Final = "HAREL_SCHEMA_TARGET"
"""The variable of the environment that names the database when nothing else does."""

TOKEN_VARIABLES: Final = ("TURSO_AUTH_TOKEN", "HAREL_LIBSQL_AUTH_TOKEN")
AUTH_REMEDY: Final = (
    "pass a valid token with --auth-token or TURSO_AUTH_TOKEN, in Python as auth_token; "
    "copy, move, verify and diff have --source-token and --dest-token"
)
"""What to do about a token that is missing or refused, wherever the caller is."""

PATIENCE: Final = 30.0
"""Seconds that a server may be silent, and the tools wait for a lock, unless told otherwise."""

_MEMORY = ":memory:"
_URL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")
_LOCAL_SCHEMES = ("sqlite", "sqlite+pysqlite")
_EITHER_SCHEMES = ("sqlite+libsql", "sqlite+harel")
_REMOTE_SCHEMES = ("libsql", "https", "http")
_TRUE = ("1", "true", "yes", "on")
_FALSE = ("0", "false", "no", "off")
_FORMS = "use a path, sqlite:///PATH, libsql://HOST, https://HOST or http://HOST:PORT"


@dataclass(frozen=True, slots=True)
class Target:
    """A database, named and not yet opened.

    `path` is absolute and set for a file; `url` is ``http[s]://host[:port][/path]`` and set for
    a server; `auth_token` is the token or a callable that gives it, hidden from `repr`.
    """

    kind: Kind
    path: Path | None = None
    url: str | None = None
    auth_token: Token | None = field(default=None, repr=False)

    @classmethod
    def parse(
        cls, text: str | os.PathLike[str] | Target, *, auth_token: Token | None = None
    ) -> Target:
        """Read a database's name. Touches no file and no network.

        `auth_token` is the token given apart from the text. Raises `TargetError` with one line
        that never shows a token.
        """
        if isinstance(text, Target):
            return _with_token(text, auth_token)
        if isinstance(text, os.PathLike):
            path = os.fsdecode(text)
            _check_characters(path)
            return _with_token(_file(path), auth_token)
        if not text.strip():
            raise TargetError("no database is named", remedy=_FORMS)
        _check_characters(text)
        if text == _MEMORY:
            return _with_token(cls("memory"), auth_token)
        match = _URL.match(text)
        target = _from_url(match[1].lower(), text) if match else _from_path(text)
        return _with_token(target, auth_token)

    def __str__(self) -> str:
        """The form that may be shown: a relative path where it is shorter, no token."""
        if self.path is not None:
            return _short(self.path)
        return self.url or _MEMORY

    def check_readable(self) -> None:
        """Refuse a file that cannot be read as a SQLite database, before anything opens it.

        Raises `TargetError` (missing, a directory, no permission) or `NotADatabaseError`
        (something else, encrypted, cut off). What this process has open is not read: closing it
        again would drop SQLite's locks.
        """
        if self.path is None:
            return
        _check_regular(self, self.path, must_exist=True)
        header.check(str(self), self.path)

    def check_writable(self) -> None:
        """Refuse a file that cannot be opened or created for writing, before anything does.

        Raises `TargetError` (missing folder, a directory, no permission) or `NotADatabaseError`.
        """
        if self.path is None:
            return
        parent = self.path.parent
        if not parent.is_dir():
            what, remedy = (
                ("is no folder", "check the path")
                if os.path.lexists(parent)
                else ("does not exist", "create it first")
            )
            raise TargetError(f"{self}: the folder {_short(parent)} {what}", remedy=remedy)
        _check_regular(self, self.path, must_exist=False)
        # SQLite writes its journal beside the file, so the folder must be writable too.
        missing = [p for p in (self.path, parent) if p.exists() and not os.access(p, os.W_OK)]
        if missing:
            raise TargetError(
                f"{self}: no permission to write {_short(missing[0])}",
                remedy="run it as the user that owns it, or allow it with chmod",
            )
        if self.path.exists():
            header.check(str(self), self.path)


def with_environment_token(target: Target, *variables: str) -> Target:
    """Give a server that has no token the first one that the environment variables hold.

    Anything else is returned as it is: a file takes no token, and the environment is no reason
    to refuse it.
    """
    if target.kind != "remote" or target.auth_token is not None:
        return target
    token = next((os.environ[name] for name in variables if os.environ.get(name)), None)
    return _with_token(target, token)


def _check_characters(name: str) -> None:
    # They would break the one line of a message, or act on the terminal that shows it.
    if re.search(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]", name):
        raise TargetError(
            "a database's name holds a line break or a control character", remedy=_FORMS
        )


def _with_token(target: Target, token: Token | None) -> Target:
    if not token:
        return target
    if target.kind != "remote":
        raise TargetError(f"{target} is no server and takes no token", remedy="leave the token out")
    token = _clean_token(token)
    if target.auth_token not in (None, token):
        raise TargetError(f"{target}: two different tokens are given", remedy="keep one of them")
    return Target("remote", url=target.url, auth_token=token)


def _from_path(text: str) -> Target:
    head, _, query = text.partition("?")
    if re.search(r"(?i)\bauth_?token=", query):
        raise TargetError(f"{head} is a file and takes no authToken", remedy=_FORMS)
    scheme = text.partition(":")[0].lower()
    known = (*_LOCAL_SCHEMES, *_EITHER_SCHEMES, *_REMOTE_SCHEMES)
    if ":" in text and (scheme == "file" or scheme in known):
        raise TargetError(f"{scheme}: is not followed by //", remedy=_FORMS)
    return _file(text)


def _file(path: str) -> Target:
    try:
        return Target("file", path=Path(os.path.abspath(path)))  # noqa: PTH100 - keeps symlinks
    except FileNotFoundError as error:
        raise TargetError(
            f"{path} is relative, and the working directory is gone", remedy="give the whole path"
        ) from error


def _from_url(scheme: str, text: str) -> Target:
    if scheme in _LOCAL_SCHEMES or scheme in _EITHER_SCHEMES:
        rest = text.partition("://")[2]
        if not rest or rest.startswith(("/", "?")):
            return _local_url(scheme, rest)
        if scheme in _LOCAL_SCHEMES:
            raise TargetError(
                f"{scheme}:// is followed by a host, and a file has none",
                remedy=f"write three slashes: {scheme}:///PATH",
            )
    elif scheme not in _REMOTE_SCHEMES:
        raise TargetError(f"unknown scheme {scheme}://", remedy=_FORMS)
    return _remote(scheme, text)


def _local_url(scheme: str, rest: str) -> Target:
    path, _, query = rest.partition("?")
    if query:
        name = query.partition("=")[0]
        raise TargetError(f"{scheme}://{path} takes no option {name}", remedy=_FORMS)
    # As SQLAlchemy has it: the first slash ends the host, what follows is the path.
    path = path[1:]
    return Target("memory") if path in ("", _MEMORY) else _file(path)


def _remote(scheme: str, text: str) -> Target:
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError as error:
        raise TargetError(f"{scheme}://… is no valid URL", remedy=_FORMS) from error
    if "@" in parts.netloc:
        raise TargetError(
            f"{scheme}://…@{_host(parts)}: a user or a password does not belong before the @",
            remedy=AUTH_REMEDY,
        )
    host = _host(parts)
    if not parts.hostname or not re.fullmatch(r"[A-Za-z0-9._:%-]+", parts.hostname):
        raise TargetError(f"{scheme}:// names no host", remedy=_FORMS)
    if parts.fragment:
        raise TargetError(f"{scheme}://{host}: a server has no #fragment", remedy=_FORMS)
    options = _options(scheme, host, parts.query)
    secure = _secure(scheme, parts.hostname, options)
    netloc = host if port is None else f"{host}:{port}"
    url = f"{'https' if secure else 'http'}://{netloc}{parts.path.rstrip('/')}"
    token = options.get("authToken")
    return Target("remote", url=url, auth_token=_clean_token(token) if token else None)


def _host(parts: SplitResult) -> str:
    host = parts.hostname or ""
    return f"[{host}]" if ":" in host else host


def _options(scheme: str, host: str, query: str) -> dict[str, str]:
    switch = {"libsql": ("tls",), "sqlite+libsql": ("secure",), "sqlite+harel": ("secure",)}
    allowed = ("authToken", *switch.get(scheme, ()))
    options: dict[str, str] = {}
    for name, value in parse_qsl(query, keep_blank_values=True):
        if name not in allowed:
            raise TargetError(
                f"{scheme}://{host} takes no option {name}", remedy=f"known: {', '.join(allowed)}"
            )
        if name in options:
            raise TargetError(
                f"{scheme}://{host}: the option {name} is given twice", remedy="keep one of them"
            )
        options[name] = value
    return options


def _secure(scheme: str, hostname: str, options: dict[str, str]) -> bool:
    if scheme in ("http", "https"):
        return scheme == "https"
    name = "tls" if scheme == "libsql" else "secure"
    value = options.get(name)
    if value is None:
        # `libsql://` means TLS; a loopback server has no certificate to show. sqlalchemy-libsql's
        # form is without TLS unless it says `secure=true`.
        return scheme == "libsql" and not _is_loopback(hostname)
    return flag(name, value)


def flag(name: str, value: str) -> bool:
    """Return what the option `name` says. Raises `TargetError` where it says neither."""
    if value.lower() in _TRUE:
        return True
    if value.lower() in _FALSE:
        return False
    raise TargetError(f"{name}={value} is neither true nor false", remedy=f"use {name}=1 or 0")


def _is_loopback(hostname: str) -> bool:
    if hostname == "localhost" or hostname.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(hostname).is_loopback
    except ValueError:
        return False


def _clean_token(token: Token) -> Token:
    if not isinstance(token, str):
        return token
    # A token pasted into a variable or read from a file often brings its line break along.
    token = token.strip()
    if not re.fullmatch(r"[\x21-\x7e]+", token):
        raise TargetError(
            "the token holds a character that no token has", remedy="paste it again, whole"
        )
    return token


def _short(path: Path) -> str:
    try:
        name = str(path.relative_to(Path.cwd()))
    except (ValueError, OSError):
        name = str(path)
    # A name that is no UTF-8 can be opened; as JSON or on a terminal it must be escaped.
    return name.encode("utf-8", "backslashreplace").decode()


def _check_regular(target: Target, path: Path, *, must_exist: bool) -> None:
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        if must_exist:
            raise TargetError(f"{target}: no such file", remedy="check the path") from None
        return
    except OSError as error:
        raise TargetError(f"{target}: {error.strerror}", remedy="check the path") from error
    if stat.S_ISDIR(mode):
        raise TargetError(f"{target} is a directory", remedy="name a file in it")
    if not stat.S_ISREG(mode):
        raise TargetError(f"{target} is not a regular file", remedy="check the path")
