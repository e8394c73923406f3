from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from ..runtimes.spark import answers, parsed


def query(rows: DataFrame) -> DataFrame:
    kept = parsed(rows).where(F.col("amount") % 10 != 0)
    return answers(kept, (F.col("amount") * 2).alias("doubled"))
