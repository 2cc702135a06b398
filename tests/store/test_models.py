"""Our models beside harel's own."""

from __future__ import annotations

import dataclasses
import datetime as dt

import harel.engine.execution as theirs
import pytest
from harel.engine.store import base
from harel.spec import states
from hypothesis import given
from hypothesis import strategies as st

from harel_schema import models
from tests.support.text import any_text

PAIRS = [
    (models.Execution, theirs.Execution),
    (models.ChildState, theirs.ChildState),
    (models.Event, states.Event),
    (models.ExecutionSummary, theirs.ExecutionSummary),
    (models.ExecutionPage, theirs.ExecutionPage),
]
ENTRIES = [
    (models.OutboxEntry, base.OutboxEntry),
    (models.SpawnEntry, base.SpawnEntry),
    (models.TimerOp, base.TimerOp),
    (models.Step, base.Step),
]
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | any_text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(any_text(), inner, max_size=3),
    max_leaves=8,
)
DICT = st.dictionaries(any_text() | st.integers(), JSON, max_size=3)
EVENTS = st.fixed_dictionaries(
    {"id": any_text(), "kind": any_text(), "data": DICT},
    optional={"created_time": st.datetimes(timezones=st.just(dt.UTC))},
)
EXECUTIONS = st.fixed_dictionaries(
    {"id": any_text(), "definition_id": any_text()},
    optional={
        "context": DICT,
        "history": DICT,
        "status": st.sampled_from([status.value for status in theirs.Status]),
        "deferred": st.lists(EVENTS, max_size=2),
        "children": st.dictionaries(
            any_text(), st.fixed_dictionaries({"root_path": any_text(), "result": DICT}), max_size=2
        ),
        "invoke_seq": st.dictionaries(any_text(), st.integers(), max_size=2),
        "updated_at": st.floats(),
        "priority": st.integers(0, 4),
        "version": st.integers(0, 2**63 - 1),
    },
)


@pytest.mark.parametrize(("ours", "harels"), PAIRS)
def test_models_have_the_same_fields_in_the_same_order(ours, harels) -> None:
    """Names, order, and what is required are harel's."""
    shape = [(name, field.is_required()) for name, field in ours.model_fields.items()]
    assert shape == [(name, field.is_required()) for name, field in harels.model_fields.items()]


@pytest.mark.parametrize(("ours", "harels"), ENTRIES)
def test_entries_have_the_same_fields_and_defaults(ours, harels) -> None:
    """The dataclasses take the same arguments."""

    def shape(cls):
        return [(field.name, field.default) for field in dataclasses.fields(cls)]

    assert shape(ours) == shape(harels)


def test_statuses_are_the_same() -> None:
    """Every status of harel is one of ours."""
    assert [s.value for s in models.Status] == [s.value for s in theirs.Status]
    assert models.DEFAULT_TRACE_MAX == base.DEFAULT_TRACE_MAX


@given(EXECUTIONS)
def test_executions_have_the_same_json(fields) -> None:
    """Equal content gives the same bytes, and each reads the other's."""
    ours = models.Execution(**fields)
    text = theirs.Execution(**fields).model_dump_json()
    assert ours.model_dump_json() == text
    assert models.Execution.model_validate_json(text).model_dump_json() == text


@given(EVENTS)
def test_events_have_the_same_json(fields) -> None:
    """Equal events give the same bytes."""
    assert models.Event(**fields).model_dump_json() == states.Event(**fields).model_dump_json()
