"""What the benchmarks of the sinks for stores have in common: the rows, the load, and latency beside `kafka`."""

from __future__ import annotations

import argparse
import json
import statistics
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

from confluent_kafka import Producer
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery

import tailrace
from benchmarks.common import Bench, print_table, raise_if_failed, read, running
from tailrace.results import Distribution

WARM_UP_S = 8

Writing = Callable[[DataFrame], AbstractContextManager[StreamingQuery]]


def arguments(description: str | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=description.splitlines()[0] if description else None)
    parser.add_argument("--rates", type=int, nargs="+", default=[200, 1000])
    parser.add_argument("--seconds", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--rows", type=int, default=500_000)
    parser.add_argument("--only", choices=("latency", "throughput"))
    return parser.parse_args()


def parsed(bench: Bench, topic: str) -> DataFrame:
    text = F.col("value").cast("string")
    rows = read(bench.spark, bench.servers, topic).select(F.from_json(text, "number LONG").alias("row"))
    return rows.select(
        F.col("row.number").alias("id"), (F.col("row.number") * 3).alias("amount"), F.lit("paid").alias("note")
    )


@contextmanager
def load(bench: Bench, topic: str, rate: int) -> Iterator[None]:
    stop = threading.Event()

    def send() -> None:
        producer = Producer({"bootstrap.servers": bench.servers, "linger.ms": 0})
        begun, number = time.monotonic(), 0
        while not stop.is_set():
            due = int((time.monotonic() - begun) * rate)
            while number < due:
                producer.produce(topic, key=str(number).encode(), value=json.dumps({"number": number}).encode())
                number += 1
            producer.poll(0)
            time.sleep(0.5 / rate)
        producer.flush()

    thread = threading.Thread(target=send)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def measured(query: StreamingQuery, seconds: int) -> tuple[Distribution, Distribution]:
    time.sleep(WARM_UP_S)
    with tailrace.measure(query) as measurement:
        time.sleep(seconds)
    whole, acknowledged = (measurement.latency.figure(name) for name in ("end_to_end", "acknowledgement"))
    assert whole is not None
    assert acknowledged is not None
    return whole, acknowledged


def print_latency(bench: Bench, sink: str, writing: Writing, rate: int, options: argparse.Namespace) -> None:
    """`kafka` and the sink take turns."""
    found: dict[str, list[tuple[Distribution, Distribution]]] = {"kafka": [], sink: []}
    for _ in range(options.rounds):
        source, target = bench.topic(), bench.topic()
        as_json = parsed(bench, source).select(F.to_json(F.struct("*")).alias("value"))
        with running(as_json, bench.servers, target) as query, load(bench, source, rate):
            found["kafka"].append(measured(query, options.seconds))
        source = bench.topic()
        with writing(parsed(bench, source)) as query, load(bench, source, rate):
            found[sink].append(measured(query, options.seconds))
    print(f"{rate} rows/s, {options.rounds} × {options.seconds} s, medians over the rounds:\n")
    print_table(
        ["sink", "end to end p50 ms", "p99 ms", "acknowledgement p50 ms", "p99 ms"],
        (
            [f"`{name}`"]
            + [
                f"{statistics.median(getattr(pair[part], percentile) for pair in pairs):.1f}"
                for part in (0, 1)
                for percentile in ("p50_ms", "p99_ms")
            ]
            for name, pairs in found.items()
        ),
    )


def rows_per_second(query: StreamingQuery, written: Callable[[], int], rows: int) -> float:
    """After the first tenth, when the query is warm."""
    begun: tuple[float, int] | None = None
    while True:
        raise_if_failed(query)
        count, now = written(), time.monotonic()
        if begun is None and count >= rows // 10:
            begun = now, count
        if begun is not None and count >= rows:
            return (count - begun[1]) / (now - begun[0])
        time.sleep(0.1)
