"""Schema, store and data tools for harel executions on SQLite, libSQL and Turso."""

from harel_schema._version import __version__

__all__ = ["__version__"]
