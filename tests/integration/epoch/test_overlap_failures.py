"""What was handed over to the next epoch is never read twice within a run, and after a kill nothing is missing."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import pairwise

import pandas as pd
import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession

import tailrace
from tests.helpers.overlapping import collected, is_parked, nothing_is_left, overlapped
from tests.helpers.pipeline import Pipeline
from tests.helpers.topics import Collector, ContinuousLoad, new_topic
from tests.helpers.waiting import until

SOON_S = 300
KILLS = 3

# Runs a query of the pipeline in short epochs, and says when some of them have overlapped.
APP = """
import sys
from pathlib import Path
from pyspark.sql import SparkSession
import tailrace
from tests.helpers.pipeline import Pipeline
from tests.helpers.waiting import until

servers, source, target, checkpoint, query_of = sys.argv[1:]
builder = SparkSession.builder.master("local[8]").config("spark.ui.enabled", "false")
builder = builder.config("spark.tailrace.warmup.epochs", "0").config("spark.tailrace.testing.overlapShortestMs", "300")
builder = builder.config("spark.sql.streaming.realTimeMode.minBatchDuration", "300")
builder = builder.config("spark.sql.shuffle.partitions", "2")
spark = tailrace.configure(builder).getOrCreate()
pipeline = Pipeline.__new__(Pipeline)
pipeline.spark, pipeline.servers, pipeline.checkpoint = spark, servers, Path(checkpoint)
pipeline.input, pipeline.output = source, target
with pipeline.running(getattr(pipeline, query_of)(), epoch="1 second") as query:
    figures = lambda: tailrace.latency(query).figures
    until(lambda: sum(one.overlapped for one in figures().boundaries) >= 3, "overlap")
    print("overlapped", flush=True)
    query.awaitTermination()
