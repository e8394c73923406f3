"""Measure Python functions in Real-Time Mode against the same query without one, and against micro-batch.

Prints the tables of docs/benchmarks/python.md.
Compared variants run in turns within one run, so a slow moment of the machine does not affect only one of them.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable, Iterator
from itertools import pairwise

import pandas as pd
from confluent_kafka import Consumer, TopicPartition
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.pandas.functions import pandas_udf
from pyspark.sql.types import StringType

import tailrace
from benchmarks.common import (
    PARTITIONS,
    Bench,
    drain_rate,
    latency,
    preload,
    print_table,
    read,
    rows_in,
    running,
    session,
)
from benchmarks.processes import heap_mb, python_workers, resident_mb
from tailrace._process.paths import log_file
from tailrace.loadtest import LatencyReport, LoadTest
from tailrace.loadtest.machine import describe_machine

Query = Callable[[DataFrame], DataFrame]


def same(value: str) -> str:
    return value


def same_after_a_millisecond(value: str) -> str:
    time.sleep(0.001)
    return value


def same_series(values: pd.Series) -> pd.Series:
    return values


def same_frames(frames: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
    yield from frames


def called(function: Callable[..., object]) -> Query:
    return lambda rows: rows.select("key", function("value").alias("value"))  # type: ignore[attr-defined]


WITHOUT: Query = lambda rows: rows  # noqa: E731
ARROW = called(F.udf(same, StringType(), useArrow=True))
PICKLED = called(F.udf(same, StringType(), useArrow=False))
PANDAS = called(pandas_udf(same_series, StringType()))  # type: ignore[call-overload]
SLOW = called(F.udf(same_after_a_millisecond, StringType(), useArrow=True))
MAP: Query = lambda rows: rows.mapInPandas(same_frames, "key BINARY, value STRING")  # noqa: E731

KINDS = {
    "no Python": WITHOUT,
    "`udf` (Arrow)": ARROW,
    "`udf` (pickled)": PICKLED,
    "`pandas_udf`": PANDAS,
    "`mapInPandas`": MAP,
}


class PythonBench(Bench):
    """Queries with and without Python."""

    def query(self, kind: Query, source: str) -> DataFrame:
        rows = read(self.spark, self.servers, source)
        return kind(rows.select("key", F.col("value").cast("string").alias("value")))

    def latency(self, kind: Query, *, rate: int, seconds: int) -> LatencyReport:
        source, target = self.topic(), self.topic()
        with running(self.query(kind, source), self.servers, target):
            return latency(self.servers, source, target, rate=rate, seconds=seconds)

    def throughput(self, kind: Query, source: str, rows: int, *, real_time: bool) -> float:
        target = self.topic()
        with running(self.query(kind, source), self.servers, target, epoch="5 minutes" if real_time else None):
            return drain_rate(self.servers, target, rows)

    def pauses(self, kind: Query, *, epochs: int) -> list[float]:
        """The longest pause in the output at each epoch boundary, in milliseconds."""
        source, target = self.topic(), self.topic()
        with (
            running(self.query(kind, source), self.servers, target, epoch="5 seconds"),
            LoadTest(bootstrap_servers=self.servers, input_topic=source, output_topic=target, rate=200) as load,
        ):
            # Skip the first boundaries, when the JVM is cold.
            load.wait_for_output(timeout_s=60, records=200 * 5 * 4)
            load.wait_for_output(timeout_s=60 + 6 * epochs, records=200 * 5 * (4 + epochs))
        return longest_pauses(self.servers, target, epochs)


def longest_pauses(servers: str, topic: str, count: int) -> list[float]:
    """The pauses between output records, by the broker's clock. Those at boundaries are the longest by far."""
    consumer = Consumer({"bootstrap.servers": servers, "group.id": topic, "enable.auto.commit": False})
    consumer.assign([TopicPartition(topic, number, 0) for number in range(PARTITIONS)])
    total = rows_in(servers, topic)
    times: list[int] = []
    while len(times) < total:
        times += [message.timestamp()[1] for message in consumer.consume(1000, 1.0)]
    consumer.close()
    times = sorted(times)[-200 * 5 * count :]
    return sorted((float(after - before) for before, after in pairwise(times)), reverse=True)[:count]


def print_latencies(bench: PythonBench, rates: list[int], seconds: int, rounds: int) -> None:
    print(f"## Latency\n\n{rounds} × {seconds} s each, in turns; ratios to the query without Python\n")
    table = []
    for rate in rates:
        measured: dict[str, list[LatencyReport]] = {name: [] for name in KINDS}
        for _ in range(rounds):
            for name, kind in KINDS.items():
                measured[name].append(bench.latency(kind, rate=rate, seconds=seconds))
        base = {key: best(measured["no Python"], key) for key in ("p50_ms", "p99_ms")}
        for name, reports in measured.items():
            columns = zip(*(report.percentiles().values() for report in reports), strict=True)
            cells = [" / ".join(f"{value:.1f}" for value in column) for column in columns]
            ratios = [f"{best(reports, key) / base[key]:.2f}" for key in base]
            table.append([str(rate), name, *cells, *ratios])
    head = ["rows/s", "query", "p50 ms", "p90 ms", "p99 ms", "p99.9 ms", "max ms", "p50 ratio", "p99 ratio"]
    print_table(head, table)


