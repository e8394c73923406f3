"""Epochs of queries with a shuffle and with state overlap: the state goes on as if there were no boundary."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.functions import udf

import tailrace
from tests.helpers.overlapping import (
    EPOCH,
    OVERLAP_KEY,
    SHORT_EPOCHS,
    SOON_S,
    assert_gap_free,
    assert_in_order,
    collected,
    loaded,
    overlapped,
)
from tests.helpers.pipeline import Pipeline
from tests.helpers.scala import compiled_jar
from tests.helpers.topics import new_topic
from tests.helpers.waiting import stretched, until

ALLOWLIST_KEY = "spark.sql.streaming.realTimeMode.allowlistCheck"


@pytest.fixture
def pipeline(pipeline: Pipeline) -> Pipeline:
    """With an output of one partition, which keeps the order in which rows are written."""
    pipeline.output = new_topic(pipeline.servers, "out", partitions=1)
    return pipeline


@pytest.fixture(scope="module")
def spark(new_session: Callable[..., SparkSession]) -> SparkSession:
    # Three stages of two tasks, in two epochs at once, and some more.
    jar = compiled_jar()
    return new_session("local[16]", {**SHORT_EPOCHS, "spark.jars": str(jar)})


def run_across_boundaries(
    pipeline: Pipeline, query: DataFrame, rows_of: Callable[[int], int]
) -> tuple[list[dict[str, Any]], int]:
    """The output of a query over five boundaries that overlapped, and how many rows were sent."""
    with collected(pipeline) as out, loaded(pipeline) as load:
        with pipeline.running(query, epoch=EPOCH) as running:
            until(lambda: overlapped(running) >= 5, "five boundaries overlapped", within_s=SOON_S)
            load.stop()
            until(lambda: len(out.rows()) >= rows_of(load.sent), "all rows are out")
            tailrace.drain(running, timeout_s=SOON_S)
            assert_gap_free(running, pipeline)
        return out.rows(), load.sent


def each_row(sent: int) -> int:
    return sent


def counted_in_micro_batches(pipeline: Pipeline, sent: int, checkpoint: Path) -> dict[str, int]:
    """The counts of the same input, by Spark itself."""
    pipeline.use_fresh_output(checkpoint)
    with pipeline.collect() as out, pipeline.running(pipeline.counts(), epoch=None):
        until(lambda: sum(largest_counts(out.rows()).values()) == sent, "everything is counted")
        return largest_counts(out.rows())


def largest_counts(rows: list[dict[str, Any]]) -> dict[str, int]:
    """Counts only grow, and the partitions of the output are read in any order."""
    found: Counter[str] = Counter()
    for row in rows:
        found[row["key"]] = max(found[row["key"]], row["n"])
    return dict(found)


def assert_steps_by_one(rows: list[dict[str, Any]]) -> None:
    """Each row has added one to the count of its key."""
    by_key: dict[str, list[int]] = {}
    for row in rows:
        by_key.setdefault(row.get("key", "all"), []).append(row["n"])
    for key, counts in by_key.items():
        assert counts[0] == 1, key
        assert all(after == before + 1 for before, after in pairwise(counts)), key


def last_counts(rows: list[dict[str, Any]]) -> dict[str, int]:
    return {row["key"]: row["n"] for row in rows}


def test_an_aggregation_counts_as_in_micro_batch(pipeline: Pipeline, tmp_path: Path) -> None:
    rows, sent = run_across_boundaries(pipeline, pipeline.counts(), each_row)
    assert len(rows) == sent
    assert_steps_by_one(rows)
    assert last_counts(rows) == counted_in_micro_batches(pipeline, sent, tmp_path / "micro-batch")


def test_an_aggregation_without_a_key(pipeline: Pipeline) -> None:
    rows, sent = run_across_boundaries(pipeline, pipeline.rows().agg(F.count("*").alias("n")), each_row)
    assert [row["n"] for row in rows] == list(range(1, sent + 1))


# Each pair comes twice, 200 rows apart, so there are boundaries between the two.
PAIR = "id - floor((id % 400) / 200) * 200"


def pairs(sent: int) -> int:
    return sum(1 for number in range(sent) if number % 400 < 200)


def without_duplicates(pipeline: Pipeline) -> DataFrame:
    return pipeline.rows().withColumn("pair", F.expr(PAIR)).dropDuplicates(["pair"])


def without_recent_duplicates(pipeline: Pipeline) -> DataFrame:
    """A JVM processor in `transformWithState`, with a time to live."""
    return tailrace.drop_duplicates(pipeline.rows().withColumn("pair", F.expr(PAIR)), ["pair"], ttl="10 minutes")


@pytest.mark.parametrize("query_of", [without_duplicates, without_recent_duplicates])
def test_duplicates_are_known_across_boundaries(pipeline: Pipeline, query_of: Callable[[Pipeline], DataFrame]) -> None:
    rows, sent = run_across_boundaries(pipeline, query_of(pipeline), pairs)
    assert Counter(row["pair"] for row in rows) == Counter({number: 1 for number in range(sent) if number % 400 < 200})


def test_a_processor_keeps_its_state_and_its_timers(pipeline: Pipeline) -> None:
    """Each key has one timer, which moves with every row and is due when no row comes any more."""
    jvm: Any = pipeline.spark.sparkContext._jvm
    # Longer than a busy machine keeps the rows of a key waiting.
    deadlines = jvm.tailrace.testing.Deadlines.of(pipeline.rows()._jdf, "key", int(stretched(5) * 1000))
    rows, sent = run_across_boundaries(pipeline, DataFrame(deadlines, pipeline.spark), lambda sent: sent + 10)
    assert Counter(row["event"] for row in rows) == {"seen 1": sent, "over": 10}
    assert {row["event"] for row in rows[-10:]} == {"over"}


def test_two_operators_with_state(pipeline: Pipeline) -> None:
    counted = without_duplicates(pipeline).groupBy("key").agg(F.count("*").alias("n"))
    rows, sent = run_across_boundaries(pipeline, counted, pairs)
    assert len(rows) == pairs(sent)
    assert_steps_by_one(rows)


def test_python_on_the_results_of_an_aggregation(pipeline: Pipeline) -> None:
    counted = pipeline.counts().withColumn("key", udf(lambda key: key + "!")("key"))
    rows, sent = run_across_boundaries(pipeline, counted, each_row)
    assert len(rows) == sent
    assert_steps_by_one(rows)


def test_a_shuffle_without_state(pipeline: Pipeline) -> None:
    rows, sent = run_across_boundaries(pipeline, pipeline.rows().repartition(2, "key"), each_row)
    assert Counter(row["id"] for row in rows) == Counter(range(sent))
    assert_in_order(pipeline, rows, within="key")


OVERLAPPING: tuple[str | None, dict[str, str]] = (EPOCH, {})
MICRO_BATCHES: tuple[str | None, dict[str, str]] = (None, {ALLOWLIST_KEY: "true"})
SPARKS_EPOCHS: tuple[str | None, dict[str, str]] = (EPOCH, {ALLOWLIST_KEY: "true"})
ONE_BY_ONE: tuple[str | None, dict[str, str]] = (EPOCH, {OVERLAP_KEY: "off"})


@pytest.mark.parametrize(
    "runs",
    [
        pytest.param([OVERLAPPING, SPARKS_EPOCHS, OVERLAPPING], id="real time"),
        pytest.param(
            [OVERLAPPING, MICRO_BATCHES, OVERLAPPING, SPARKS_EPOCHS, ONE_BY_ONE, OVERLAPPING],
            id="everything",
            marks=pytest.mark.chaos,
        ),
    ],
)
def test_the_checkpoint_goes_to_bare_spark_and_back(
    pipeline: Pipeline, runs: list[tuple[str | None, dict[str, str]]]
) -> None:
    """To its own micro-batches and its own real-time epochs, in between to those of Tailrace that do not overlap."""
    with collected(pipeline) as out, loaded(pipeline) as load:
        for epoch, settings in runs:
            for key, value in settings.items():
                pipeline.spark.conf.set(key, value)
            try:
                with pipeline.running(pipeline.counts(), epoch=epoch) as query:
                    before = max(pipeline.log("commits"), default=-1)
                    until(lambda: max(pipeline.log("commits"), default=-1) > before + 2, "epochs")  # noqa: B023
                    if epoch and not settings:
                        until(lambda: overlapped(query) >= 2, "epochs overlap")
                    assert ("HandOverState" in query._jsq.explainInternal(False)) == bool(epoch and not settings)
            finally:
                # Not their defaults: those of Spark's differ from what Tailrace sets.
                pipeline.spark.conf.set(ALLOWLIST_KEY, "false")
                pipeline.spark.conf.set(OVERLAP_KEY, "auto")
        load.stop()
        with pipeline.running(pipeline.counts(), epoch=EPOCH):
            until(lambda: sum(last_counts(out.rows()).values()) == load.sent, "all rows are counted")
        assert last_counts(out.rows()) == Counter(f"k{number % 10}" for number in range(load.sent))


def test_progress_tells_of_the_state(pipeline: Pipeline) -> None:
    with loaded(pipeline) as load, pipeline.running(pipeline.counts(), epoch=EPOCH) as query:
        until(lambda: overlapped(query) >= 5, "epochs overlap")
        load.stop()
        until(lambda: sum(one.numInputRows for one in query.recentProgress) == load.sent, "all")
        progress = [json.loads(one.json) for one in query.recentProgress]
    for one in progress:
        (state,) = one["stateOperators"]
        assert one["sink"]["numOutputRows"] == one["numInputRows"]
        assert state["numRowsUpdated"] <= one["numInputRows"]
        assert state["numStateStoreInstances"] == state["numShufflePartitions"] == 2
    assert progress[-1]["stateOperators"][0]["numRowsTotal"] == 10
