"""Fraud velocity: a card that pays too often within ten seconds is stopped, while the payment is in flight.

    python examples/fraud_velocity.py

It starts its own broker. A `StatefulProcessor` keeps the times of each card's payments. When a card has been quiet, a
timer forgets it and reports that, even though nothing arrives any more.
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

WINDOW_MS = 10_000
MOST_PAYMENTS = 3
QUIET_MS = 2_000


class Velocity(StatefulProcessor):
    def init(self, handle: Any) -> None:
        self.handle = handle
        self.payments = handle.getListState("payments", "at_ms LONG, amount DOUBLE")
        self.quiet_at = handle.getValueState("quiet_at", "at_ms LONG")

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:
        for row in rows:
            recent = [payment for payment in self.payments.get() if payment[0] > row.at_ms - WINDOW_MS]
            recent.append((row.at_ms, row.amount))
            self.payments.put(recent)
            self.set_quiet_timer(timerValues.getCurrentProcessingTimeInMs() + QUIET_MS)
            decision = "stop" if len(recent) > MOST_PAYMENTS else "pay"
            yield Row(card=key[0], decision=decision, payments=len(recent), spent=sum(amount for _, amount in recent))

    def handleExpiredTimer(self, key: Any, timerValues: Any, expiredTimerInfo: Any) -> Iterator[Row]:
        self.payments.clear()
        self.quiet_at.clear()
        yield Row(card=key[0], decision="forget", payments=0, spent=0.0)

    def set_quiet_timer(self, at_ms: int) -> None:
        before = self.quiet_at.get()
        if before is not None:
            self.handle.deleteTimer(before[0])
        self.handle.registerTimer(at_ms)
        self.quiet_at.update((at_ms,))


def decide(payments: DataFrame) -> DataFrame:
    return payments.groupBy("card").transformWithState(
        Velocity(), "card STRING, decision STRING, payments LONG, spent DOUBLE", "Update", "ProcessingTime"
    )


def read_payments(spark: SparkSession, servers: str) -> DataFrame:
    records = (
        spark.readStream.format("kafka")
        .option("kafka.bootstrap.servers", servers)
        .option("subscribe", "payments")
        .option("startingOffsets", "earliest")
        .load()
    )
    payment = F.from_json(F.col("value").cast("string"), "card STRING, amount DOUBLE, at_ms LONG")
    return records.select(payment.alias("payment")).select("payment.*")


def pay(servers: str, card: str, times: int) -> None:
    producer = Producer({"bootstrap.servers": servers})
    for _ in range(times):
        payment = {"card": card, "amount": 25.0, "at_ms": time.time_ns() // 1_000_000}
        producer.produce("payments", key=card, value=json.dumps(payment))
    producer.flush()


def decisions(servers: str, wanted: int, within_s: float) -> Iterator[dict[str, Any]]:
    consumer = Consumer({"bootstrap.servers": servers, "group.id": "example", "auto.offset.reset": "earliest"})
    consumer.subscribe(["decisions"])
    deadline = time.monotonic() + within_s
    while wanted > 0 and time.monotonic() < deadline:
        record = consumer.poll(0.1)
        if record is not None and record.error() is None:
            wanted -= 1
            yield json.loads(record.value() or b"")
    consumer.close()


def main() -> None:
    with tailrace.EmbeddedKafka() as kafka, tempfile.TemporaryDirectory() as folder:
        servers = kafka.bootstrap_servers
        kafka.create_topics(["payments", "decisions"], partitions=2)
        builder = SparkSession.builder.master("local[4]").config("spark.sql.shuffle.partitions", "2")
        spark = tailrace.configure(builder).getOrCreate()
        query = (
            decide(read_payments(spark, servers))
            .select(F.col("card").alias("key"), F.to_json(F.struct("*")).alias("value"))
            .writeStream.format("kafka")
            .option("kafka.bootstrap.servers", servers)
            .option("topic", "decisions")
            .option("checkpointLocation", f"{folder}/checkpoint")
            .outputMode("update")
            .trigger(realTime="5 minutes")  # type: ignore[call-overload]
            .start()
        )
        pay(servers, "quiet card", 1)
        pay(servers, "busy card", 5)
        for decision in decisions(servers, wanted=8, within_s=180):
            print(
                f"{decision['card']}: {decision['decision']}, {decision['payments']} payments, {decision['spent']:.2f}"
            )
        query.stop()
        spark.stop()


if __name__ == "__main__":
    main()
