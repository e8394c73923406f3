"""A long epoch under load: heap, listeners and exchanges are at its end what they were at its beginning.

`TAILRACE_FLAT_MINUTES=15` makes the epoch longer; the figures are printed.
"""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from tailrace import EmbeddedKafka
from tests.helpers.heap import heap_bytes, listeners, live_instances
from tests.helpers.pipeline import Pipeline
from tests.helpers.two_streams import LIKE_REAL_TIME
from tests.helpers.waiting import let_pass, until

MINUTES = float(os.environ.get("TAILRACE_FLAT_MINUTES", "1"))
RATE = 400
SLACK = 20
HEAP_SLACK_BYTES = 30 << 20
EXCHANGE = "org.apache.spark.sql.tailrace.operators.python.WorkerExchange"


@pytest.fixture(scope="module")
def spark(new_session: Callable[..., SparkSession]) -> SparkSession:
    return new_session("local[12]", LIKE_REAL_TIME)


def sessions(pipeline: Pipeline) -> DataFrame:
    rows = pipeline.rows().withColumn("at", F.timestamp_millis(F.lit(1_000_000) + F.col("id")))
    found = rows.withWatermark("at", "10 seconds").groupBy(F.session_window("at", "5 seconds"), "key")
    return found.agg(F.max("id").alias("id")).select("id", "key")


def bad_records(pipeline: Pipeline) -> DataFrame:
    """One in ten."""

    def fail_if_bad(number: int) -> int:
        if number % 10 == 7:
            raise ValueError(f"cannot score {number}")
        return number

    return pipeline.rows().select(F.udf(fail_if_bad, "long")("id").alias("id"))


@contextmanager
def load(pipeline: Pipeline) -> Iterator[Callable[[], int]]:
    """Sends rows at a fixed rate; tells how many it has sent."""
    stop, sent = threading.Event(), 0
    producer = Producer({"bootstrap.servers": pipeline.servers, "linger.ms": 5})

    def run() -> None:
        nonlocal sent
        begun = time.monotonic()
        while not stop.wait(0.01):
            while sent < (time.monotonic() - begun) * RATE:
                key = f"k{sent % 10}"
                producer.produce(pipeline.input, json.dumps({"id": sent, "key": key}).encode(), key.encode())
                sent += 1
            producer.poll(0)
        producer.flush(20)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    try:
        yield lambda: sent
    finally:
        stop.set()
        thread.join()


def test_nothing_grows_in_a_long_epoch(spark: SparkSession, kafka: EmbeddedKafka, tmp_path: Path) -> None:
    pipelines = [Pipeline(spark, kafka, tmp_path / name) for name in ("sessions", "bad")]
    options = {"onError": "drop", "errorsPerMinute": "1000000"}
    with ExitStack() as stack:
        queries = [
            stack.enter_context(pipeline.running(rows(pipeline), epoch="2 hours", options=options))
            for pipeline, rows in zip(pipelines, (sessions, bad_records), strict=True)
        ]
        outs = [stack.enter_context(pipeline.collect()) for pipeline in pipelines]
        sent = [stack.enter_context(load(pipeline)) for pipeline in pipelines]

        def figures() -> dict[str, Any]:
            counts = live_instances(spark)
            figures = {
                "rows": [len(out.collected) for out in outs],
                "heap_mb": heap_bytes(spark) >> 20,
                "listeners": listeners(counts),
                "iterators": counts["org.rocksdb.RocksIterator"],
                "exchanges": counts[EXCHANGE],
            }
            print(figures, flush=True)
            return figures

        until(lambda: all(len(out.collected) > 2000 for out in outs), "warm queries")
        # Classes are loaded and code is compiled for a while.
        let_pass(20)
        measured = [figures()]
        for _ in range(2):
            let_pass(MINUTES * 60 / 2)
            assert [query.exception() for query in queries] == [None, None]
            measured.append(figures())
        first, last = measured[0], measured[-1]
        assert last["rows"][0] - first["rows"][0] > 100 * MINUTES * 60, "the load did not pass"
        assert all(count() > 0 for count in sent)
        for name in ("listeners", "iterators", "exchanges"):
            assert last[name] - first[name] <= SLACK, name
        assert last["heap_mb"] - first["heap_mb"] <= HEAP_SLACK_BYTES >> 20
        assert [query.lastProgress for query in queries] == [None, None], "an epoch ended"
