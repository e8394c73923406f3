from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from ..runtimes.spark import answers, event_time, parsed
from . import LONGEST, WINDOW


def query(rows: DataFrame) -> DataFrame:
    encoded = parsed(rows).select(
        "key", "number", "intended_ns", event_time(), F.base64(F.substring("text", 1, LONGEST)).alias("body")
    )
    counts = (
        encoded.withWatermark("at", "1 minute")
        .groupBy("key", "body", F.window("at", WINDOW))
        .agg(
            F.max("number").alias("number"),
            F.max("intended_ns").alias("intended_ns"),
            F.count("*").alias("count"),
        )
    )
    return answers(counts, "key", "count", "body")
