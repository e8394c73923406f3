"""Measure the settings that `tailrace.configure` chooses, each against Spark's own default.

Prints a table in Markdown for docs/configuration.md. Every variant is run twice, in turn, so that a
slow moment of the machine does not fall on one of them alone. Epochs last five minutes: no epoch
boundary is inside a measured window.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from confluent_kafka import Consumer, Producer, TopicPartition
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import tailrace
from tailrace._logged_session import start_with_log
from tailrace._paths import log_file
from tailrace.harness import LatencyReport, LoadTest
from tailrace.harness.machine import describe_machine
from tailrace.harness.records import encode_json

PARTITIONS = 2
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
                    latencies[variant.name].append(measure(servers, topics, arguments.rate, arguments.seconds))
        kafka.create_topics(["preloaded"], partitions=PARTITIONS)
        preload(servers, "preloaded", arguments.rows)
        for turn in range(arguments.rounds):
            for position, variant in enumerate(FLUSH_WAITS):
                target = f"drained-{turn}-{position}"
                kafka.create_topics([target], partitions=PARTITIONS)
                with pipeline(variant, servers, "preloaded", target):
                    throughputs[variant.name].append(drain_rate(servers, target, arguments.rows))
    print(f"{arguments.rate} rows/s, {arguments.rounds} × {arguments.seconds} s, {describe_machine()}\n")
    print("| variant | p50 ms | p90 ms | p99 ms | p99.9 ms | max ms |\n|---|---|---|---|---|---|")
    for name, measured in latencies.items():
        columns = zip(*(report.percentiles().values() for report in measured), strict=True)
        print(f"| {name} | {' | '.join(' / '.join(f'{value:.1f}' for value in column) for column in columns)} |")
    print(f"\nThroughput over {arguments.rows:,} preloaded rows, from the first tenth to the last row:\n")
    print("| variant | rows/s |\n|---|---|")
    for name, rates in throughputs.items():
        print(f"| {name} | {' / '.join(f'{rate:,.0f}' for rate in rates)} |")


def measure(servers: str, topics: tuple[str, str], rate: int, seconds: int) -> LatencyReport:
    with LoadTest(bootstrap_servers=servers, input_topic=topics[0], output_topic=topics[1], rate=rate) as load:
        load.wait_for_output(timeout_s=60, records=rate * 8)
        return load.measure(seconds=seconds)


def preload(servers: str, topic: str, rows: int) -> None:
    producer = Producer({"bootstrap.servers": servers, "linger.ms": 20})
    for number in range(rows):
        key, value = encode_json(number, number)
        while True:
            try:
                producer.produce(topic, key=key, value=value)
                break
            except BufferError:
                producer.poll(0.05)
    producer.flush()


def drain_rate(servers: str, topic: str, rows: int) -> float:
    """Rows a second that appear in the topic, after the first tenth of them, when the query is warm."""
    consumer = Consumer({"bootstrap.servers": servers, "group.id": "drain"})
    begun: tuple[float, int] | None = None
    while True:
        offsets = [consumer.get_watermark_offsets(TopicPartition(topic, number)) for number in range(PARTITIONS)]
        written, now = sum(high for _, high in offsets), time.monotonic()
        if begun is None and written >= rows // 10:
            begun = now, written
        if begun is not None and written >= rows:
            consumer.close()
            return (written - begun[1]) / (now - begun[0])
        time.sleep(0.02)


@contextmanager
def pipeline(variant: Variant, servers: str, source: str, target: str) -> Iterator[None]:
    builder = SparkSession.builder.master(f"local[{2 * PARTITIONS + 1}]").config("spark.ui.enabled", "false")
    builder = builder.config("spark.sql.shuffle.partitions", PARTITIONS).config("spark.driver.memory", "2g")
    # Named in every variant: a JVM remembers the settings of the session that started it.
    builder = builder.config("spark.ui.showConsoleProgress", "false").config(FLUSH_WAIT, variant.flush_wait_ms)
    spark = start_with_log(tailrace.configure(builder), log_file("bench-spark"))
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
