"""The queries that are put to the test: ordinary PySpark, from one topic to another.

Each output record says in `number` which input record it answers, so that the ledger can ask for every one of them.
"""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.readwriter import DataStreamWriter

Workload = Callable[[DataFrame], DataFrame]


def doubled(amount: int) -> int:
    return amount * 2


def passes(amount: int) -> bool:
    return amount % 5 != 0


def scored(amount: int) -> int:
    return (amount * 31 + 7) % 101


def stateless(rows: DataFrame) -> DataFrame:
    return rows.where(F.col("amount") % 5 != 0).select("key", "number", "id", (F.col("amount") * 2).alias("doubled"))


def python(rows: DataFrame) -> DataFrame:
    score: Callable[[str], Column] = F.udf(scored, "long")
    return rows.select("key", "number", "id", score("amount").alias("score"))


def aggregation(rows: DataFrame) -> DataFrame:
    """Count and sum per key. Every row gives an update, whose `number` is that row's: the last that was added."""
    return rows.groupBy("key").agg(
        F.last("number").alias("number"), F.count("*").alias("count"), F.sum("amount").alias("sum")
    )


def dedup(rows: DataFrame) -> DataFrame:
    return rows.dropDuplicates(["id"]).select("key", "number", "id")


WORKLOADS: dict[str, Workload] = {
    "stateless": stateless,
    "python": python,
    "aggregation": aggregation,
    "dedup": dedup,
}


def read(spark: SparkSession, bootstrap_servers: str, topic: str) -> DataFrame:
    return (
        spark.readStream.format("kafka")
        .option("kafka.bootstrap.servers", bootstrap_servers)
        .option("subscribe", topic)
        .option("startingOffsets", "earliest")
        .load()
        .select(
            F.from_json(F.col("value").cast("string"), "number LONG, id LONG, key STRING, amount LONG").alias("row")
        )
        .select("row.*")
    )


def write(rows: DataFrame, sink: str, bootstrap_servers: str, topic: str, checkpoint: str) -> DataStreamWriter:
    return (
        rows.select("key", F.to_json(F.struct("*")).alias("value"))
        .writeStream.format(sink)
        .option("kafka.bootstrap.servers", bootstrap_servers)
        .option("topic", topic)
        .option("checkpointLocation", checkpoint)
        .outputMode("update")
    )
