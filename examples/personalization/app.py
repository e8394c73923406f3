"""Keep features of each user fresh: what they look at, in a hash of Redis that an online service reads.

A `StatefulProcessor` counts a user's events, remembers the last items, and keeps an interest in each category, which
halves every ten minutes. Each event leaves as the user's new features within milliseconds.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from typing import Any

from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.stateful_processor import StatefulProcessor

import tailrace

EVENT = "event LONG, at_ms LONG, user STRING, item STRING, category STRING"
FEATURES = "user STRING, events LONG, last_items STRING, interests STRING, event LONG, at_ms LONG"

LAST_ITEMS = 5
HALF_LIFE_MS = 600_000


class Features(StatefulProcessor):
    def init(self, handle: Any) -> None:
        self.seen = handle.getValueState("seen", "events LONG, last_items STRING")
        self.interests = handle.getMapState("interests", "category STRING", "weight DOUBLE, at_ms LONG")

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:
        for row in rows:
            events, last_items = self.seen.get() or (0, "[]")
            last_items = json.dumps([row.item, *json.loads(last_items)][:LAST_ITEMS])
            self.seen.update((events + 1, last_items))
            self.add_interest(row)
            yield Row(
                user=key[0],
                events=events + 1,
                last_items=last_items,
                interests=json.dumps(self.interests_at(row.at_ms)),
                event=row.event,
                at_ms=row.at_ms,
            )

    def add_interest(self, row: Row) -> None:
        weight, at_ms = self.interests.getValue((row.category,)) or (0.0, row.at_ms)
        self.interests.updateValue((row.category,), (decayed(weight, row.at_ms - at_ms) + 1, row.at_ms))

    def interests_at(self, now_ms: int) -> dict[str, float]:
        """All as of one time, so a service can compare them."""
        return {key[0]: round(decayed(weight, now_ms - at_ms), 3) for key, (weight, at_ms) in self.interests.iterator()}


def decayed(weight: float, after_ms: int) -> float:
    return float(weight * 0.5 ** (after_ms / HALF_LIFE_MS))


def features(events: DataFrame) -> DataFrame:
    return events.groupBy("user").transformWithState(Features(), FEATURES, "Update", "None")


def read_events(spark: SparkSession) -> DataFrame:
    records = (
        spark.readStream.format("kafka")
        .option("kafka.bootstrap.servers", os.environ["KAFKA_SERVERS"])
        .option("subscribe", "events")
        .option("startingOffsets", "earliest")
        .load()
    )
    return records.select(F.from_json(F.col("value").cast("string"), EVENT).alias("row")).select("row.*")


def start(spark: SparkSession) -> StreamingQuery:
    query: StreamingQuery = (
        features(read_events(spark))
        .writeStream.queryName("personalization")
        .format("tailrace-redis")
        .option("url", os.environ["REDIS_URL"])
        .option("passwordFile", os.environ["REDIS_PASSWORD_FILE"])
        .option("structure", "hash")
        .option("key", "features:{user}")
        .option("ttl", "30 days")
        .option("checkpointLocation", os.environ["CHECKPOINT"])
        .outputMode("update")
        .trigger(realTime="5 minutes")  # type: ignore[call-overload]
        .start()
    )
    return query


def session() -> SparkSession:
    # Two partitions of the topic, and two tasks that keep the users: four slots.
    builder = (
        SparkSession.builder.master("local[4]")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.ui.showConsoleProgress", "false")  # of tasks that do not end
    )
    return tailrace.configure(builder, redis_client=True).getOrCreate()


if __name__ == "__main__":
    start(session()).awaitTermination()
