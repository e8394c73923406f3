from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from ..runtimes.spark import answers, event_time, parsed
from . import WINDOW


def query(rows: DataFrame) -> DataFrame:
    counts = (
        parsed(rows)
        .withColumn("at", event_time())
        .withWatermark("at", "1 minute")
        .groupBy("key", F.window("at", WINDOW))
        .agg(F.max("number").alias("number"), F.max("intended_ns").alias("intended_ns"), F.count("*").alias("count"))
    )
    return answers(counts, "key", "count")
