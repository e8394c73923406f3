"""Decide about card payments while they are in flight. A service reads the decisions from PostgreSQL.

How often a card paid within the last minute is the state of a `StatefulProcessor`; a scikit-learn model in a
`pandas_udf` turns that and the payment into a probability of fraud. Each decision is written once, whatever fails.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import pandas as pd
from model import FEATURES, train
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.functions import pandas_udf
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.stateful_processor import StatefulProcessor

import tailrace

PAYMENT = "payment LONG, card STRING, amount DOUBLE, abroad BOOLEAN, at_ms LONG"
VELOCITY = f"{PAYMENT}, payments LONG, spent DOUBLE"
TABLE = """
CREATE TABLE IF NOT EXISTS decisions (
  payment bigint PRIMARY KEY, at_ms bigint NOT NULL, card text NOT NULL, payments bigint NOT NULL,
  spent double precision NOT NULL, fraud double precision NOT NULL, decision text NOT NULL)
"""
MINUTE_MS = 60_000
FORGET_AFTER_MS = 10 * MINUTE_MS


class Velocity(StatefulProcessor):
    """Adds to each payment how often its card paid, and how much, in the minute before and with it."""

    def init(self, handle: Any) -> None:
        # Cards that are not used are forgotten.
        self.recent = handle.getListState("recent", "at_ms LONG, amount DOUBLE", FORGET_AFTER_MS)

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:
        for row in rows:
            recent = [(at_ms, amount) for at_ms, amount in self.recent.get() if at_ms > row.at_ms - MINUTE_MS]
            recent.append((row.at_ms, row.amount))
            self.recent.put(recent)
            yield Row(**row.asDict(), payments=len(recent), spent=round(sum(amount for _, amount in recent), 2))


def decide(payments: DataFrame) -> DataFrame:
    model = train()

    def score(*features: pd.Series) -> pd.Series:
        return pd.Series(model.predict_proba(pd.concat(features, axis=1).to_numpy(float))[:, 1])

    fraud = pandas_udf(score, "double")  # type: ignore[call-overload]
    used = payments.groupBy("card").transformWithState(Velocity(), VELOCITY, "Update", "ProcessingTime")
    scored = used.withColumn("fraud", fraud(*FEATURES))
    decision = F.when(F.col("fraud") >= 0.8, "decline").when(F.col("fraud") >= 0.4, "review").otherwise("approve")
    return scored.select("payment", "at_ms", "card", "payments", "spent", "fraud", decision.alias("decision"))


def read_payments(spark: SparkSession) -> DataFrame:
    records = (
        spark.readStream.format("kafka")
        .option("kafka.bootstrap.servers", os.environ["KAFKA_SERVERS"])
        .option("subscribe", "payments")
        .option("startingOffsets", "earliest")
        .load()
    )
    return records.select(F.from_json(F.col("value").cast("string"), PAYMENT).alias("row")).select("row.*")


def start(spark: SparkSession) -> StreamingQuery:
    query: StreamingQuery = (
        decide(read_payments(spark))
        .writeStream.queryName("fraud")
        .format("tailrace-postgresql")
        .option("url", os.environ["POSTGRES_URL"])
        .option("user", os.environ["POSTGRES_USER"])
        .option("passwordFile", os.environ["POSTGRES_PASSWORD_FILE"])
        .option("dbtable", "decisions")
        .option("keyColumns", "payment")
        .option("checkpointLocation", os.environ["CHECKPOINT"])
        .outputMode("update")
        .trigger(realTime="5 minutes")  # type: ignore[call-overload]
        .start()
    )
    return query


def session() -> SparkSession:
    # Two partitions of the topic, and two tasks that keep the cards: four slots.
    builder = (
        SparkSession.builder.master("local[4]")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.ui.showConsoleProgress", "false")  # of tasks that do not end
    )
    return tailrace.configure(builder, postgresql_driver=True).getOrCreate()


if __name__ == "__main__":
    start(session()).awaitTermination()
