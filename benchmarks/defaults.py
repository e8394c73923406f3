"""Measure the settings that `tailrace.configure` chooses, each against Spark's own default.

Prints a table in Markdown for docs/configuration.md. Every variant is run twice, in turn, so that a
slow moment of the machine does not fall on one of them alone. Epochs last five minutes: no epoch
boundary is inside a measured window.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import tailrace
from tailrace._paths import log_file
from tailrace._plugin.gateway import send_jvm_output_to
from tailrace.demo.report import machine
from tailrace.harness import LatencyReport, LoadTest

PARTITIONS = 2
FLUSH_WAIT = "spark.shuffle.streaming.networkBufferMaxWaitTimeMs"


@dataclass(frozen=True)
class Variant:
    name: str
    stateful: bool = False
    conf: dict[str, str] = field(default_factory=dict)
    source: dict[str, str] = field(default_factory=dict)
    sink: dict[str, str] = field(default_factory=dict)


VARIANTS = (
    Variant("aggregation, flush wait 50 ms (Spark)", stateful=True, conf={FLUSH_WAIT: "50"}),
    Variant("aggregation, flush wait 5 ms (Tailrace)", stateful=True, conf={FLUSH_WAIT: "5"}),
    Variant("aggregation, flush wait 1 ms", stateful=True, conf={FLUSH_WAIT: "1"}),
    Variant("stateless, Kafka's own settings", conf={}),
    Variant("stateless, source `fetch.max.wait.ms` 500 → 10", source={"kafka.fetch.max.wait.ms": "10"}),
    Variant("stateless, sink `linger.ms` 0 → 5", sink={"kafka.linger.ms": "5"}),
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rate", type=int, default=200)
    parser.add_argument("--seconds", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=2)
    arguments = parser.parse_args()
    reports: dict[str, list[LatencyReport]] = {variant.name: [] for variant in VARIANTS}
    with tailrace.EmbeddedKafka() as kafka:
        for turn in range(arguments.rounds):
            for position, variant in enumerate(VARIANTS):
                topics = f"in-{turn}-{position}", f"out-{turn}-{position}"
                kafka.create_topics(topics, partitions=PARTITIONS)
                with pipeline(variant, kafka.bootstrap_servers, *topics):
                    report = measure(kafka.bootstrap_servers, topics, arguments.rate, arguments.seconds)
                reports[variant.name].append(report)
    print(f"{arguments.rate} rows/s, {arguments.rounds} × {arguments.seconds} s, {machine()}\n")
    print("| variant | p50 ms | p90 ms | p99 ms | p99.9 ms | max ms |\n|---|---|---|---|---|---|")
    for name, measured in reports.items():
        columns = zip(*(report.percentiles().values() for report in measured), strict=True)
        print(f"| {name} | {' | '.join(' / '.join(f'{value:.1f}' for value in column) for column in columns)} |")


def measure(servers: str, topics: tuple[str, str], rate: int, seconds: int) -> LatencyReport:
    with LoadTest(bootstrap_servers=servers, input_topic=topics[0], output_topic=topics[1], rate=rate) as load:
        load.wait_for_output(timeout_s=60, records=rate * 8)
        return load.measure(seconds=seconds)


@contextmanager
def pipeline(variant: Variant, servers: str, source: str, target: str) -> Iterator[None]:
    builder = SparkSession.builder.master(f"local[{2 * PARTITIONS + 1}]").config("spark.ui.enabled", "false")
    builder = builder.config("spark.sql.shuffle.partitions", PARTITIONS).config("spark.driver.memory", "2g")
    builder = tailrace.configure(builder.config("spark.ui.showConsoleProgress", "false").config(map={**variant.conf}))
    send_jvm_output_to(log_file("bench-spark"), builder)
    spark = builder.getOrCreate()
    rows = spark.readStream.format("kafka").option("kafka.bootstrap.servers", servers).option("subscribe", source)
    stream = rows.option("startingOffsets", "earliest").options(**variant.source).load()
    with tempfile.TemporaryDirectory(prefix="tailrace-bench-") as checkpoint:
        writer = query(stream, variant.stateful).writeStream.format("kafka").outputMode("update")
        writer = writer.option("kafka.bootstrap.servers", servers).option("topic", target).options(**variant.sink)
        started = writer.option("checkpointLocation", checkpoint).trigger(realTime="5 minutes").start()  # type: ignore[call-overload]
        try:
            yield
        finally:
            started.stop()
            spark.stop()


def query(stream: DataFrame, stateful: bool) -> DataFrame:
    if not stateful:
        return stream.select("key", "value")
    record = F.from_json(F.col("value").cast("string"), "number LONG, intended_ns LONG")
    newest = stream.select("key", record.alias("record")).groupBy("key").agg(F.max("record").alias("newest"))
    return newest.select("key", F.to_json("newest").alias("value"))


if __name__ == "__main__":
    main()
