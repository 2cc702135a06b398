"""A real libSQL server for your own tests.

`sqld_server` is a context manager, free of any test framework. With pytest, put
``pytest_plugins = ["harel_schema.testing.fixtures"]`` into the top ``conftest.py`` and ask for the
fixtures `sqld` or `sqld_url`. Both need a sqld binary: ``pip install 'harel-schema[server]'``.
"""

from harel_schema.devserver import Server
from harel_schema.devserver import run as sqld_server
from harel_schema.testing.jwt import JwtKey

__all__ = ["JwtKey", "Server", "sqld_server"]
