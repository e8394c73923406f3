"""The first epochs of a run are short, so slow boundaries come at the start. Nothing else changes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import tailrace
from tailrace import TailraceError
from tests.helpers.pipeline import Pipeline, has_counted
from tests.helpers.waiting import until

EPOCHS_KEY = "spark.tailrace.warmup.epochs"
SHORT_EPOCHS = 3
LONG_EPOCH = "10 minutes"


@pytest.fixture(scope="module")
def spark(new_session: Callable[..., SparkSession]) -> SparkSession:
    return new_session("local[6]", {EPOCHS_KEY: str(SHORT_EPOCHS)})


def committed(pipeline: Pipeline) -> int:
    return len(pipeline.log("commits"))


def has_committed(pipeline: Pipeline, epochs: int) -> Callable[[], bool]:
    return lambda: committed(pipeline) == epochs


def test_the_first_epochs_are_short_and_lose_nothing(pipeline: Pipeline) -> None:
    with pipeline.collect() as out, pipeline.running(pipeline.counts(), epoch=LONG_EPOCH) as query:
        sent = 0
        while committed(pipeline) < SHORT_EPOCHS:
            # Some rows come while an epoch is open, some at a boundary.
            pipeline.send(range(sent, sent + 10), keys=1)
            sent += 10
            until(has_counted(out, sent), f"{sent} rows counted")
        # Each row was counted once.
        assert Counter(row["n"] for row in out.rows()) == Counter(range(1, sent + 1))
        until(lambda: tailrace.latency(query).status == "running", "it is ready")
        assert committed(pipeline) == SHORT_EPOCHS, "the epoch after them is the user's own"


def test_they_are_at_the_start_of_each_run(pipeline: Pipeline) -> None:
    for run in (1, 2):
        with pipeline.running(pipeline.counts(), epoch=LONG_EPOCH):
            until(has_committed(pipeline, run * SHORT_EPOCHS), "the short epochs")


def test_they_overlap_like_those_that_follow(pipeline: Pipeline) -> None:
    """Not each of them, if the JVM is so cold that planning takes longer than an epoch."""
    for _ in range(10):
        before = committed(pipeline)
        with pipeline.running(pipeline.rows(), epoch=LONG_EPOCH) as query:
            until(has_committed(pipeline, before + SHORT_EPOCHS), "the short epochs")
            found = tailrace.latency(query).figures.boundaries
        assert not [one.reason for one in found if "shorter than" in (one.reason or "")]
        if any(one.overlapped for one in found):
            return
    pytest.fail("no short epochs overlapped")


def test_it_is_starting_until_they_are_over(pipeline: Pipeline) -> None:
    with pipeline.collect() as out, pipeline.running(pipeline.rows(), epoch=LONG_EPOCH) as query:
        pipeline.send(range(10))
        until(lambda: len(out.rows()) == 10, "rows flow meanwhile")
        seen = set()

        def is_ready() -> bool:
            pipeline.send(range(1))
            seen.add(tailrace.latency(query).status)
            return "running" in seen

        until(is_ready, "the short epochs are over")
        assert seen == {"starting", "running"}
        figures = tailrace.latency(query).to_dict()
        assert figures["epoch"]["duration_s"] == 600, "what is told is the user's own"


def test_a_watermark_moves_only_at_the_user_s_own_epochs(pipeline: Pipeline) -> None:
    """Rows of a partition that is read more slowly would be late by an epoch that ends early."""
    rows = pipeline.rows().withColumn("at", F.timestamp_millis(F.col("id")))
    counts = rows.withWatermark("at", "1 second").groupBy("key").agg(F.count("*").alias("n"))
    with pipeline.collect() as out, pipeline.running(counts, epoch=LONG_EPOCH) as query:
        for number in range(4):
            pipeline.send(range(number, number + 1), keys=1)
            until(has_counted(out, number + 1), f"row {number} counted")
        until(lambda: tailrace.latency(query).status == "running", "ready at once")
        assert committed(pipeline) == 0


@pytest.mark.parametrize("value", ["many", "-1"])
def test_a_setting_that_makes_no_sense(pipeline: Pipeline, value: str) -> None:
    pipeline.spark.conf.set(EPOCHS_KEY, value)
    try:
        with pytest.raises(TailraceError) as refused, pipeline.running(pipeline.rows(), epoch=LONG_EPOCH):
            pass
    finally:
        pipeline.spark.conf.set(EPOCHS_KEY, str(SHORT_EPOCHS))
    assert refused.value.code == "TAILRACE_BAD_SETTING"
    assert value in refused.value.problem
    assert not pipeline.checkpoint.exists()
