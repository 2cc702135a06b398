"""Run SQL behind everybody's back, for the notes in the pages: ``sql.py DATABASE STATEMENT…``."""

from __future__ import annotations

import sys
from contextlib import closing

from harel_schema import dbapi

if __name__ == "__main__":
    database, *statements = sys.argv[1:]
    with closing(dbapi.connect(database)) as connection, connection:
        for statement in statements:
            connection.execute(statement)
