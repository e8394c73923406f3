from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from ..runtimes.spark import answers, event_time, parsed

OUTPUT_MODE = "append"
WITHIN = "INTERVAL 10 SECONDS"


def query(orders: DataFrame, payments: DataFrame) -> DataFrame:
    """Each order with its payment, which comes within ten seconds of it."""
    left = parsed(orders).select("id", "amount", event_time()).withWatermark("at", "10 seconds").alias("ordered")
    right = parsed(payments).withColumn("at", event_time()).withWatermark("at", "10 seconds").alias("paid")
    matched = left.join(
        right,
        F.expr(f"ordered.id = paid.id AND paid.at BETWEEN ordered.at - {WITHIN} AND ordered.at + {WITHIN}"),
    ).select(
        "paid.key", "paid.number", "paid.intended_ns", (F.col("ordered.amount") + F.col("paid.amount")).alias("sum")
    )
    return answers(matched, "sum")
