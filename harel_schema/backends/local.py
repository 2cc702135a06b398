"""The connection of a store to a local file, a replica, or a database in memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from harel_schema.dbapi import Connection
    from harel_schema.opening import Options

__all__ = ["connect"]


def connect(options: Options) -> Connection:
    """Open a local file, a replica or memory, in autocommit, for one thread at a time."""
    from harel_schema import dbapi  # noqa: PLC0415 - a remote store needs no driver

    primary = options.primary
    connection = dbapi.connect(
        options.target,
        driver=None if primary else options.driver,
        sync_url=primary.url if primary else None,
        sync_interval=options.sync_interval,
        request_timeout=options.request_timeout,
        auth_token=primary.auth_token if primary else None,
        isolation_level=None,
        timeout=options.timeout,
        check_same_thread=False,
    )
    try:
        for pragma in options.pragmas:
            connection.execute(pragma).fetchall()
    except BaseException:
        connection.close()
        raise
    return connection
