"""Which database an engine's URL names, and what it must not show."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import pytest
import sqlalchemy
from sqlalchemy import Engine, make_url

from harel_schema.engine import Dialect, create_engine, url_of
from harel_schema.errors import TargetError
from harel_schema.target import Target

if TYPE_CHECKING:
    from pathlib import Path

TOKEN = "eyJhbGciOiJFZERTQSJ9.secret.signature"


def _target_of(engine: Engine) -> Target:
    (target,), _ = engine.dialect.create_connect_args(engine.url)
    return target


@pytest.mark.parametrize(
    ("text", "url"),
    [
        ("https://host", "sqlite+harel://host/?secure=true"),
        ("libsql://host", "sqlite+harel://host/?secure=true"),
        ("http://127.0.0.1:8080", "sqlite+harel://127.0.0.1:8080/"),
        ("http://[::1]:8080/v/ns", "sqlite+harel://[::1]:8080/v/ns"),
        ("sqlite+libsql://host:8080/?secure=true", "sqlite+harel://host:8080/?secure=true"),
        ("sqlite+harel://host:8080/", "sqlite+harel://host:8080/"),
        (":memory:", "sqlite+harel://"),
        ("sqlite://", "sqlite+harel://"),
        ("/var/lib/state.db", "sqlite+harel:////var/lib/state.db"),
        ("sqlite:////var/lib/state.db", "sqlite+harel:////var/lib/state.db"),
    ],
)
def test_every_form_of_a_target_makes_an_engine(text: str, url: str) -> None:
    """An engine's URL names the target it was made of, in whatever form that was given."""
    engine = create_engine(text)
    assert str(engine.url) == url
    assert _target_of(engine) == Target.parse(text)


@pytest.mark.parametrize("name", ["a b.db", "what?.db", "100%.db", "c#.db", "ü.db", ":memory:.db"])
def test_a_file_of_any_name_is_reached(name: str, tmp_path: Path) -> None:
    """A file's name may hold what has a meaning in a URL."""
    engine = create_engine(tmp_path / name)
    with engine.begin() as connection:
        connection.exec_driver_sql("CREATE TABLE t (a)")
    engine.dispose()
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_a_relative_file_is_the_one_in_the_folder_of_now(tmp_path: Path) -> None:
    """`sqlite+harel:///state.db` names a file in the current folder."""
    engine = sqlalchemy.create_engine("sqlite+harel:///state.db")
    assert _target_of(engine).path == tmp_path / "state.db"


@pytest.mark.parametrize(
    "text",
    [
        f"libsql://host?authToken={TOKEN}",
        f"sqlite+libsql://host/?authToken={TOKEN}&secure=true",
        f"http://127.0.0.1:8080?authToken={TOKEN}",
    ],
)
def test_the_token_of_a_target_is_used_and_not_shown(text: str) -> None:
    """The token goes to the connection, and is in no form of the engine or of its URL."""
    for engine in (create_engine(text), create_engine("https://host", auth_token=TOKEN)):
        shown = f"{engine!r} {engine.url!r} {engine.url.render_as_string(hide_password=False)}"
        assert "secret" not in shown + repr(engine.pool) + engine.pool.status()
    (target,), _ = Dialect(dbapi=Dialect.import_dbapi()).create_connect_args(
        url_of(Target.parse(text)).update_query_dict({"authToken": TOKEN})
    )
    assert target.auth_token == TOKEN


def test_sqlalchemys_own_create_engine_does_not_keep_the_token_either() -> None:
    """A token in a URL that an application gives to SQLAlchemy leaves the engine's URL."""
    engine = sqlalchemy.create_engine(f"sqlite+harel://127.0.0.1:9/?authToken={TOKEN}")
    assert str(engine.url) == "sqlite+harel://127.0.0.1:9/"


def test_a_server_that_refuses_a_connection_does_not_bring_the_token_out(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Neither an error nor SQLAlchemy's debug log shows the token."""
    caplog.set_level(logging.DEBUG)
    engine = create_engine("http://127.0.0.1:9", auth_token=TOKEN, echo="debug", echo_pool="debug")
    with pytest.raises(sqlalchemy.exc.OperationalError) as caught:
        engine.connect().exec_driver_sql("SELECT 1")
    assert "secret" not in f"{caught.value} {caught.value.__cause__!r} {caplog.text}"


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("sqlite+harel:///state.db?mode=ro", "takes no option mode"),
        ("sqlite+harel://host/?tls=0", "takes no option tls"),
        ("sqlite+harel:///state.db?timeout=soon", "timeout=soon is no float"),
        ("sqlite+harel:///state.db?read_only=perhaps", "read_only=perhaps is no"),
        (f"sqlite+harel://user:{TOKEN}@host/", "does not belong before the @"),
        ("sqlite+harel://host/?secure=perhaps", "neither true nor false"),
    ],
)
def test_a_url_that_names_no_database_is_refused(url: str, message: str) -> None:
    """What a URL cannot mean is one clear line, before anything is opened, without a password."""
    with pytest.raises(TargetError) as caught:
        sqlalchemy.create_engine(url)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
    assert "secret" not in str(caught.value)


def test_options_of_a_url_reach_the_connection(tmp_path: Path) -> None:
    """`driver`, `timeout` and `read_only` in a URL are those of the connection."""
    (target,), options = Dialect(dbapi=Dialect.import_dbapi()).create_connect_args(
        make_url("sqlite+harel:///state.db?driver=libsql&timeout=0.5&read_only=true")
    )
    assert target == Target.parse(tmp_path / "state.db")
    assert options == {
        "driver": "libsql",
        "timeout": 0.5,
        "read_only": True,
        "check_same_thread": False,
        "isolation_level": "IMMEDIATE",
    }
