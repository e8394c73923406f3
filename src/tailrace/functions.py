"""Columns that Tailrace adds to Spark's own functions."""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F


def session_status() -> Column:
    """The status of a session window's result, for ``agg(…)`` beside the other aggregates.

    ``open``: rows can still join the session. ``merged``: a row made it part of another session, and this is the last
    result with this start. ``closed``: its time is over, and this is the final result. With ``append``, and in
    micro-batch, every result is ``closed``.
    """
    return F.call_function("tailrace_session_status").alias("status")
