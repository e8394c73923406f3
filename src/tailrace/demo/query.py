"""The demo's query, as a user would write it: plain PySpark, without Tailrace."""

from __future__ import annotations

import pandas as pd
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.functions import pandas_udf
from pyspark.sql.streaming.readwriter import DataStreamWriter

from tailrace._kafka.cluster import Servers, as_cluster
from tailrace.demo.model import FEATURES, FraudModel

PAYMENT = "number LONG, intended_ns LONG, card STRING, amount DOUBLE, country STRING, home_country STRING"


def read_payments(spark: SparkSession, cluster: Servers, topic: str) -> DataFrame:
    return (
        spark.readStream.format("kafka")
        .options(**as_cluster(cluster).spark_options())
        .option("subscribe", topic)
        .option("startingOffsets", "earliest")
        .load()
        .select(F.from_json(F.col("value").cast("string"), PAYMENT).alias("payment"))
        .select("payment.*")
        .withColumn("paid_at", F.timestamp_seconds(F.col("intended_ns") / 1e9))
    )


def decide(payments: DataFrame, model: FraudModel) -> DataFrame:
    """Score each payment with the model, from the payment itself and its card's use in this minute."""

    def score(*columns: pd.Series) -> pd.Series:
        return model.probability(pd.concat(columns, axis=1))

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
    fraud = pandas_udf(score, "double")  # type: ignore[call-overload]
    scored = velocity.withColumn("abroad", F.col("country") != F.col("home_country")).withColumn(
        "fraud", fraud(*FEATURES)
    )
    decision = F.when(F.col("fraud") >= 0.8, "decline").when(F.col("fraud") >= 0.4, "review").otherwise("approve")
    return scored.withColumn("decision", decision)


def write_decisions(decisions: DataFrame, cluster: Servers, topic: str, checkpoint: str) -> DataStreamWriter:
    return (
        decisions.select(F.col("card").alias("key"), F.to_json(F.struct("*")).alias("value"))
        .writeStream.format("kafka")
        .options(**as_cluster(cluster).spark_options())
        .option("topic", topic)
        .option("checkpointLocation", checkpoint)
        .outputMode("update")
        .queryName("fraud scoring")
    )
