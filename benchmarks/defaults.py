"""Measure the settings that `tailrace.configure` chooses, each against Spark's own default.

Prints a table in Markdown for docs/benchmarks/defaults.md. Every variant runs twice, in turns, so a slow moment of the
machine does not affect only one of them. Epochs last five minutes, so no epoch boundary is inside a measured window.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

import tailrace
from benchmarks.common import PARTITIONS, drain_rate, latency, preload, print_table, read, running, session
from tailrace.loadtest import LatencyReport
from tailrace.loadtest.machine import describe_machine

FLUSH_WAIT = "spark.shuffle.streaming.networkBufferMaxWaitTimeMs"


@dataclass(frozen=True)
class Variant:
    name: str
    stateful: bool = False
    flush_wait_ms: str = "1"
    source: dict[str, str] = field(default_factory=dict)
    sink: dict[str, str] = field(default_factory=dict)


FLUSH_WAITS = (
    Variant("aggregation, flush wait 50 ms (Spark's default)", stateful=True, flush_wait_ms="50"),
    Variant("aggregation, flush wait 5 ms", stateful=True, flush_wait_ms="5"),
    Variant("aggregation, flush wait 1 ms (Tailrace's)", stateful=True, flush_wait_ms="1"),
)
KAFKA_CLIENTS = (
    Variant("stateless, Kafka's own settings"),
    Variant("stateless, source `fetch.max.wait.ms` 500 → 10", source={"kafka.fetch.max.wait.ms": "10"}),
    Variant("stateless, sink `linger.ms` 0 → 5", sink={"kafka.linger.ms": "5"}),
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rate", type=int, default=200)
    parser.add_argument("--seconds", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--rows", type=int, default=400_000, help="preloaded rows for the throughput")
    arguments = parser.parse_args()
    latencies: dict[str, list[LatencyReport]] = defaultdict(list)
    throughputs: dict[str, list[float]] = defaultdict(list)
    with tailrace.EmbeddedKafka() as kafka:
        servers = kafka.bootstrap_servers
        for turn in range(arguments.rounds):
            for position, variant in enumerate((*FLUSH_WAITS, *KAFKA_CLIENTS)):
                topics = f"in-{turn}-{position}", f"out-{turn}-{position}"
                kafka.create_topics(topics, partitions=PARTITIONS)
                with pipeline(variant, servers, *topics):
                    report = latency(servers, *topics, rate=arguments.rate, seconds=arguments.seconds)
                    latencies[variant.name].append(report)
        kafka.create_topics(["preloaded"], partitions=PARTITIONS)
        preload(servers, "preloaded", arguments.rows)
        for turn in range(arguments.rounds):
            for position, variant in enumerate(FLUSH_WAITS):
                target = f"drained-{turn}-{position}"
                kafka.create_topics([target], partitions=PARTITIONS)
                with pipeline(variant, servers, "preloaded", target):
                    throughputs[variant.name].append(drain_rate(servers, target, arguments.rows))
    print(f"{arguments.rate} rows/s, {arguments.rounds} × {arguments.seconds} s, {describe_machine()}\n")
    percentiles = {name: [report.percentiles().values() for report in measured] for name, measured in latencies.items()}
    print_table(
        ["variant", "p50 ms", "p90 ms", "p99 ms", "p99.9 ms", "max ms"],
        (
            [name, *(" / ".join(f"{value:.1f}" for value in column) for column in zip(*measured, strict=True))]
            for name, measured in percentiles.items()
        ),
    )
    print(f"Throughput over {arguments.rows:,} preloaded rows, from the first tenth to the last row:\n")
    print_table(
        ["variant", "rows/s"],
        ([name, " / ".join(f"{rate:,.0f}" for rate in rates)] for name, rates in throughputs.items()),
    )


@contextmanager
def pipeline(variant: Variant, servers: str, source: str, target: str) -> Iterator[None]:
    # Named in every variant: a JVM remembers the settings of the session that started it.
    with session(**{FLUSH_WAIT: variant.flush_wait_ms}) as spark:
        stream = read(spark, servers, source, **variant.source)
        with running(query(stream, variant.stateful), servers, target, **variant.sink):
            yield


def query(stream: DataFrame, stateful: bool) -> DataFrame:
    if not stateful:
        return stream.select("key", "value")
    record = F.from_json(F.col("value").cast("string"), "number LONG, intended_ns LONG")
    newest = stream.select("key", record.alias("record")).groupBy("key").agg(F.max("record").alias("newest"))
    return newest.select("key", F.to_json("newest").alias("value"))


if __name__ == "__main__":
    main()
