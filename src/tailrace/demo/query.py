"""The demo's query, as a user would write it: plain PySpark, nothing of Tailrace in it."""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.readwriter import DataStreamWriter

PAYMENT = "number LONG, intended_ns LONG, card STRING, amount DOUBLE, country STRING, home_country STRING"


def read_payments(spark: SparkSession, bootstrap_servers: str, topic: str) -> DataFrame:
    return (
        spark.readStream.format("kafka")
        .option("kafka.bootstrap.servers", bootstrap_servers)
        .option("subscribe", topic)
        .option("startingOffsets", "earliest")
        .load()
        .select(F.from_json(F.col("value").cast("string"), PAYMENT).alias("payment"))
        .select("payment.*")
        .withColumn("paid_at", F.timestamp_seconds(F.col("intended_ns") / 1e9))
    )


def decide(payments: DataFrame) -> DataFrame:
    """Score each payment by rules on itself and on how often its card was used this minute."""
    velocity = (
        payments.withWatermark("paid_at", "1 minute")
        .groupBy("card", F.window("paid_at", "1 minute"))
        .agg(
            F.count("*").alias("payments_this_minute"),
            F.round(F.sum("amount"), 2).alias("spent_this_minute"),
            F.max(F.struct("number", "intended_ns", "amount", "country", "home_country")).alias("last"),
        )
        .select("card", "payments_this_minute", "spent_this_minute", "last.*")
    )
    score = (
        F.when(F.col("amount") > 500, 35).otherwise(0)
        + F.when(F.col("country") != F.col("home_country"), 30).otherwise(0)
        + F.when(F.col("payments_this_minute") > 4, 40).otherwise(0)
        + F.when(F.col("spent_this_minute") > 2000, 20).otherwise(0)
    )
    decision = F.when(F.col("score") >= 70, "decline").when(F.col("score") >= 40, "review").otherwise("approve")
    return velocity.withColumn("score", score).withColumn("decision", decision)


def write_decisions(decisions: DataFrame, bootstrap_servers: str, topic: str, checkpoint: str) -> DataStreamWriter:
    return (
        decisions.select(F.col("card").alias("key"), F.to_json(F.struct("*")).alias("value"))
        .writeStream.format("kafka")
        .option("kafka.bootstrap.servers", bootstrap_servers)
        .option("topic", topic)
        .option("checkpointLocation", checkpoint)
        .outputMode("update")
    )
