from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from ..runtimes.spark import answers, parsed
from ..vendor_a import LONGEST
from . import TABLE_ROWS


def query(rows: DataFrame) -> DataFrame:
    spark = SparkSession.active()
    table = spark.range(TABLE_ROWS).select(F.col("id").alias("x"), (F.col("id") * 2).alias("doubled"))
    encoded = parsed(rows).select(
        "key",
        "number",
        "intended_ns",
        (F.col("number") % TABLE_ROWS).alias("x"),
        F.base64(F.substring("text", 1, LONGEST)).alias("body"),
    )
    return answers(encoded.join(F.broadcast(table), "x"), "doubled", "body")
