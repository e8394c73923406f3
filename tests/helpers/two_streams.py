"""A join of two fresh topics."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from confluent_kafka import Producer
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

import tailrace
from tailrace import EmbeddedKafka
from tests.helpers.topics import new_topic
from tests.helpers.waiting import until

SCHEMA = "id LONG, key STRING, at LONG, value STRING"
# How late a row may be, and how far apart two matching rows may be.
DELAY = "10 seconds"
BEFORE, AFTER = "INTERVAL 5 SECONDS", "INTERVAL 10 SECONDS"
# State that both modes can continue with, and exactly one batch per epoch.
LIKE_REAL_TIME = {
    "spark.sql.streaming.stateStore.checkpointFormatVersion": "2",
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
    "spark.sql.streaming.noDataMicroBatches.enabled": "false",
}

BY_KEY = -1

Row = dict[str, Any]


class TwoStreams:
    """Rows have an id, a key, a time in milliseconds, and optionally a partition."""

    def __init__(self, spark: SparkSession, kafka: EmbeddedKafka, *, partitions: int = 1, delay: str = DELAY) -> None:
        self.spark = spark
        self.delay = delay
        self.servers = kafka.bootstrap_servers
        self.left_topic = new_topic(self.servers, "left", partitions=partitions)
        self.right_topic = new_topic(self.servers, "right", partitions=partitions)
        self._producer = Producer({"bootstrap.servers": self.servers, "linger.ms": 0})

    def new_output(self) -> str:
        return new_topic(self.servers, "joined")

    def left(self) -> DataFrame:
        return self._read(self.left_topic, "l")

    def right(self) -> DataFrame:
        return self._read(self.right_topic, "r")

    def _read(self, topic: str, side: str) -> DataFrame:
        records = (
            self.spark.readStream.format("kafka")
            .option("kafka.bootstrap.servers", self.servers)
            .option("subscribe", topic)
            .option("startingOffsets", "earliest")
            .load()
        )
        row = F.from_json(F.col("value").cast("string"), SCHEMA).alias("row")
        return (
            records.select(row)
            .select(
                F.col("row.id").alias(f"{side}_id"),
                F.col("row.key").alias(f"{side}_key"),
                F.timestamp_millis("row.at").alias(f"{side}_at"),
                F.col("row.value").alias(f"{side}_value"),
            )
            .withWatermark(f"{side}_at", self.delay)
        )

    def joined(self, how: str) -> DataFrame:
        return self.left().join(self.right(), belong_together(), how)

    def writer(
        self, query: DataFrame, output: str, checkpoint: Path, *, mode: str = "append", key: str | None = None
    ) -> DataStreamWriter:
        """With a key, so the results of each key arrive in order."""
        keys = [] if key is None else [F.col(key).alias("key")]
        return (
            query.select(F.to_json(F.struct("*")).alias("value"), *keys)
            .writeStream.format("kafka")
            .option("kafka.bootstrap.servers", self.servers)
            .option("topic", output)
            .option("checkpointLocation", str(checkpoint))
            .outputMode(mode)
        )

    def send(self, left: Iterable[Row] = (), right: Iterable[Row] = ()) -> None:
        """In turn, so neither side is complete before the other."""
        left, right = list(left), list(right)
        for position in range(max(len(left), len(right))):
            for topic, rows in ((self.left_topic, left), (self.right_topic, right)):
                if position < len(rows):
                    row = rows[position]
                    where = row.get("partition", BY_KEY)
                    self._producer.produce(topic, json.dumps(row).encode(), row["key"].encode(), where)
        assert self._producer.flush(20) == 0


def belong_together() -> Column:
    return F.expr(f"l_key = r_key AND r_at BETWEEN l_at - {BEFORE} AND l_at + {AFTER}")


@contextmanager
def running(writer: DataStreamWriter, *, epoch: str = "10 minutes") -> Iterator[StreamingQuery]:
    query = writer.trigger(realTime=epoch).start()  # type: ignore[call-overload]
    try:
        yield query
    finally:
        failure = query.exception()
        query.stop()
        if failure is not None:
            raise failure


def has_read(query: StreamingQuery, rows: int) -> None:
    """Wait until the run has read this many rows."""

    def read() -> int:
        if (failure := query.exception()) is not None:
            raise failure
        return int(tailrace.latency(query).to_dict()["windows"]["run"]["rows_in"])

    until(lambda: read() >= rows, f"{rows} rows read")
