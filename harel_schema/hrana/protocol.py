"""Hrana 3 without I/O: requests to bytes, bytes to results. See `messages` for the values.

Exactness, measured on sqld 0.24.32:

- Every double, both infinities and -0.0 included, every 64-bit integer, blob and text (NUL and
  astral characters too) arrives bit by bit in both directions. `encode` says why JSON cannot.
- SQLite itself stores -0.0 as 0.0 in a column of REAL affinity, as 0 in a NUMERIC or INTEGER one.
- NaN, an integer beyond 64 bits and a lone surrogate are `DataError` before anything is sent.
- A stored TEXT that is not UTF-8 cannot be read by any encoding: the server answers HTTP 500
  (`OperationalError` here), and a cursor breaks off. ``CAST(column AS BLOB)`` reads it.
"""

from harel_schema.hrana.decode import CursorDecoder, decode_pipeline
from harel_schema.hrana.encode import encode_cursor, encode_pipeline, encode_statement
from harel_schema.hrana.messages import (
    And,
    Args,
    Batch,
    BatchResult,
    Close,
    Condition,
    CursorEntry,
    Describe,
    Description,
    Encoded,
    Err,
    Execute,
    GetAutocommit,
    IsAutocommit,
    Not,
    Ok,
    Or,
    Pipeline,
    Request,
    Result,
    Row,
    Rows,
    RunBatch,
    Sequence,
    Statement,
    StatementResult,
    Step,
    StepBegin,
    StepEnd,
    StepError,
    Value,
)

__all__ = [
    "And",
    "Args",
    "Batch",
    "BatchResult",
    "Close",
    "Condition",
    "CursorDecoder",
    "CursorEntry",
    "Describe",
    "Description",
    "Encoded",
    "Err",
    "Execute",
    "GetAutocommit",
    "IsAutocommit",
    "Not",
    "Ok",
    "Or",
    "Pipeline",
    "Request",
    "Result",
    "Row",
    "Rows",
    "RunBatch",
    "Sequence",
    "Statement",
    "StatementResult",
    "Step",
    "StepBegin",
    "StepEnd",
    "StepError",
    "Value",
    "decode_pipeline",
    "encode_cursor",
    "encode_pipeline",
    "encode_statement",
]
