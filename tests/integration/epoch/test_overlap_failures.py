"""What was handed over to the next epoch is never read twice within a run, and after a kill nothing is missing."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

import pandas as pd
import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession

from tests.helpers.pipeline import Pipeline
from tests.helpers.topics import ContinuousLoad
from tests.helpers.waiting import until

SOON_S = 300
KILLS = 3

# Passes rows on in short epochs, and says when some of them have overlapped.
APP = """
import sys
from pathlib import Path
from pyspark.sql import SparkSession
import tailrace
from tests.helpers.pipeline import Pipeline
from tests.helpers.waiting import until

servers, source, target, checkpoint = sys.argv[1:]
builder = SparkSession.builder.master("local[8]").config("spark.ui.enabled", "false")
builder = builder.config("spark.tailrace.warmup.epochs", "0").config("spark.tailrace.testing.overlapShortestMs", "300")
builder = builder.config("spark.sql.streaming.realTimeMode.minBatchDuration", "300")
spark = tailrace.configure(builder).getOrCreate()
pipeline = Pipeline.__new__(Pipeline)
pipeline.spark, pipeline.servers, pipeline.checkpoint = spark, servers, Path(checkpoint)
pipeline.input, pipeline.output = source, target
with pipeline.running(pipeline.rows(), epoch="1 second") as query:
    figures = lambda: tailrace.latency(query).figures
    until(lambda: sum(one.overlapped for one in figures().boundaries) >= 3, "overlap")
    print("overlapped", flush=True)
    query.awaitTermination()
"""


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
    jvm: Any = pipeline.spark._jvm
    hand_overs = jvm.org.apache.spark.sql.tailrace.epoch.overlap.HandOvers
    until(lambda: hand_overs.size() == 0, "nothing is left")


def test_kills_of_the_driver_lose_nothing(pipeline: Pipeline) -> None:
    with pipeline.collect() as out, ContinuousLoad(pipeline.servers, pipeline.input, per_second=100) as load:
        for _ in range(KILLS):
            run_until_overlapped_and_kill(pipeline)
            assert_contiguous(pipeline)
        load.stop()
        with pipeline.running(pipeline.rows(), epoch="10 minutes"):
            until(lambda: {row["id"] for row in out.rows()} >= set(range(load.sent)), "all rows", within_s=SOON_S)


def run_until_overlapped_and_kill(pipeline: Pipeline) -> None:
    arguments = [pipeline.servers, pipeline.input, pipeline.output, str(pipeline.checkpoint)]
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
