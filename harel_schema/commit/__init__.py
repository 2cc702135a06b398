"""Commits as data: units, the transaction that runs them, and what becomes of them.

`unit` says what a unit is and `writes` makes those of the store. `local` runs them on a
connection, `batch` and `flow` on a server; `group` lets concurrent callers share a transaction.
"""
