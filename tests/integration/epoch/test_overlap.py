"""Epochs overlap: the next one begins while the tasks of the one before still run, and nothing else changes."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pandas as pd
import pytest
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewPartitions
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.functions import udf
from pyspark.sql.streaming.query import StreamingQuery

import tailrace
from tests.helpers.overlapping import (
    EPOCH,
    OVERLAP_KEY,
    SHORT_EPOCHS,
    SOON_S,
    assert_continues,
    assert_gap_free,
    assert_in_order,
    boundaries,
    collected,
    is_parked,
    loaded,
    nothing_is_left,
    overlapped,
)
from tests.helpers.pipeline import Pipeline
from tests.helpers.topics import all_messages, new_topic
from tests.helpers.waiting import until

ALLOWLIST_KEY = "spark.sql.streaming.realTimeMode.allowlistCheck"


@pytest.fixture
def pipeline(pipeline: Pipeline) -> Pipeline:
    """With an output of one partition, which keeps the order in which rows are written."""
    pipeline.output = new_topic(pipeline.servers, "out", partitions=1)
    return pipeline


@pytest.fixture(scope="module")
def spark(new_session: Callable[..., SparkSession]) -> SparkSession:
    return new_session("local[8]", SHORT_EPOCHS)


def passed_on(pipeline: Pipeline) -> DataFrame:
    return pipeline.rows().where("id >= 0").withColumn("twice", F.col("id") * 2)


def exploded(pipeline: Pipeline) -> DataFrame:
    return pipeline.rows().select("id", "key", F.explode(F.array(F.lit(1))).alias("n"))


def joined(pipeline: Pipeline) -> DataFrame:
    table = pipeline.spark.createDataFrame([(f"k{number}", number) for number in range(10)], "key STRING, number INT")
    return pipeline.rows().join(F.broadcast(table), "key")


def of_two_sources(pipeline: Pipeline) -> DataFrame:
    other = (
        pipeline.spark.readStream.format("kafka")
        .option("kafka.bootstrap.servers", pipeline.servers)
        .option("subscribe", new_topic(pipeline.servers, "empty"))
        .load()
        .select(F.lit(-1).cast("long").alias("id"), F.col("value").cast("string").alias("key"))
    )
    return pipeline.rows().select("id", "key").union(other)


def through_python(pipeline: Pipeline) -> DataFrame:
    return pipeline.rows().withColumn("key", udf(lambda key: key + "!")("key"))


def through_a_generator(pipeline: Pipeline) -> DataFrame:
    def unchanged(batches: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
        for batch in batches:
            yield batch.assign(id=batch["id"])

    return pipeline.rows().select("id", "key").mapInPandas(unchanged, "id LONG, key STRING")


QUERIES = [
    passed_on,
    pytest.param(exploded, marks=pytest.mark.chaos),
    joined,
    of_two_sources,
    through_python,
    through_a_generator,
]


@pytest.mark.parametrize("boundaries", [5, pytest.param(20, marks=pytest.mark.chaos)])
@pytest.mark.parametrize("query_of", QUERIES)
def test_many_boundaries_lose_and_repeat_nothing(
    pipeline: Pipeline, query_of: Callable[[Pipeline], DataFrame], boundaries: int
) -> None:
    with (
        collected(pipeline) as out,
        loaded(pipeline) as load,
    ):
        with pipeline.running(query_of(pipeline), epoch=EPOCH) as query:
            until(lambda: overlapped(query) >= boundaries, "boundaries overlapped", within_s=SOON_S)
            load.stop()
            until(lambda: len(out.rows()) >= load.sent, "all rows are out")
            assert "OverlappedWrite" in query._jsq.explainInternal(False)
            tailrace.drain(query, timeout_s=SOON_S)
            assert_gap_free(query, pipeline)
        assert Counter(row["id"] for row in out.rows()) == Counter(range(load.sent))
        assert_in_order(pipeline, out.rows())


def test_a_stop_while_the_next_epoch_waits_leaves_nothing(pipeline: Pipeline) -> None:
    pipeline.send(range(20))
    with collected(pipeline) as out:
        with pipeline.running(pipeline.rows(), epoch="8 seconds") as query:
            until(lambda: is_parked(query), "the next epoch waits")
        until(lambda: nothing_is_left(pipeline.spark), "nothing is left")
        with pipeline.running(pipeline.rows(), epoch="10 minutes"):
            until(lambda: len(out.rows()) >= 40, "the next run reads what was not committed")


def test_a_drain_while_the_next_epoch_waits_repeats_nothing(pipeline: Pipeline) -> None:
    with (
        collected(pipeline) as out,
        loaded(pipeline) as load,
    ):
        for _ in range(2):
            with pipeline.running(pipeline.rows(), epoch="6 seconds") as query:
                until(lambda: is_parked(query), "the next epoch waits")
                drained = tailrace.drain(query, timeout_s=SOON_S)
                assert pipeline.log("commits")[-1] == drained.epoch
        load.stop()
        with pipeline.running(pipeline.rows(), epoch="10 minutes"):
            until(lambda: len(out.rows()) >= load.sent, "all rows are out")
        assert Counter(row["id"] for row in out.rows()) == Counter(range(load.sent))
    until(lambda: nothing_is_left(pipeline.spark), "nothing is left")


def test_a_failure_while_the_next_epoch_waits_fails_the_query(pipeline: Pipeline) -> None:
    broken = pipeline.rows().select(F.expr("1 div (id + 1)").alias("checked"), "id", "key")
    with (  # noqa: PT012
        pytest.raises(StreamingQueryException, match="DIVIDE_BY_ZERO"),
        pipeline.running(broken, epoch="8 seconds") as query,
    ):
        until(lambda: is_parked(query), "the next epoch waits")
        pipeline.send(range(-1, 0))
        query.awaitTermination(SOON_S)
    until(lambda: nothing_is_left(pipeline.spark), "nothing is left")


def test_a_new_partition_is_read_an_epoch_later(pipeline: Pipeline) -> None:
    with (
        collected(pipeline) as out,
        pipeline.running(pipeline.rows(), epoch=EPOCH) as query,
    ):
        until(lambda: overlapped(query) >= 2, "epochs overlap")
        admin = AdminClient({"bootstrap.servers": pipeline.servers})
        for added in admin.create_partitions([NewPartitions(pipeline.input, 4)]).values():
            added.result(SOON_S)
        pipeline.send(range(100), keys=40)
        until(lambda: len(out.rows()) >= 100, "rows of the new partitions too")
        so_far = overlapped(query)
        until(lambda: overlapped(query) > so_far + 2, "epochs overlap again")
        assert any(one.reason == "the source has new partitions" for one in boundaries(query))
        assert_gap_free(query, pipeline)
    assert Counter(row["id"] for row in out.rows()) == Counter(range(100))


def test_the_checkpoint_goes_to_sparks_own_epochs_and_back(pipeline: Pipeline) -> None:
    with (
        collected(pipeline) as out,
        loaded(pipeline) as load,
    ):
        for settings in ({}, {ALLOWLIST_KEY: "true"}, {OVERLAP_KEY: "off"}, {}):
            for key, value in settings.items():
                pipeline.spark.conf.set(key, value)
            try:
                with pipeline.running(pipeline.rows(), epoch=EPOCH) as query:
                    before = len(pipeline.log("commits"))
                    until(lambda: len(pipeline.log("commits")) > before + 3, "some epochs")  # noqa: B023
                    assert ("OverlappedWrite" in query._jsq.explainInternal(False)) == (not settings)
                    tailrace.drain(query, timeout_s=SOON_S)
                    assert_continues(pipeline)
            finally:
                # Not their defaults: those of Spark's differ from what Tailrace sets.
                pipeline.spark.conf.set(ALLOWLIST_KEY, "false")
                pipeline.spark.conf.set(OVERLAP_KEY, "auto")
        load.stop()
        with pipeline.running(pipeline.rows(), epoch="10 minutes"):
            until(lambda: len(out.rows()) >= load.sent, "all rows are out")
        assert Counter(row["id"] for row in out.rows()) == Counter(range(load.sent))
        assert_in_order(pipeline, out.rows())


def test_bad_records_are_skipped_across_boundaries(pipeline: Pipeline) -> None:
    dead = new_topic(pipeline.servers, "dead")
    checked = pipeline.rows().withColumn("checked", F.expr("1 div (id % 50 - 7)"))
    options = {"onError": "dead-letter", "deadLetterTopic": dead, "errorsPerMinute": "10000"}
    with (
        collected(pipeline) as out,
        loaded(pipeline) as load,
    ):
        with pipeline.running(checked, epoch=EPOCH, options=options) as query:
            until(lambda: overlapped(query) >= 3, "epochs overlap")
            load.stop()
            good = [number for number in range(load.sent) if number % 50 != 7]
            until(lambda: len(out.rows()) >= len(good), "all good rows are out")
            tailrace.drain(query, timeout_s=SOON_S)
        assert Counter(row["id"] for row in out.rows()) == Counter(good)
        assert len(all_messages(pipeline.servers, dead)) == load.sent - len(good)


def rows_of(query: StreamingQuery) -> list[int]:
    return [one.numInputRows for one in query.recentProgress]


def test_progress_counts_every_row_once(pipeline: Pipeline) -> None:
    with (
        loaded(pipeline) as load,
        pipeline.running(pipeline.rows(), epoch=EPOCH) as query,
    ):
        until(lambda: overlapped(query) >= 5, "epochs overlap")
        load.stop()
        until(lambda: sum(rows_of(query)) >= load.sent, "all rows are committed")
        progress: list[Any] = [json.loads(one.json) for one in query.recentProgress]
    assert sum(one["numInputRows"] for one in progress) == load.sent
    for one in progress:
        assert one["sink"]["numOutputRows"] == one["numInputRows"]
        # After a stall, not every row of the burst is timed, and the last ones of it may not be counted.
        timed = one["observedMetrics"]["tailrace"]["rows"]
        assert 0.9 * one["numInputRows"] <= timed <= one["numInputRows"]
