"""Alert while it still helps: a service that fails too often, or that has gone silent.

A `StatefulProcessor` keeps the last requests of each service. A timer, moved by every request, fires when no request
has moved it in time: silence makes no record that could be counted. The next request would tell the same, by its own
time, so the alerts are a function of the requests: a replay makes each of them again, and the sink knows them.
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

REQUEST = "request LONG, intended_ns LONG, service STRING, status INT"
ALERT = "service STRING, alert STRING, request LONG, intended_ns LONG"

LAST_REQUESTS = 20
FAILING, RECOVERED = 0.5, 0.1  # shares of failed requests; apart, so an alert does not flicker
SILENCE_MS = 2_000
LATE_MS = 1_000  # after its own time, a request is here at the latest


class Watch(StatefulProcessor):
    def init(self, handle: Any) -> None:
        self.handle = handle
        self.failures = handle.getListState("failures", "failed BOOLEAN")
        self.is_failing = handle.getValueState("is_failing", "yes BOOLEAN")
        self.is_silent = handle.getValueState("is_silent", "yes BOOLEAN")
        self.last = handle.getValueState("last", "request LONG, intended_ns LONG, silent_at_ms LONG")

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:
        for row in rows:
            yield from self.end_silence(key[0], row)
            share = self.share_of_failures(row.status >= 500)
            if share >= FAILING and not self.is_failing.exists():
                self.is_failing.update((True,))
                yield Row(service=key[0], alert="failing", request=row.request, intended_ns=row.intended_ns)
            elif share <= RECOVERED and self.is_failing.exists():
                self.is_failing.clear()
                yield Row(service=key[0], alert="recovered", request=row.request, intended_ns=row.intended_ns)

    def handleExpiredTimer(self, key: Any, timerValues: Any, expiredTimerInfo: Any) -> Iterator[Row]:
        request, intended_ns, _ = self.last.get()
        self.is_silent.update((True,))
        yield Row(service=key[0], alert="silent", request=request, intended_ns=intended_ns)

    def end_silence(self, service: str, row: Row) -> Iterator[Row]:
        """Tells what the timer has not told: in a replay, or if the request came just before it."""
        last, is_told = self.last.get(), self.is_silent.exists()
        if last is not None:
            request, intended_ns, silent_at_ms = last
            was_silent = row.intended_ns - intended_ns >= SILENCE_MS * 1_000_000
            if is_told:
                self.is_silent.clear()
            else:
                self.handle.deleteTimer(silent_at_ms)
            if was_silent and not is_told:
                yield Row(service=service, alert="silent", request=request, intended_ns=intended_ns)
            if was_silent or is_told:
                yield Row(service=service, alert="back", request=row.request, intended_ns=row.intended_ns)
        # By the request's own time, so a timer of a replay is due when it was due before.
        silent_at_ms = row.intended_ns // 1_000_000 + SILENCE_MS + LATE_MS
        self.handle.registerTimer(silent_at_ms)
        self.last.update((row.request, row.intended_ns, silent_at_ms))

    def share_of_failures(self, failed: bool) -> float:
        last = [*self.failures.get(), (failed,)][-LAST_REQUESTS:]
        self.failures.put(last)
        return sum(bool(one[0]) for one in last) / LAST_REQUESTS


def watch(requests: DataFrame) -> DataFrame:
    return requests.groupBy("service").transformWithState(Watch(), ALERT, "Update", "ProcessingTime")


def read_requests(spark: SparkSession) -> DataFrame:
    records = (
        spark.readStream.format("kafka")
        .option("kafka.bootstrap.servers", os.environ["KAFKA_SERVERS"])
        .option("subscribe", "requests")
        .option("startingOffsets", "earliest")
        .load()
    )
    return records.select(F.from_json(F.col("value").cast("string"), REQUEST).alias("row")).select("row.*")


def start(spark: SparkSession) -> StreamingQuery:
    query: StreamingQuery = (
        watch(read_requests(spark))
        .select(F.col("service").alias("key"), F.to_json(F.struct("*")).alias("value"))
        .writeStream.queryName("alerting")
        .format("tailrace-kafka")
        .option("kafka.bootstrap.servers", os.environ["KAFKA_SERVERS"])
        .option("topic", "alerts")
        .option("checkpointLocation", os.environ["CHECKPOINT"])
        .outputMode("update")
        .trigger(realTime="5 minutes")  # type: ignore[call-overload]
        .start()
    )
    return query


def session() -> SparkSession:
    # Two partitions of the topic, and two tasks that watch: four slots.
    builder = (
        SparkSession.builder.master("local[4]")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.ui.showConsoleProgress", "false")  # of tasks that do not end
    )
    return tailrace.configure(builder).getOrCreate()


if __name__ == "__main__":
    start(session()).awaitTermination()
