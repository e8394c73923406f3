"""Spark: the same PySpark queries for Tailrace, bare Real-Time Mode and micro-batch."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from ..job import Job

RECORD = "number LONG, intended_ns LONG, key STRING, id LONG, amount LONG, text STRING"
ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"


def run(job: Job, workload: Any) -> None:
    spark = _session(job)
    answers: DataFrame = workload.query(*(_read(spark, job, topic) for topic in job.input_topics))
    writer = (
        answers.writeStream.format("kafka")
        .options(**job.spark_options)
        .option("topic", job.output_topic)
        .option("checkpointLocation", str(Path(job.folder) / "checkpoint"))
        .outputMode(getattr(workload, "OUTPUT_MODE", "update"))
    )
    if job.system != "micro-batch":
        writer = writer.trigger(realTime=f"{job.checkpoint_s} seconds")  # type: ignore[call-overload]
    elif not job.has_state:
        # As Spark's guide advises for latency: batches do not wait for the log. It is for queries without state.
        interval_ms = str(1000 * job.checkpoint_s)
        writer = writer.option("asyncProgressTrackingEnabled", "true")
        writer = writer.option("asyncProgressTrackingCheckpointIntervalMs", interval_ms)
    writer.start().awaitTermination()


def parsed(rows: DataFrame) -> DataFrame:
    """The fields of the JSON records."""
    return rows.select(F.from_json(F.col("value").cast("string"), RECORD).alias("record")).select("record.*")


def event_time() -> Column:
    return F.timestamp_micros(F.expr("intended_ns div 1000")).alias("at")


def answers(rows: DataFrame, *columns: str | Column) -> DataFrame:
    """A Kafka record with these columns as JSON."""
    return rows.select("key", F.to_json(F.struct("number", "intended_ns", *columns)).alias("value"))


def _read(spark: SparkSession, job: Job, topic: str) -> DataFrame:
    return (
        spark.readStream.format("kafka")
        .options(**job.spark_options)
        .option("subscribe", topic)
        .option("startingOffsets", "earliest")
        .load()
    )


def _session(job: Job) -> SparkSession:
    # A real-time query needs all its tasks at once: readers and, behind the shuffle, as many again.
    slots = job.partitions * (len(job.input_topics) + 1) + 1
    builder: SparkSession.Builder = (
        SparkSession.builder.master(f"local[{slots}]")
        .appName(f"bench {job.workload}")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.memory", "2g")
        .config("spark.local.dir", job.folder)
        .config("spark.sql.shuffle.partitions", job.partitions)
        .config("spark.sql.streaming.stateStore.providerClass", ROCKSDB)
        .config("spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled", "true")
    )
    if job.system == "tailrace":
        from tailrace.session import configure

        return configure(builder).getOrCreate()
    return builder.config("spark.jars", ",".join(job.jars)).getOrCreate()
