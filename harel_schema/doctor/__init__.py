"""Is a store sound? Integrity, its invariants, what waits for too long, how large it is.

`diagnose(target)` gives a `Diagnosis`: a `Finding` for each thing that is wrong, and a figure a
table. Below it: `kinds` (what can be found), `rules` (the questions to each row), `file` (what is
asked of the database as a whole).
"""

from harel_schema.doctor.diagnosing import diagnose
from harel_schema.doctor.kinds import Kind, Severity
from harel_schema.doctor.model import Diagnosis, Figures, Finding, Thresholds

__all__ = ["Diagnosis", "Figures", "Finding", "Kind", "Severity", "Thresholds", "diagnose"]
