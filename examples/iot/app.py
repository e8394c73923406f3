"""Watch devices: each has a baseline of its own, and what is far from it raises an alert and stops the device.

A `StatefulProcessor` keeps a running mean and deviation for each device. A single unusual reading is an alert. Two in a
row stop the device, and ten usual ones start it again. Alerts and commands go to two topics, each once, and every
reading with its deviation to a third.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.stateful_processor import StatefulProcessor

import tailrace

READING = "reading LONG, intended_ns LONG, device STRING, celsius DOUBLE"
BASELINE = "readings LONG, mean DOUBLE, variance DOUBLE, unusual LONG, stopped BOOLEAN, usual LONG"
OUTPUT = "topic STRING, what STRING, device STRING, reading LONG, intended_ns LONG, deviations DOUBLE"

KNOWN_AFTER = 10  # readings
UNUSUAL = 6.0  # standard deviations
WEIGHT = 0.02  # of a new reading, so the baseline follows slow changes
STOP_AFTER, RESUME_AFTER = 2, 10  # unusual and usual readings in a row


class Baseline(StatefulProcessor):
    def init(self, handle: Any) -> None:
        self.baseline = handle.getValueState("baseline", BASELINE)

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:
        for row in rows:
            yield from self.judge(row)

    def judge(self, row: Row) -> Iterator[Row]:
        readings, mean, variance, unusual, stopped, usual = self.baseline.get() or (0, 0.0, 0.0, 0, False, 0)
        distance = row.celsius - mean
        deviations = abs(distance) / max(variance**0.5, 1e-9) if readings >= KNOWN_AFTER else 0.0
        # A row for each reading: after a failure, readings are replayed in the order that these rows tell.
        yield self.say("judged", "unusual" if deviations > UNUSUAL else "usual", row, deviations)
        if deviations > UNUSUAL:
            # Not learned: a fault must not become usual.
            unusual, usual = unusual + 1, 0
            yield self.say("alerts", "unusual", row, deviations)
            if unusual == STOP_AFTER and not stopped:
                stopped = True
                yield self.say("commands", "stop", row, deviations)
        else:
            weight = max(WEIGHT, 1 / (readings + 1))
            mean += weight * distance
            variance = (1 - weight) * (variance + weight * distance**2)
            readings, unusual, usual = readings + 1, 0, usual + 1
            if stopped and usual == RESUME_AFTER:
                stopped = False
                yield self.say("commands", "resume", row, deviations)
        self.baseline.update((readings, mean, variance, unusual, stopped, usual))

    def say(self, topic: str, what: str, row: Row, deviations: float) -> Row:
        about = {"device": row.device, "reading": row.reading, "intended_ns": row.intended_ns}
        return Row(topic=topic, what=what, **about, deviations=round(deviations, 1))


def judge(readings: DataFrame) -> DataFrame:
    return readings.groupBy("device").transformWithState(Baseline(), OUTPUT, "Update", "None")


def read_devices(spark: SparkSession) -> DataFrame:
    records = (
        spark.readStream.format("kafka")
        .option("kafka.bootstrap.servers", os.environ["KAFKA_SERVERS"])
        .option("subscribe", "readings")
        .option("startingOffsets", "earliest")
        .load()
    )
    return records.select(F.from_json(F.col("value").cast("string"), READING).alias("row")).select("row.*")


def start(spark: SparkSession) -> StreamingQuery:
    query: StreamingQuery = (
        judge(read_devices(spark))
        .select("topic", F.col("device").alias("key"), F.to_json(F.struct("*")).alias("value"))
        .writeStream.queryName("iot")
        .format("tailrace-kafka")
        .option("kafka.bootstrap.servers", os.environ["KAFKA_SERVERS"])
        .option("checkpointLocation", os.environ["CHECKPOINT"])
        .outputMode("update")
        .trigger(realTime="5 minutes")  # type: ignore[call-overload]
        .start()
    )
    return query


def session() -> SparkSession:
    # Two partitions of the topic, and two tasks that keep the baselines: four slots.
    builder = (
        SparkSession.builder.master("local[4]")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.ui.showConsoleProgress", "false")  # of tasks that do not end
    )
    return tailrace.configure(builder).getOrCreate()


if __name__ == "__main__":
    start(session()).awaitTermination()
