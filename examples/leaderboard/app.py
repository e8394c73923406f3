"""Keep the leaderboard of a game: the total of each player, in a sorted set of Redis that a live page reads.

An ordinary aggregation. Each score leaves as the player's new total within milliseconds, and totals never step back,
whatever fails.
"""

from __future__ import annotations

import os

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery

import tailrace

SCORE = "player STRING, points LONG"


def total(scores: DataFrame) -> DataFrame:
    return scores.groupBy("player").agg(F.sum("points").alias("total"))


def read_scores(spark: SparkSession) -> DataFrame:
    records = (
        spark.readStream.format("kafka")
        .option("kafka.bootstrap.servers", os.environ["KAFKA_SERVERS"])
        .option("subscribe", "scores")
        .option("startingOffsets", "earliest")
        .load()
    )
    return records.select(F.from_json(F.col("value").cast("string"), SCORE).alias("row")).select("row.*")


def start(spark: SparkSession) -> StreamingQuery:
    query: StreamingQuery = (
        total(read_scores(spark))
        .writeStream.queryName("leaderboard")
        .format("tailrace-redis")
        .option("url", os.environ["REDIS_URL"])
        .option("passwordFile", os.environ["REDIS_PASSWORD_FILE"])
        .option("structure", "sorted-set")
        .option("key", "leaderboard")
        .option("member", "player")
        .option("score", "total")
        .option("checkpointLocation", os.environ["CHECKPOINT"])
        .outputMode("update")
        .trigger(realTime="5 minutes")  # type: ignore[call-overload]
        .start()
    )
    return query


def session() -> SparkSession:
    # Two partitions of the topic, and two tasks that add up: four slots.
    builder = (
        SparkSession.builder.master("local[4]")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.ui.showConsoleProgress", "false")  # of tasks that do not end
    )
    return tailrace.configure(builder, redis_client=True).getOrCreate()


if __name__ == "__main__":
    start(session()).awaitTermination()
