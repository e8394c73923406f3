"""A query between two fresh topics."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

from tailrace import EmbeddedKafka
from tests.helpers.processors import counted
from tests.helpers.topics import Collector, new_topic, produce
from tests.helpers.waiting import until


class Pipeline:
    """A query from one fresh topic to another, started and stopped at will."""

    def __init__(
        self, spark: SparkSession, kafka: EmbeddedKafka | str, checkpoint: Path, *, input_partitions: int = 2
    ) -> None:
        self.spark = spark
        self.servers = kafka if isinstance(kafka, str) else kafka.bootstrap_servers
        self.checkpoint = checkpoint
        self.input = new_topic(self.servers, "in", partitions=input_partitions)
        self.output = new_topic(self.servers, "out")

    def raw(self) -> DataFrame:
        """The input topic's records; their value is JSON."""
        return (
            self.spark.readStream.format("kafka")
            .option("kafka.bootstrap.servers", self.servers)
            .option("subscribe", self.input)
            .option("startingOffsets", "earliest")
            .load()
            .select(F.col("value").cast("string").alias("value"))
        )

    def rows(self) -> DataFrame:
        return self.raw().select(F.from_json("value", "id LONG, key STRING, sent_ns LONG").alias("row")).select("row.*")

    def numbered(self) -> DataFrame:
        """What a load test sends."""
        return self.raw().select(F.from_json("value", "number LONG, intended_ns LONG").alias("row")).select("row.*")

    def counts(self) -> DataFrame:
        return (
            self.rows()
            .groupBy("key")
            .agg(F.count("*").alias("n"), F.max("id").alias("id"), F.max("sent_ns").alias("sent_ns"))
        )

    def processed_counts(self) -> DataFrame:
        """By a processor in Python."""
        return counted(self.rows())

    @contextmanager
    def running(
        self, query: DataFrame, *, epoch: str | None, sink: str = "kafka", options: dict[str, str] | None = None
    ) -> Iterator[StreamingQuery]:
        columns = [F.to_json(F.struct("*")).alias("value")]
        if sink != "kafka" and "key" in query.columns:
            columns.append(F.col("key"))
        writer = self.writer(query.select(*columns), sink).option("topic", self.output).options(**(options or {}))
        if epoch is not None:
            writer = writer.trigger(realTime=epoch)  # type: ignore[call-overload]
        started = writer.start()
        try:
            yield started
        finally:
            failure = started.exception()
            started.stop()
            if failure is not None:
                raise failure

    def wait_until_reading(self, query: StreamingQuery) -> None:
        """Until the epoch runs. What is sent before has been waiting for it, and then timers wait for it."""
        tracker = self.spark.sparkContext.statusTracker()
        until(lambda: query.exception() or tracker.getActiveStageIds(), "the epoch runs")

    def writer(self, query: DataFrame, sink: str) -> DataStreamWriter:
        """A writer without a topic and a trigger."""
        return (
            query.writeStream.format(sink)
            .option("kafka.bootstrap.servers", self.servers)
            .option("checkpointLocation", str(self.checkpoint))
            .outputMode("update")
        )

    def send(self, ids: range, *, keys: int = 10) -> None:
        produce(self.servers, self.input, ({"id": i, "key": f"k{i % keys}"} for i in ids))

    def use_fresh_output(self, checkpoint: Path) -> None:
        """Read the same input from the beginning, into a new output topic."""
        self.checkpoint = checkpoint
        self.output = new_topic(self.servers, "out")

    def collect(self) -> Collector:
        return Collector(self.servers, self.output)

    def log(self, name: str) -> list[int]:
        """The epochs in the offset log or the commit log."""
        folder = self.checkpoint / name
        return sorted(int(entry.name) for entry in folder.glob("*") if entry.name.isdigit()) if folder.exists() else []


def has_counted(out: Collector, rows: int) -> Callable[[], bool]:
    """True if `Pipeline.counts` has reached this many rows of a key."""
    return lambda: any(row["n"] == rows for row in out.rows())
