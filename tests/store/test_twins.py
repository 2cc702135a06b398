"""The sync and the async store are one store."""

from __future__ import annotations

import inspect

import harel_schema
from harel_schema import AsyncLibsqlStore, LibsqlStore, StoreConflict, errors, store


def methods(cls: type) -> dict[str, inspect.Signature]:
    """Return the signature of every public method."""
    return {
        name: inspect.signature(value)
        for name, value in inspect.getmembers(cls, inspect.isfunction)
        if not name.startswith("_")
    }


def test_the_twins_have_the_same_methods() -> None:
    """Same names, same parameters, same defaults; only `iter_executions` differs in its return."""
    sync, twin = methods(LibsqlStore), methods(AsyncLibsqlStore)
    assert sync.keys() == twin.keys()
    for name, signature in sync.items():
        assert signature.parameters == twin[name].parameters, name
        if name != "iter_executions":
            assert signature.return_annotation == twin[name].return_annotation, name


def test_create_takes_what_the_constructor_takes() -> None:
    """`AsyncLibsqlStore.create` has the parameters of `LibsqlStore`."""
    init = list(inspect.signature(LibsqlStore).parameters.values())
    create = list(inspect.signature(AsyncLibsqlStore.create).parameters.values())
    assert init == create


def test_every_method_of_the_async_store_is_awaitable() -> None:
    """A store is async to harel when `load` is a coroutine function."""
    for name in methods(AsyncLibsqlStore):
        method = getattr(AsyncLibsqlStore, name)
        assert inspect.iscoroutinefunction(method) or inspect.isasyncgenfunction(method), name


def test_the_public_names() -> None:
    """The stores and their conflict are named by the package and by its `store` module."""
    assert StoreConflict is store.StoreConflict is errors.StoreConflict
    assert store.AsyncLibsqlStore is AsyncLibsqlStore
    assert {"AsyncLibsqlStore", "LibsqlStore", "StoreConflict"} <= set(dir(harel_schema))
