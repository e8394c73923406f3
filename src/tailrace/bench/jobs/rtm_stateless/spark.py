from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F


def query(rows: DataFrame) -> DataFrame:
    return rows.select("key", F.base64("value").alias("value"))
