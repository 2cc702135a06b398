"""A server that asks for tokens: a store gets in with a good one, and shows none."""

from __future__ import annotations

import logging
import threading
import traceback
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest

from harel_schema import LibsqlStore
from harel_schema.errors import AuthError
from harel_schema.models import Execution
from harel_schema.testing import JwtKey, sqld_server
from tests.store.support import Blocking, Opener, full_commit

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from harel_schema.testing import Server


@pytest.fixture
def key() -> JwtKey:
    """Return the key that signs the tokens of a test."""
    return JwtKey()


@pytest.fixture
def guarded(key: JwtKey, tmp_path: Path) -> Iterator[Server]:
    """Yield a server that asks for tokens signed with `key`."""
    with sqld_server(tmp_path / "guarded", auth_key=key.public) as server:
        yield server


@pytest.fixture(params=["remote", "replica"])
def arguments(request: pytest.FixtureRequest, guarded: Server, tmp_path: Path) -> dict[str, Any]:
    """Return what opens a store on that server, itself or by a replica."""
    if request.param == "remote":
        return {"database": guarded.url}
    return {"database": tmp_path / "r.db", "sync_url": guarded.url}


@pytest.fixture
def opener(arguments, flavour) -> Iterator[Opener]:
    """Yield an opener of stores on that server."""
    with ExitStack() as stack:
        yield Opener(flavour, stack=stack, **arguments)


def test_a_good_token_gets_in_and_is_never_shown(opener, key, caplog, capfd) -> None:
    """Everything works; the token is in no repr, log, output or name of a thread."""
    caplog.set_level(logging.DEBUG)
    token = key.token()
    store = opener(auth_token=token)
    exe = Execution(id="e", definition_id="d")
    store.commit(exe, **full_commit(exe))
    assert store.load("e") == exe
    inner = store.store if isinstance(store, Blocking) else store
    shown = [repr(inner), repr(inner._backend.client), repr(inner._target), caplog.text]
    shown += [thread.name for thread in threading.enumerate()]
    shown += capfd.readouterr()
    assert not any(token in text for text in shown)


@pytest.mark.parametrize("case", ["none", "foreign", "expired", "nonsense"])
def test_a_bad_token_is_one_clear_error(opener, key, case, tmp_path) -> None:
    """Opening raises AuthError in one line, with the way out, without the token, and no file."""
    token = {
        "none": "",
        "foreign": JwtKey().token(),
        # sqld lets a token in for a minute after its end.
        "expired": key.token(expires_in=-120),
        "nonsense": "nonsense",
    }[case]
    with pytest.raises(AuthError, match="pass a valid token") as caught:
        opener(auth_token=token)
    assert "\n" not in str(caught.value)
    shown = "".join(traceback.format_exception(caught.value))
    assert not token or token not in shown
    assert not (tmp_path / "r.db").exists()


def test_a_callable_is_asked_again_after_a_refusal(opener, key, guarded) -> None:
    """A token that expires is replaced by the next one, in the middle of the work."""
    tokens = [key.token(expires_in=-120)]

    def source() -> str:
        asked.append(tokens[0])
        return tokens[0]

    asked: list[str] = []
    with pytest.raises(AuthError):
        opener(auth_token=source)
    tokens[0] = good = key.token()
    store = opener(auth_token=source)
    exe = Execution(id="e", definition_id="d")
    store.save(exe)
    inner = store.store if isinstance(store, Blocking) else store
    inner._backend.client._session.token = key.token(expires_in=-120)
    before = len(asked)
    store.save(exe)
    assert store.load("e").version == exe.version == 2
    assert asked[before:][0] == good


def test_a_token_that_may_only_read(guarded, key) -> None:
    """It reads; a commit is AuthError, and the version stays."""
    with LibsqlStore(guarded.url, auth_token=key.token()) as store:
        store.save(Execution(id="e", definition_id="d"))
    with LibsqlStore(guarded.url, auth_token=key.token(read_only=True)) as store:
        exe = store.load("e")
        with pytest.raises(AuthError):
            store.save(exe)
        assert exe.version == 1
