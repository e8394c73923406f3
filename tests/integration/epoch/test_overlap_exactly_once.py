"""Epochs that overlap into `tailrace-kafka`: each row is written once, also if a run ends between two epochs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

import tailrace
from tests.helpers.overlapping import (
    EPOCH,
    SHORT_EPOCHS,
    SOON_S,
    assert_continues,
    assert_gap_free,
    assert_in_order,
    collected,
    is_parked,
    loaded,
    overlapped,
)
from tests.helpers.pipeline import Pipeline
from tests.helpers.topics import Collector, ContinuousLoad, new_topic
from tests.helpers.waiting import until

SINK = "tailrace-kafka"
ROUNDS = 30


@pytest.fixture
def pipeline(pipeline: Pipeline) -> Pipeline:
    """With an output of one partition, which keeps the order in which rows are written."""
    pipeline.output = new_topic(pipeline.servers, "out", partitions=1)
    return pipeline


@pytest.fixture(scope="module")
def spark(new_session: Callable[..., SparkSession]) -> SparkSession:
    # Two stages of two tasks, in two epochs at once, and some more.
    return new_session("local[12]", SHORT_EPOCHS)


def test_rows_are_written_once_and_in_order(pipeline: Pipeline) -> None:
    with collected(pipeline) as out, loaded(pipeline) as load:
        with pipeline.running(pipeline.rows(), epoch=EPOCH, sink=SINK) as query:
            until(lambda: overlapped(query) >= 6, "boundaries overlapped", within_s=SOON_S)
            assert "OverlappedWrite" in query._jsq.explainInternal(False)
            load.stop()
            until(lambda: len(out.rows()) >= load.sent, "all rows are out")
            tailrace.drain(query, timeout_s=SOON_S)
            assert_gap_free(query, pipeline)
        rows, sent = out.rows(), load.sent
    assert Counter(row["id"] for row in rows) == Counter(range(sent))
    assert_in_order(pipeline, rows)


def end_between_two_epochs(pipeline: Pipeline, query: DataFrame) -> bool:
    """Stop a run when the next epoch has taken over. True if the one before was not committed by then."""
    with pipeline.running(query, epoch=EPOCH, sink=SINK) as running:
        until(lambda: overlapped(running) >= 1, "boundaries overlap", within_s=SOON_S)
        until(lambda: is_parked(running), "the next epoch waits", within_s=SOON_S)
        open_epoch = max(pipeline.log("commits")) + 1
        until(lambda: not is_parked(running), "the next epoch has taken over", within_s=SOON_S)
    return max(pipeline.log("commits")) < open_epoch


def run_with_ends(pipeline: Pipeline, query: DataFrame, load: ContinuousLoad, out: Collector) -> list[dict[str, Any]]:
    """The output of runs of which some ended while two epochs were open."""
    until_both_were_open = (end_between_two_epochs(pipeline, query) for _ in range(ROUNDS))
    assert any(until_both_were_open), "no run ended between two epochs"
    assert_continues(pipeline)
    load.stop()
    with pipeline.running(query, epoch=EPOCH, sink=SINK) as last:
        until(lambda: any(one.numInputRows for one in last.recentProgress), "rows were replayed", within_s=SOON_S)
        until(lambda: len(out.rows()) >= load.sent, "all rows are out", within_s=SOON_S)
        tailrace.drain(last, timeout_s=SOON_S)
    return out.rows()


def test_a_run_that_ends_between_two_epochs(pipeline: Pipeline) -> None:
    with collected(pipeline) as out, loaded(pipeline) as load:
        rows = run_with_ends(pipeline, pipeline.rows(), load, out)
        assert Counter(row["id"] for row in rows) == Counter(range(load.sent))
