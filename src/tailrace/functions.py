"""Functions on columns and rows that Tailrace adds to Spark's own."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from pyspark.errors import IllegalArgumentException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.classic.dataframe import DataFrame as ClassicDataFrame

from tailrace._spark.plugin import DROP_DUPLICATES_CLASS, is_loaded, jvm_object
from tailrace.errors import ConfigurationError, TailraceError

__all__ = ["drop_duplicates", "session_status"]


def session_status() -> Column:
    """The status of a session window's result, for ``agg(…)`` together with the other aggregates.

    ``open``: rows can still join the session. ``merged``: a row made it part of another session, and this is the last
    result with this start. ``closed``: its time is over, and this is the final result. With ``append``, and in
    micro-batch, every result is ``closed``.
    """
    return F.call_function("tailrace_session_status").alias("status")


def drop_duplicates(rows: DataFrame, columns: str | Sequence[str], *, ttl: str | timedelta) -> DataFrame:
    """Keep the first row of each key and forget the key after `ttl`, so state does not grow forever.

        unique = tailrace.drop_duplicates(payments, ["id"], ttl="10 minutes")

    `ttl` is processing time. No watermark is needed, and a row that arrives again after `ttl` passes again. The call is
    the same in both modes. In Real-Time Mode a row passes at once. In micro-batch, state must be in RocksDB, as for
    transformWithState, and a batch counts as one moment: its rows are deduplicated and nothing expires within it.

    :param columns: the columns that make two rows duplicates, as in `DataFrame.dropDuplicates`.
    :param ttl: a duration as in triggers and watermarks, or a `timedelta`.
    """
    session = rows.sparkSession
    if not isinstance(rows, ClassicDataFrame) or not is_loaded(session.sparkContext):
        raise ConfigurationError(
            "TAILRACE_SESSION_NOT_CONFIGURED",
            "this Spark session runs without Tailrace's plugin, which implements this operation.",
            "create the session with tailrace.configure(SparkSession.builder…).getOrCreate().",
        )
    keys = [columns] if isinstance(columns, str) else list(columns)
    if not all(isinstance(key, str) for key in keys):
        raise ConfigurationError(
            "TAILRACE_BAD_DEDUPLICATION",
            "columns must be given by name.",
            'drop_duplicates(rows, ["id"], ttl=…); for an expression, add a column with withColumn first.',
        )
    time = f"{ttl // timedelta(microseconds=1)} microseconds" if isinstance(ttl, timedelta) else str(ttl)
    try:
        kept = jvm_object(session.sparkContext, DROP_DUPLICATES_CLASS).apply(rows._jdf, keys, time)
    except IllegalArgumentException as refused:
        raise (TailraceError.find_in(str(refused)) or refused) from None
    return DataFrame(kept, session)
