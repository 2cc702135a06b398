"""Tokens: sent as given, asked for again once, and never shown."""

from __future__ import annotations

import traceback
from typing import TYPE_CHECKING, Any

import pytest

from harel_schema import errors as e
from harel_schema.hrana import Statement
from harel_schema.testing import JwtKey, sqld_server
from tests.support.proxy import Answer, Drop

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from harel_schema.devserver import Server

ONE = Statement("SELECT 1")


@pytest.fixture
def key() -> JwtKey:
    """Return the key that signs the tokens of a test."""
    return JwtKey()


@pytest.fixture
def guarded(key: JwtKey, tmp_path: Path) -> Iterator[Server]:
    """Yield a real sqld that asks for tokens signed with `key`."""
    with sqld_server(tmp_path / "sqld", auth_key=key.public) as server:
        yield server


async def test_valid_token_is_let_in(connect: Any, guarded: Server, key: JwtKey) -> None:
    """A signed token reads and writes; the line end that files leave on it does no harm."""
    client = await connect(guarded.url, auth_token=key.token() + "\n")
    await client.execute(Statement("CREATE TABLE t(a)"))
    assert [row async for row in client.rows(ONE)] == [(1,)]


@pytest.mark.parametrize(
    ("case", "words"),
    [
        ("none", "asks for a token (HTTP 401)"),
        ("garbage", "The JWT is invalid"),
        ("foreign", "The JWT is invalid"),
        ("expired", "The JWT has expired"),
    ],
)
async def test_bad_token_is_refused_with_a_way_out(
    connect: Any, guarded: Server, key: JwtKey, case: str, words: str
) -> None:
    """Without a valid token every call is AuthError, names the option, and hides the token."""
    tokens = {
        "none": None,
        "garbage": "abc.def.ghi",
        "foreign": JwtKey().token(),
        "expired": key.token(expires_in=-3600),
    }
    token = tokens[case]
    client = await connect(guarded.url, auth_token=token)
    for call in (client.execute(ONE), anext(client.rows(ONE)), client.stream().execute(ONE)):
        with pytest.raises(e.AuthError, match="--auth-token or TURSO_AUTH_TOKEN") as failure:
            await call
        assert words in str(failure.value)
        shown = "".join(traceback.format_exception(failure.value)) + repr(client)
        assert token is None or token not in shown


async def test_read_only_token_may_not_write(connect: Any, guarded: Server, key: JwtKey) -> None:
    """A read-only token reads; a write is AuthError that says so."""
    client = await connect(guarded.url, auth_token=key.token(read_only=True))
    assert (await client.execute(ONE)).rows == [(1,)]
    with pytest.raises(e.AuthError, match="does not allow this"):
        await client.execute(Statement("CREATE TABLE t(a)"))


async def test_token_is_asked_for_once_and_again_after_a_refusal(
    connect: Any, guarded: Server, key: JwtKey
) -> None:
    """A callable gives a new token when the server refuses the old one, and only then."""
    tokens = [key.token(expires_in=-3600), key.token()]
    client = await connect(guarded.url, auth_token=lambda: tokens.pop(0))
    assert (await client.execute(ONE)).rows == [(1,)]
    assert (await client.execute(ONE)).rows == [(1,)]
    assert (tokens, client.requests_sent) == ([], 3)


async def test_a_callable_that_gives_no_token_is_told_so(connect: Any, proxy: Any) -> None:
    """An unset variable behind it is an error that says what it gave, and nothing is sent."""
    client = await connect(proxy.url, auth_token=lambda: None)
    with pytest.raises(e.AuthError, match="the token is of type NoneType"):
        await client.execute(ONE)
    assert client.requests_sent == 0


@pytest.mark.parametrize("body", [b'{"error":"no"}', b""])
async def test_nothing_is_sent_through_a_connection_after_a_refusal(
    connect: Any, proxy: Any, body: bytes
) -> None:
    """A server may close it for what it did not read: the next request takes a new one."""
    client = await connect(proxy.url, auth_token=iter(["old", "new"]).__next__)
    proxy.script(Answer(401, body))
    assert (await client.execute(ONE)).rows == [(1,)]
    assert (await client.execute(ONE)).rows == [(1,)]
    assert (client.requests_sent, proxy.connections) == (3, 2)


async def test_second_refusal_is_final(connect: Any, guarded: Server, key: JwtKey) -> None:
    """A callable that gives another bad token is not asked for ever."""
    tokens = [key.token(expires_in=-3600), key.token(expires_in=-3000), key.token()]
    client = await connect(guarded.url, auth_token=lambda: tokens.pop(0))
    with pytest.raises(e.AuthError):
        await client.execute(ONE)
    assert (len(tokens), client.requests_sent) == (1, 2)


async def test_refused_token_that_stays_the_same_is_not_sent_again(
    connect: Any, guarded: Server
) -> None:
    """A callable without a new token costs no second request."""
    client = await connect(guarded.url, auth_token=lambda: "abc.def.ghi")
    with pytest.raises(e.AuthError):
        await client.execute(ONE)
    assert client.requests_sent == 1


async def test_token_is_never_shown(connect: Any, proxy: Any) -> None:
    """The token is in no error, traceback or repr, even when the server sends it back."""
    secret = "eyJhbGciOi.secret.signature"
    client = await connect(proxy.url, auth_token=secret)
    faults = [
        Answer(401, b"not allowed: Bearer " + secret.encode()),
        Answer(500, b'{"error": "bad ' + secret.encode() + b'"}'),
        Answer(400, b'{"message": "' + secret.encode() + b'", "code": "SQLITE_ERROR"}'),
        Drop(),
    ]
    proxy.script(*faults)
    for _ in faults:
        with pytest.raises(e.Error) as failure:
            await client.execute(ONE)
        assert secret not in "".join(traceback.format_exception(failure.value)) + repr(
            failure.value
        )
    assert proxy.requests[-1].headers["authorization"] == f"Bearer {secret}"
    assert secret not in repr(client) + repr(client.stream())


@pytest.mark.parametrize("token", ["", " ", "two words", "bad\nheader", "ünicode", "nul\0"])
async def test_token_that_cannot_be_one_is_refused_and_not_quoted(connect: Any, token: str) -> None:
    """A token that fits into no header is AuthError at once."""
    with pytest.raises(e.AuthError) as failure:
        await connect("http://127.0.0.1:1", auth_token=token)
    assert not token.strip() or token not in str(failure.value)


async def test_proxies_of_the_environment_do_not_see_the_token(
    connect: Any, sqld: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """HTTP_PROXY and ALL_PROXY are ignored."""
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    client = await connect(sqld.url)
    assert (await client.execute(ONE)).rows == [(1,)]