def best(reports: list[LatencyReport], key: str) -> float:
    """The median of the rounds: on a shared machine, single rounds suffer from bursts of its neighbors."""
    return float(statistics.median(getattr(report, key) for report in reports))


def print_throughputs(bench: PythonBench, rows: int, rounds: int) -> None:
    print(f"## Throughput\n\n{rows:,} preloaded rows, from the first tenth to the last, rows/s\n")
    source = bench.topic()
    preload(bench.servers, source, rows)
    table = []
    for name, kind in KINDS.items():
        rates = {
            mode: [bench.throughput(kind, source, rows, real_time=mode) for _ in range(rounds)]
            for mode in (True, False)
        }
        ratio = statistics.median(rates[True]) / statistics.median(rates[False])
        table.append(
            [name, *(" / ".join(f"{rate:,.0f}" for rate in rates[mode]) for mode in (True, False)), f"{ratio:.2f}"]
        )
    print_table(["query", "Real-Time Mode", "micro-batch", "ratio"], table)


def print_slow_function(bench: PythonBench, rows: int) -> None:
    print(f"## A function that sleeps for 1 ms\n\n{rows:,} preloaded rows on {PARTITIONS} partitions\n")
    source = bench.topic()
    preload(bench.servers, source, rows)
    begun = time.perf_counter()
    for _ in range(1000):
        same_after_a_millisecond("")
    possible = PARTITIONS * 1000 / (time.perf_counter() - begun)
    rate = bench.throughput(SLOW, source, rows, real_time=True)
    print_table(
        ["possible with one worker per partition", "measured", "ratio"],
        [[f"{possible:,.0f} rows/s", f"{rate:,.0f} rows/s", f"{rate / possible:.2f}"]],
    )


def print_pauses(bench: PythonBench, epochs: int, rounds: int) -> None:
    print(f"## Epoch boundary\n\nlongest pause of the output, {rounds} × {epochs} boundaries of 5 s epochs, in ms\n")
    pauses: dict[str, list[float]] = {"no Python": [], "`udf` (Arrow)": [], "`pandas_udf`": []}
    for _ in range(rounds):
        for name in pauses:
            pauses[name] += bench.pauses(KINDS[name], epochs=epochs)
    base = statistics.median(pauses["no Python"])
    print_table(
        ["query", "median", "min", "max", "ratio"],
        (
            [
                name,
                f"{statistics.median(found):.0f}",
                f"{min(found):.0f}",
                f"{max(found):.0f}",
                f"{statistics.median(found) / base:.2f}",
            ]
            for name, found in pauses.items()
        ),
    )


def print_memory(bench: PythonBench, minutes: float) -> None:
    print(f"## Memory under back-pressure\n\n1 ms a row, {minutes:g} minutes, more rows than the function can take\n")
    source, target = bench.topic(), bench.topic()
    with running(bench.query(SLOW, source), bench.servers, target):
        preload(bench.servers, source, int(minutes * 60 * 1100 * PARTITIONS))
        table = []
        begun = time.monotonic()
        for step in range(6):
            time.sleep(max(0.0, begun + step * minutes * 12 - time.monotonic()))
            heap = heap_mb(bench.spark)
            workers = sum(resident_mb(pid) for pid in python_workers())
            table.append(
                [
                    f"{(time.monotonic() - begun) / 60:.1f}",
                    f"{heap:.0f}",
                    f"{workers:.0f}",
                    f"{rows_in(bench.servers, target):,}",
                ]
            )
    print_table(["minute", "JVM heap after a collection, MB", "Python workers, MB", "rows out"], table)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--only", nargs="*", default=["latency", "throughput", "slow", "pauses", "memory"])
    parser.add_argument("--rates", type=int, nargs="*", default=[50, 200, 1000])
    parser.add_argument("--seconds", type=int, default=30)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--rows", type=int, default=1_000_000, help="preloaded rows for the throughput")
    parser.add_argument("--epochs", type=int, default=6)
    parser.add_argument("--minutes", type=float, default=10)
    arguments = parser.parse_args()
    print(f"{describe_machine()}; {PARTITIONS} partitions\n")
    with tailrace.EmbeddedKafka() as kafka, session() as spark:
        bench = PythonBench(kafka, spark)
        if "latency" in arguments.only:
            print_latencies(bench, arguments.rates, arguments.seconds, arguments.rounds)
        if "throughput" in arguments.only:
            print_throughputs(bench, arguments.rows, arguments.rounds)
        if "slow" in arguments.only:
            print_slow_function(bench, rows=30_000)
        if "pauses" in arguments.only:
            print_pauses(bench, arguments.epochs, arguments.rounds)
        if "memory" in arguments.only:
            print_memory(bench, arguments.minutes)
    print(f"Spark's log: {log_file('bench-spark')}")


if __name__ == "__main__":
    main()
