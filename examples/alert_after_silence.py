"""Alert after silence: a device that has sent nothing for three seconds is reported, even though nothing arrives.

    python examples/alert_after_silence.py

It starts its own broker. A `StatefulProcessor` moves a timer with each reading of a device. If no reading moves it in
time, the timer fires and reports the silence. With its next reading the device is back.
"""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Iterator
from typing import Any

from confluent_kafka import Consumer, Producer
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.stateful_processor import StatefulProcessor

import tailrace

SILENCE_MS = 3_000


class AlertAfterSilence(StatefulProcessor):
    """Says "silent" of a device that has sent nothing for so long, and "back" when it sends again."""

    def __init__(self, silence_ms: int) -> None:
        self.silence_ms = silence_ms

    def init(self, handle: Any) -> None:
        self.handle = handle
        self.due = handle.getValueState("due", "at_ms LONG")
        self.silent = handle.getValueState("silent", "is BOOLEAN")

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:
        due = self.due.get()
        if due is not None:
            self.handle.deleteTimer(due[0])
        at_ms = timerValues.getCurrentProcessingTimeInMs() + self.silence_ms
        self.handle.registerTimer(at_ms)
        self.due.update((at_ms,))
        if self.silent.exists():
            self.silent.clear()
            yield Row(device=key[0], alert="back")

    def handleExpiredTimer(self, key: Any, timerValues: Any, expiredTimerInfo: Any) -> Iterator[Row]:
        self.due.clear()
        self.silent.update((True,))
        yield Row(device=key[0], alert="silent")


def alerts(readings: DataFrame, silence_ms: int) -> DataFrame:
    return readings.groupBy("device").transformWithState(
        AlertAfterSilence(silence_ms), "device STRING, alert STRING", "Update", "ProcessingTime"
    )


def read_devices(spark: SparkSession, servers: str) -> DataFrame:
    records = (
        spark.readStream.format("kafka")
        .option("kafka.bootstrap.servers", servers)
        .option("subscribe", "readings")
        .option("startingOffsets", "earliest")
        .load()
    )
    reading = F.from_json(F.col("value").cast("string"), "device STRING, degrees DOUBLE")
    return records.select(reading.alias("reading")).select("reading.*")


def send(producer: Producer, device: str) -> None:
    producer.produce("readings", key=device, value=json.dumps({"device": device, "degrees": 21.5}))
    producer.flush()


def main() -> None:
    with tailrace.EmbeddedKafka() as kafka, tempfile.TemporaryDirectory() as folder:
        servers = kafka.bootstrap_servers
        kafka.create_topics(["readings", "alerts"], partitions=2)
        builder = SparkSession.builder.master("local[4]").config("spark.sql.shuffle.partitions", "2")
        spark = tailrace.configure(builder).getOrCreate()
        query = (
            alerts(read_devices(spark, servers), SILENCE_MS)
            .select(F.col("device").alias("key"), F.to_json(F.struct("*")).alias("value"))
            .writeStream.format("kafka")
            .option("kafka.bootstrap.servers", servers)
            .option("topic", "alerts")
            .option("checkpointLocation", f"{folder}/checkpoint")
            .outputMode("update")
            .trigger(realTime="5 minutes")  # type: ignore[call-overload]
            .start()
        )
        producer = Producer({"bootstrap.servers": servers})
        send(producer, "door")
        consumer = Consumer({"bootstrap.servers": servers, "group.id": "example", "auto.offset.reset": "earliest"})
        consumer.subscribe(["alerts"])
        deadline = time.monotonic() + 180
        is_back = False
        while not is_back and time.monotonic() < deadline:
            # This one is never silent for long.
            send(producer, "window")
            record = consumer.poll(0.5)
            if record is not None and record.error() is None:
                found = json.loads(record.value() or b"")
                print(f"{found['device']}: {found['alert']}")
                is_back = found == {"device": "door", "alert": "back"}
                send(producer, "door")
        consumer.close()
        query.stop()
        spark.stop()


if __name__ == "__main__":
    main()
