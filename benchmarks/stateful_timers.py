"""How late processing-time timers of a Python processor fire while no rows arrive, within a long epoch."""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from confluent_kafka import Consumer
from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F
from pyspark.sql.streaming.stateful_processor import StatefulProcessor

import tailrace
from benchmarks.common import PARTITIONS, Bench, preload, print_table, rows_in, running, session, wait_for_rows
from benchmarks.common import read as read_topic
from benchmarks.progress import Progress

WITHIN_MS = 100
PERCENTILES = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "p99.9": 0.999}


@dataclass(frozen=True)
class Plan:
    timers: int = 2_000
    over_s: int = 20
    begin_in_s: int = 15
    """From when the query processes rows to the first timer. All are registered well before it is due."""

    @classmethod
    def quick(cls) -> Plan:
        return cls(timers=50, over_s=2, begin_in_s=5)


class Alarms(StatefulProcessor):
    """Registers a timer for each row, at the time in the row."""

    def init(self, handle: Any) -> None:
        self.handle = handle

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:  # noqa: N802, N803
        for row in rows:
            self.handle.registerTimer(row.due_ms)
            yield Row(due_ms=0, called_ms=0)

    def handleExpiredTimer(self, key: Any, timerValues: Any, expiredTimerInfo: Any) -> Iterator[Row]:  # noqa: N802, N803
        yield Row(due_ms=expiredTimerInfo.getExpiryTimeInMs(), called_ms=time.time_ns() // 1_000_000)


def alarms(rows: DataFrame) -> DataFrame:
    record = F.from_json(F.col("value").cast("string"), "due_ms LONG")
    keyed = rows.select(F.col("key").cast("string").alias("key"), record.alias("record")).select("key", "record.*")
    fired = keyed.groupBy("key").transformWithState(Alarms(), "due_ms LONG, called_ms LONG", "Update", "ProcessingTime")
    return fired.select(F.to_json(F.struct("due_ms", "called_ms")).alias("value"))


def print_tables(kafka: tailrace.EmbeddedKafka, plan: Plan) -> None:
    progress = Progress("timers", 2)
    with session() as spark:
        bench = Bench(kafka, spark)
        source, target = bench.topic(), bench.topic()
        with running(alarms(read_topic(spark, bench.servers, source)), bench.servers, target) as query:
            progress.step("starting")
            preload(bench.servers, source, 100, lambda number, _: record_of(number, time.time_ns() // 1_000_000))
            wait_for_rows(query, bench.servers, target, 200)
            progress.step(f"{plan.timers:,} timers")
            first_ms = time.time_ns() // 1_000_000 + 1000 * plan.begin_in_s
            step_ms = 1000 * plan.over_s / plan.timers
            due = [first_ms + round(number * step_ms) for number in range(plan.timers)]
            preload(bench.servers, source, plan.timers, lambda number, _: record_of(number, due[number]))
            wait_for_rows(query, bench.servers, target, 200 + 2 * plan.timers)
            fired = [one for one in results(bench.servers, target) if one[0] >= first_ms]
    assert sorted(due_ms for due_ms, _, _ in fired) == due
    called = [called_ms - due_ms for due_ms, called_ms, _ in fired]
    written = [written_ms - due_ms for due_ms, _, written_ms in fired]
    print_figures({"the processor is called": called, "its result is written": written})


def record_of(number: int, due_ms: int) -> tuple[bytes, bytes]:
    return str(number).encode(), json.dumps({"due_ms": due_ms}).encode()


def results(servers: str, topic: str) -> Iterator[tuple[int, int, int]]:
    """When a timer was due, when the processor was called, and when the result was written."""
    consumer = Consumer({"bootstrap.servers": servers, "group.id": "timers", "auto.offset.reset": "earliest"})
    try:
        consumer.subscribe([topic])
        left = rows_in(servers, topic)
        while left > 0:
            message = consumer.poll(1)
            if message is not None and message.error() is None:
                left -= 1
                value = json.loads(message.value() or b"{}")
                yield value["due_ms"], value["called_ms"], message.timestamp()[1]
    finally:
        consumer.close()


def print_figures(late_ms: dict[str, list[int]]) -> None:
    head = ["late by, ms, when", *PERCENTILES, "max", f"within {WITHIN_MS} ms"]
    print_table(head, ([name, *_figures(values)] for name, values in late_ms.items()))


def _figures(values: Sequence[int]) -> list[str]:
    ordered = sorted(values)
    shown = [str(ordered[min(len(ordered) - 1, int(share * len(ordered)))]) for share in PERCENTILES.values()]
    in_time = statistics.fmean(value <= WITHIN_MS for value in values)
    return [*shown, str(ordered[-1]), f"{in_time:.1%}"]


def method(plan: Plan) -> str:
    return (
        f"Method: {plan.timers:,} timers of as many keys, in {PARTITIONS} partitions, due one after the other over "
        f"{plan.over_s} s in an epoch of five minutes, all registered before the first is due; from then on no row "
        "arrives. The times are those of the machine's clock: when a timer was due, when the processor was called for "
        "it, and when Spark's producer took its result."
    )