"""


@pytest.fixture
def pipeline(pipeline: Pipeline) -> Pipeline:
    """With an output of one partition: the last count of a key in it is the last that was written."""
    pipeline.output = new_topic(pipeline.servers, "out", partitions=1)
    return pipeline


@pytest.fixture(scope="module")
def spark(new_session: Callable[..., SparkSession]) -> SparkSession:
    # Tasks are tried twice.
    return new_session("local[8,2]")


def test_a_task_is_not_tried_again_after_its_hand_over(pipeline: Pipeline) -> None:
    def fails_at_the_end(batches: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
        yield from batches
        raise ValueError("too late")

    broken = pipeline.rows().select("id", "key").mapInPandas(fails_at_the_end, "id LONG, key STRING")
    pipeline.send(range(20))
    with (
        pytest.raises(StreamingQueryException, match="TAILRACE_RETRY_AFTER_HAND_OVER"),
        pipeline.running(broken, epoch="6 seconds") as query,
    ):
        query.awaitTermination(2 * SOON_S)
    assert pipeline.log("offsets") == []
    assert pipeline.log("commits") == []
    until(lambda: nothing_is_left(pipeline.spark), "nothing is left")


def test_a_failure_after_the_state_was_handed_over_commits_nothing(pipeline: Pipeline) -> None:
    def fails_at_the_end(batches: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
        yield from batches
        raise ValueError("too late")

    counted = pipeline.counts().select("key", "n")
    pipeline.send(range(20))
    with (  # noqa: PT012
        pytest.raises(StreamingQueryException, match="too late"),
        pipeline.running(counted.mapInPandas(fails_at_the_end, "key STRING, n LONG"), epoch="6 seconds") as query,
    ):
        until(lambda: is_parked(query), "the next epoch waits")
        query.awaitTermination(2 * SOON_S)
    assert pipeline.log("offsets") == []
    assert pipeline.log("commits") == []
    until(lambda: nothing_is_left(pipeline.spark), "nothing is left")
    pipeline.output = new_topic(pipeline.servers, "out", partitions=1)
    with collected(pipeline) as out, pipeline.running(counted, epoch="10 minutes"):
        until(lambda: len(out.rows()) >= 20, "all rows")
        assert Counter(row["n"] for row in out.rows()) == {1: 10, 2: 10}


def test_an_epoch_that_continued_from_other_state_is_not_committed(pipeline: Pipeline) -> None:
    """What Spark committed is changed while the epoch after it runs, so the two do not meet."""
    pipeline.send(range(20))
    with (  # noqa: PT012
        pytest.raises(StreamingQueryException, match="TAILRACE_EPOCHS_DO_NOT_MEET"),
        pipeline.running(pipeline.counts(), epoch="6 seconds") as query,
    ):
        until(lambda: overlapped(query) >= 1, "epochs overlap", within_s=SOON_S)

        def has_failed() -> bool:
            # Again, in case that an epoch was just being committed.
            query._jsq.streamingQuery().lastExecution().currentStateStoreCkptId().apply(0)[0][0] = "another"
            return query.exception() is not None

        until(has_failed, "the query fails", within_s=SOON_S)
    failed = query._jsq.streamingQuery().lastExecution().currentBatchId()
    assert max(pipeline.log("offsets")) == max(pipeline.log("commits")) == failed - 1
    until(lambda: nothing_is_left(pipeline.spark), "nothing is left")


def test_a_stop_while_the_next_epoch_waits_for_its_state(pipeline: Pipeline) -> None:
    pipeline.send(range(20))
    with collected(pipeline) as out:
        with pipeline.running(pipeline.counts(), epoch="8 seconds") as query:
            until(lambda: is_parked(query), "the next epoch waits")
        until(lambda: nothing_is_left(pipeline.spark), "nothing is left")
        with pipeline.running(pipeline.counts(), epoch="10 minutes"):
            until(lambda: len(out.rows()) >= 40, "the next run reads what was not committed")
        assert last_counts(out) == {f"k{number}": 2 for number in range(10)}


def test_a_drain_while_the_next_epoch_waits_for_its_state(pipeline: Pipeline) -> None:
    with collected(pipeline) as out, ContinuousLoad(pipeline.servers, pipeline.input, per_second=100) as load:
        for _ in range(2):
            with pipeline.running(pipeline.counts(), epoch="6 seconds") as query:
                until(lambda: is_parked(query), "the next epoch waits")
                drained = tailrace.drain(query, timeout_s=SOON_S)
                assert pipeline.log("commits")[-1] == drained.epoch
        load.stop()
        with pipeline.running(pipeline.counts(), epoch="10 minutes"):
            until(lambda: len(out.rows()) >= load.sent, "all rows are out")
        # Nothing was replayed.
        assert len(out.rows()) == load.sent
        assert last_counts(out) == Counter(f"k{number % load.keys}" for number in range(load.sent))
    until(lambda: nothing_is_left(pipeline.spark), "nothing is left")


@pytest.mark.chaos
def test_kills_of_the_driver_lose_nothing(pipeline: Pipeline) -> None:
    with collected(pipeline) as out, ContinuousLoad(pipeline.servers, pipeline.input, per_second=100) as load:
        for _ in range(KILLS):
            run_until_overlapped_and_kill(pipeline, "rows")
            assert_contiguous(pipeline)
        load.stop()
        with pipeline.running(pipeline.rows(), epoch="10 minutes"):
            until(lambda: {row["id"] for row in out.rows()} >= set(range(load.sent)), "all rows")


@pytest.mark.parametrize(
    ("query_of", "kills"),
    [
        ("counts", 1),
        pytest.param("counts", KILLS, marks=pytest.mark.chaos),
        pytest.param("processed_counts", KILLS, marks=pytest.mark.chaos),
    ],
)
def test_kills_of_the_driver_count_each_row_once(pipeline: Pipeline, query_of: str, kills: int) -> None:
    with collected(pipeline) as out, ContinuousLoad(pipeline.servers, pipeline.input, per_second=100) as load:
        for _ in range(kills):
            run_until_overlapped_and_kill(pipeline, query_of)
            assert_contiguous(pipeline)
        load.stop()
        expected = Counter(f"k{number % load.keys}" for number in range(load.sent))
        with pipeline.running(getattr(pipeline, query_of)(), epoch="10 minutes"):
            until(lambda: last_counts(out) == expected, "all rows are counted once", within_s=SOON_S)


def last_counts(out: Collector) -> dict[str, int]:
    """By key. A replayed epoch counts again what it counted before, and in the end every row once."""
    return {row["key"]: row["n"] for row in out.rows()}


def run_until_overlapped_and_kill(pipeline: Pipeline, query_of: str) -> None:
    arguments = [pipeline.servers, pipeline.input, pipeline.output, str(pipeline.checkpoint), query_of]
    app = subprocess.Popen(
        [sys.executable, "-c", APP, *arguments], stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    try:
        assert app.stdout is not None
        assert app.stdout.readline().strip() == "overlapped"
    finally:
        # The driver's JVM is in the same group.
        os.killpg(app.pid, signal.SIGKILL)
        app.wait()


def assert_contiguous(pipeline: Pipeline) -> None:
    """No epoch is missing in the logs, and at most the last one is not committed."""
    offsets, commits = pipeline.log("offsets"), pipeline.log("commits")
    assert all(after == before + 1 for before, after in pairwise(offsets))
    assert offsets[-1] - commits[-1] in (0, 1)
