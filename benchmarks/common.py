"""What the benchmarks share: sessions, queries between two topics, load, and tables."""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

from confluent_kafka import Consumer, Producer, TopicPartition
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

import tailrace
from tailrace._process.paths import log_file
from tailrace._spark.logged_session import start_with_log
from tailrace.loadtest import LatencyReport, LoadTest
from tailrace.loadtest.records import Encode, encode_json

PARTITIONS = 2


@contextmanager
def session(**settings: str) -> Iterator[SparkSession]:
    builder = SparkSession.builder.master(f"local[{2 * PARTITIONS + 1}]").config("spark.driver.memory", "2g")
    defaults = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": str(PARTITIONS),
    }
    for key, value in (defaults | settings).items():
        builder = builder.config(key, value)
    spark = start_with_log(tailrace.configure(builder), log_file("bench-spark"))
    try:
        yield spark
    finally:
        spark.stop()
        # Before the broker stops: they would log errors about it forever.
        while _consumers:
            _consumers.popitem()[1].close()


class Bench:
    """A broker and a session, with fresh topics for every measurement."""

    def __init__(self, kafka: tailrace.EmbeddedKafka, spark: SparkSession) -> None:
        self.kafka = kafka
        self.spark = spark
        self.servers = kafka.bootstrap_servers
        self._topics = 0

    def topic(self) -> str:
        self._topics += 1
        name = f"topic-{self._topics}"
        self.kafka.create_topics([name], partitions=PARTITIONS)
        return name


def read(spark: SparkSession, servers: str, topic: str, **options: str) -> DataFrame:
    rows = spark.readStream.format("kafka").option("kafka.bootstrap.servers", servers).option("subscribe", topic)
    return rows.option("startingOffsets", "earliest").options(**options).load()


@contextmanager
def running(
    query: DataFrame, servers: str, topic: str, *, sink: str = "kafka", epoch: str | None = "5 minutes", **options: str
) -> Iterator[StreamingQuery]:
    """Run the query in Real-Time Mode, or without an epoch in micro-batch."""
    # A task that is being canceled may still write to it.
    with tempfile.TemporaryDirectory(prefix="tailrace-bench-", ignore_cleanup_errors=True) as checkpoint:
        writer = query.writeStream.format(sink).outputMode("update").option("kafka.bootstrap.servers", servers)
        writer = writer.option("topic", topic).options(**options).option("checkpointLocation", checkpoint)
        if epoch is not None:
            writer = writer.trigger(realTime=epoch)  # type: ignore[call-overload]
        started = writer.start()
        try:
            yield started
            raise_if_failed(started)
        finally:
            started.stop()


def latency(servers: str, source: str, target: str, *, rate: int, seconds: int, warm_up_s: int = 8) -> LatencyReport:
    with LoadTest(bootstrap_servers=servers, input_topic=source, output_topic=target, rate=rate) as load:
        load.wait_for_output(timeout_s=60, records=rate * warm_up_s)
        return load.measure(seconds=seconds)


def preload(servers: str, topic: str, rows: int, encode: Encode = encode_json) -> None:
    producer = Producer({"bootstrap.servers": servers, "linger.ms": 20})
    for number in range(rows):
        key, value = encode(number, number)
        while True:
            try:
                producer.produce(topic, key=key, value=value)
                break
            except BufferError:
                producer.poll(0.05)
    producer.flush()


def drain_rate(servers: str, topic: str, rows: int) -> float:
    """Rows per second that appear in the topic after the first tenth, when the query is warm."""
    begun: tuple[float, int] | None = None
    while True:
        written, now = rows_in(servers, topic), time.monotonic()
        if begun is None and written >= rows // 10:
            begun = now, written
        if begun is not None and written >= rows:
            return (written - begun[1]) / (now - begun[0])
        time.sleep(0.02)


def wait_for_rows(query: StreamingQuery, servers: str, topic: str, rows: int) -> None:
    """Wait until this many rows are in the topic. Raises if the query fails meanwhile."""
    while rows_in(servers, topic) < rows:
        raise_if_failed(query)
        time.sleep(0.05)


def raise_if_failed(query: StreamingQuery) -> None:
    if failure := query.exception():
        raise failure


_consumers: dict[str, Consumer] = {}


def rows_in(servers: str, topic: str) -> int:
    consumer = _consumers.setdefault(servers, Consumer({"bootstrap.servers": servers, "group.id": "bench"}))
    offsets = [consumer.get_watermark_offsets(TopicPartition(topic, number)) for number in range(PARTITIONS)]
    return int(sum(high for _, high in offsets))


def spread(values: Sequence[float]) -> str:
    return f"{statistics.median(values):.0f} [{min(values):.0f}–{max(values):.0f}]"


def print_table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    for row in (head, ["---"] * len(head), *rows):
        print(f"| {' | '.join(row)} |")
    print()
