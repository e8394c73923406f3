from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from .. import score
from ..runtimes.spark import answers, parsed


def query(rows: DataFrame) -> DataFrame:
    scored = F.udf(score.score, "double")
    return answers(parsed(rows), scored("amount", "text").alias("score"))
