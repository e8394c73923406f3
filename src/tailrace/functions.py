"""Columns that Tailrace adds to Spark's own functions."""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F


def session_status() -> Column:
    """What a result of a session window says of its session, for ``agg(…)`` beside the other aggregates.

    ``open`` while rows can still join it, ``merged`` when a row has made it part of another session (this is the last
    result for this start), ``closed`` when its time is over (this is the final result). With ``append``, and in
    micro-batch, there are only results of closed sessions.
    """
    return F.call_function("tailrace_session_status").alias("status")
