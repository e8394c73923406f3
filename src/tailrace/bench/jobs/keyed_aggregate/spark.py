from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from ..runtimes.spark import answers, parsed


def query(rows: DataFrame) -> DataFrame:
    totals = (
        parsed(rows)
        .groupBy("key")
        .agg(
            F.max("number").alias("number"),
            F.max("intended_ns").alias("intended_ns"),
            F.count("*").alias("count"),
            F.sum("amount").alias("total"),
        )
    )
    return answers(totals, "key", "count", "total")
