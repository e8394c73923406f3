"""What the tasks of `tailrace-kafka` leave behind when they are ended: no open transaction, and no producer."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.functions import udf
from pyspark.sql.streaming.query import StreamingQuery

from tailrace import EmbeddedKafka
from tests.helpers.pipeline import Pipeline
from tests.helpers.topics import all_messages
from tests.helpers.waiting import until

EPOCH = "10 minutes"
# Much longer than any wait of these tests: only then do the brokers abort a transaction that its producer left open.
TIMEOUT_MS = "800000"


def start(pipeline: Pipeline, rows: DataFrame, *, epoch: str = EPOCH, interval: str = "10 min") -> StreamingQuery:
    writer = pipeline.writer(rows, "tailrace-kafka").option("topic", pipeline.output)
    writer = writer.option("transactionInterval", interval).option("kafka.transaction.timeout.ms", TIMEOUT_MS)
    return writer.trigger(realTime=epoch).start()  # type: ignore[call-overload,no-any-return]


def fails_at(number: int) -> Callable[[str], str]:
    def fail(value: str) -> str:
        if json.loads(value)["id"] == number:
            raise ValueError("on purpose")
        return value

    return fail


def has_written(pipeline: Pipeline, number: int) -> None:
    """In a transaction that is still open."""
    until(lambda: len(all_messages(pipeline.servers, pipeline.output)) >= number, "rows")
    assert all_messages(pipeline.servers, pipeline.output, committed=True) == []


def committed_values(pipeline: Pipeline) -> list[Any]:
    return [message.value() for message in all_messages(pipeline.servers, pipeline.output, committed=True)]


def write_to_each_partition(pipeline: Pipeline) -> None:
    producer = Producer({"bootstrap.servers": pipeline.servers, "linger.ms": 0})
    for partition in range(2):
        producer.produce(pipeline.output, b"another", partition=partition)
    assert producer.flush(20) == 0


@pytest.mark.parametrize("end", ["stop", "failure"])
def test_consumers_of_committed_records_do_not_wait_for_a_query_that_has_ended(pipeline: Pipeline, end: str) -> None:
    rows = pipeline.raw().select(udf(fails_at(20))("value").alias("value"))
    query = start(pipeline, rows)
    pipeline.send(range(20))
    has_written(pipeline, 20)
    write_to_each_partition(pipeline)
    # The rows may all be in one of the two partitions.
    assert len(committed_values(pipeline)) < 2
    if end == "stop":
        query.stop()
    else:
        pipeline.send(range(20, 21))
        until(query.exception, "the failure")
    until(lambda: committed_values(pipeline) == [b"another"] * 2, "the record behind the rows")


def test_a_task_that_cannot_begin_gives_its_producer_back(
    new_session: Callable[..., SparkSession], kafka: EmbeddedKafka, checkpoint: Path
) -> None:
    spark = new_session("local[4]")
    pipeline = Pipeline(spark, kafka, checkpoint, input_partitions=1)
    query = start(pipeline, pipeline.raw().select(F.col("value")), epoch="5 seconds", interval="20 ms")

    def threads() -> list[str]:
        names = [thread.getName() for thread in spark._jvm.Thread.getAllStackTraces().keySet()]  # type: ignore[union-attr]
        return [name for name in names if "producer" in name and str(query.id) in name]

    until(threads, "a producer")
    until(lambda: pipeline.log("commits"), "an epoch")
    # The next task cannot tell whether it may write.
    (checkpoint / "tailrace-sink" / "run").write_text("v9\n{}")
    until(query.exception, "the failure")
    until(lambda: not threads(), "the producer's end")
