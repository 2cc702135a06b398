"""Text that a test can be given: any that can be written as UTF-8."""

from __future__ import annotations

from hypothesis import strategies as st

__all__ = ["CHARACTERS", "any_text"]

# By category: asked by codec, as `st.text()` does, each process tries all of a million characters.
CHARACTERS = st.characters(exclude_categories=["Cs"])


def any_text(min_size: int = 0, max_size: int | None = None) -> st.SearchStrategy[str]:
    """Return the strategy of any text."""
    return st.text(CHARACTERS, min_size=min_size, max_size=max_size)
