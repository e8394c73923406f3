"""Measure the cost of writing each row exactly once, and of a drain with a restart.

Prints the tables of docs/benchmarks/exactly-once.md.
Latency: Spark's Kafka sink, `tailrace-kafka`, and `tailrace-kafka` with transactions of 20 ms take turns several times
in one session, so a slow moment of the machine does not affect only one of them. The consumer reads committed records.
Epochs last five minutes, so no epoch boundary is inside a measured window.
Drain: a query under load is drained and restarted at once, all within one measured window.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import threading
import time
from collections import defaultdict
from dataclasses import dataclass, field

from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery

import tailrace
from benchmarks.common import Bench, latency, print_table, read, running, session
from benchmarks.defaults import query
from tailrace.loadtest import LatencyReport, LoadTest
from tailrace.loadtest.machine import describe_machine

MOST_PLAIN_RATIO = 1.2
MOST_TRANSACTIONS_MS = 60


@dataclass(frozen=True)
class Sink:
    name: str
    format: str
    options: dict[str, str] = field(default_factory=dict, hash=False)


PLAIN = Sink("`kafka`", "kafka")
ONCE = Sink("`tailrace-kafka`", "tailrace-kafka")
IN_TRANSACTIONS = Sink("`tailrace-kafka`, 20 ms transactions", "tailrace-kafka", {"transactionInterval": "20 ms"})
SINKS = (PLAIN, ONCE, IN_TRANSACTIONS)
Measured = dict[Sink, list[LatencyReport]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rate", type=int, default=200)
    parser.add_argument("--seconds", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--drain-rate", type=int, default=1000)
    parser.add_argument("--only", choices=("latency", "drain"))
    arguments = parser.parse_args()
    with tailrace.EmbeddedKafka() as kafka, session() as spark:
        bench = Bench(kafka, spark)
        if arguments.only != "drain":
            print(f"{arguments.rate} rows/s, {arguments.rounds} × {arguments.seconds} s, {describe_machine()}\n")
            for stateful in (False, True):
                print_latency("aggregation" if stateful else "stateless", measure(bench, stateful, arguments))
        if arguments.only != "latency":
            print_drains(bench, arguments.drain_rate)


def measure(bench: Bench, stateful: bool, arguments: argparse.Namespace) -> Measured:
    measured: Measured = defaultdict(list)
    for _ in range(arguments.rounds):
        for sink in SINKS:
            source, target = bench.topic(), bench.topic()
            rows = query(read(bench.spark, bench.servers, source), stateful)
            with running(rows, bench.servers, target, sink=sink.format, **sink.options):
                report = latency(bench.servers, source, target, rate=arguments.rate, seconds=arguments.seconds)
                measured[sink].append(report)
    return measured


def print_latency(name: str, measured: Measured) -> None:
    """Medians over the rounds."""
    table = {sink: percentiles(reports) for sink, reports in measured.items()}
    print_table(
        [name, *(label.replace("_", " ") for label in table[PLAIN])],
        ([sink.name, *(f"{value:.1f}" for value in values.values())] for sink, values in table.items()),
    )
    for label in ("p50_ms", "p99_ms"):
        ratio = table[ONCE][label] / table[PLAIN][label]
        print(f"{name}: {label[:3]} {ratio:.2f} times the plain sink's: {verdict(ratio <= MOST_PLAIN_RATIO)}")
    more = table[IN_TRANSACTIONS]["p99_ms"] - table[PLAIN]["p99_ms"]
    print(f"{name}: p99 with transactions {more:+.0f} ms: {verdict(more <= MOST_TRANSACTIONS_MS)}\n")


def percentiles(reports: list[LatencyReport]) -> dict[str, float]:
    each = [report.percentiles() for report in reports]
    return {label: statistics.median(one[label] for one in each) for label in each[0]}


def verdict(holds: bool) -> str:
    return "holds" if holds else "MISSED"


def print_drains(bench: Bench, rate: int) -> None:
    print(f"Drain and restart at {rate} rows/s, the plain Kafka sink:\n")
    rows = []
    for stateful in (False, True):
        drained_s, report = drain_under_load(bench, stateful, rate)
        pause_s = max(silence.ms for silence in report.silences) / 1000
        counts = [f"{report.expected:,}", str(report.lost), str(report.duplicates)]
        rows.append(["aggregation" if stateful else "stateless", f"{drained_s:.1f}", f"{pause_s:.1f}", *counts])
    print_table(["query", "drain s", "longest pause of the output s", "sent", "lost", "duplicates"], rows)


def drain_under_load(bench: Bench, stateful: bool, rate: int) -> tuple[float, LatencyReport]:
    source, target = bench.topic(), bench.topic()
    rows = query(read(bench.spark, bench.servers, source), stateful)
    load = LoadTest(bootstrap_servers=bench.servers, input_topic=source, output_topic=target, rate=rate)
    with tempfile.TemporaryDirectory(prefix="tailrace-bench-", ignore_cleanup_errors=True) as checkpoint, load:
        started = start(rows, bench.servers, target, checkpoint)
        load.wait_for_output(timeout_s=60, records=rate * 8)
        reports: list[LatencyReport] = []
        measuring = threading.Thread(target=lambda: reports.append(load.measure(seconds=20)))
        measuring.start()
        time.sleep(5)
        drained = tailrace.drain(started)
        again = start(rows, bench.servers, target, checkpoint)
        measuring.join()
        again.stop()
        return drained.seconds, reports[0]


def start(rows: DataFrame, servers: str, topic: str, checkpoint: str) -> StreamingQuery:
    writer = rows.writeStream.format("kafka").outputMode("update").option("kafka.bootstrap.servers", servers)
    writer = writer.option("topic", topic).option("checkpointLocation", checkpoint)
    return writer.trigger(realTime="5 minutes").start()  # type: ignore[call-overload,no-any-return]


if __name__ == "__main__":
    main()
