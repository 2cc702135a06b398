"""Reports in which things have any name, and names that mean something to a form of a report."""

from __future__ import annotations

from hypothesis import strategies as st

from harel_schema.drift import Difference, Drift, Kind
from harel_schema.report.comparison import Comparison
from tests.support.text import any_text

# Any text, and the characters that mean something in one of the forms.
odd = any_text() | st.text(alphabet="%\r\n:,|`<>@\\*_#[]\x1b\x00\u2028;-'\"a ")
anything = st.builds(
    Difference,
    kind=st.sampled_from(Kind),
    name=odd,
    table=st.none() | odd,
    expected=st.none() | odd,
    found=st.none() | odd,
    fix=st.none() | odd.map("DROP TABLE {};".format) | st.just("harel-schema upgrade"),
    counts=st.booleans(),
    rows=st.none() | st.integers(0, 99),
    examples=st.lists(odd, max_size=5).map(tuple),
)
reports = st.builds(
    Comparison.of,
    st.builds(
        Drift,
        differences=st.lists(anything, max_size=4).map(tuple),
        others=st.lists(odd, max_size=3).map(tuple),
        revision=st.sampled_from([None, "0001"]),
    ),
    st.sampled_from(["state.db", "/var/a b/ü%.db", "https://host:8080/ns", ":memory:"]),
    prefix=st.just("harel"),
    against=st.sampled_from([None, "other.db"]),
)
