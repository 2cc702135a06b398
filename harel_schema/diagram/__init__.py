"""A live schema as a picture's content: boxes, their lines, relations, and what differs where.

`read(target)` gives a `Diagram`; `harel_schema.report` draws it as Mermaid or SVG.
"""

from __future__ import annotations

from harel_schema.diagram.drawing import draw, read
from harel_schema.diagram.model import Box, Diagram, Line, Link, Mark

__all__ = ["Box", "Diagram", "Line", "Link", "Mark", "draw", "read"]
