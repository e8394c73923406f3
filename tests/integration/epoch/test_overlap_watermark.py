"""Epochs of queries with a watermark overlap: rows are late, and state is removed, as without overlap."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from datetime import datetime
from itertools import pairwise
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery

import tailrace
from tests.helpers.overlapping import EPOCH, SHORT_EPOCHS, SOON_S, assert_gap_free, collected, loaded, overlapped
from tests.helpers.pipeline import Pipeline
from tests.helpers.topics import new_topic
from tests.helpers.waiting import until

# The time of a row is its number in seconds, so a second of load is minutes of event time.
BEGIN_S = 1_000_000
WINDOW_S = 100
DELAY_S = 50


@pytest.fixture
def pipeline(pipeline: Pipeline) -> Pipeline:
    """With an output of one partition, which keeps the order in which rows are written."""
    pipeline.output = new_topic(pipeline.servers, "out", partitions=1)
    return pipeline


@pytest.fixture(scope="module")
def spark(new_session: Callable[..., SparkSession]) -> SparkSession:
    # Two stages of two tasks, in two epochs at once, and some more.
    return new_session("local[12]", SHORT_EPOCHS)


def timed(pipeline: Pipeline, *, delay_s: int = DELAY_S) -> DataFrame:
    at = F.timestamp_seconds(F.col("id") + BEGIN_S)
    return pipeline.rows().withColumn("at", at).withWatermark("at", f"{delay_s} seconds")


def windows(pipeline: Pipeline) -> DataFrame:
    counted = timed(pipeline).groupBy(F.window("at", f"{WINDOW_S} seconds")).agg(F.count("*").alias("n"))
    return counted.select(F.col("window.start").cast("long").alias("start"), "n")


def progress_of(query: StreamingQuery) -> list[dict[str, Any]]:
    return [json.loads(one.json) for one in query.recentProgress]


def seconds(event_time: dict[str, str], name: str) -> float:
    return datetime.fromisoformat(event_time[name]).timestamp()


def assert_watermark_moves_with_the_rows(progress: list[dict[str, Any]], delay_s: int = DELAY_S) -> None:
    """The watermark of an epoch is made of all rows of the epochs before it, and of none of its own."""
    for before, after in pairwise(one["eventTime"] for one in progress):
        seen = seconds(before, "max") - delay_s if "max" in before else 0.0
        assert seconds(after, "watermark") == max(seconds(before, "watermark"), seen)


def assert_state_goes_with_the_watermark(progress: list[dict[str, Any]]) -> None:
    """Windows are kept that end behind the epoch's watermark."""
    newest = BEGIN_S - WINDOW_S
    for one in progress:
        newest = max(newest, int(seconds(one["eventTime"], "max")) if "max" in one["eventTime"] else 0)
        oldest = max(int(seconds(one["eventTime"], "watermark")), BEGIN_S)
        kept = newest // WINDOW_S - oldest // WINDOW_S + 1
        assert one["stateOperators"][0]["numRowsTotal"] == kept, one["batchId"]


def test_windows_are_counted_and_removed(pipeline: Pipeline) -> None:
    with collected(pipeline) as out, loaded(pipeline) as load:
        with pipeline.running(windows(pipeline), epoch=EPOCH) as query:
            until(lambda: overlapped(query) >= 8, "boundaries overlapped", within_s=SOON_S)
            assert "HandOverState" in query._jsq.explainInternal(False)
            pipeline.send(range(1))  # hours late
            until(lambda: dropped(query) == 1, "the late row is dropped", within_s=SOON_S)
            load.stop()
            until(lambda: len(out.rows()) >= load.sent, "all rows are out")
            tailrace.drain(query, timeout_s=SOON_S)
            assert_gap_free(query, pipeline)
            progress = progress_of(query)
        rows, sent = out.rows(), load.sent
    assert_watermark_moves_with_the_rows(progress)
    assert_state_goes_with_the_watermark(progress)
    assert sum(one["stateOperators"][0]["numRowsRemoved"] for one in progress) > 0
    # Each row has added one to its window, and the late one to none.
    counts = Counter((BEGIN_S + number) // WINDOW_S * WINDOW_S for number in range(sent))
    expected = Counter((start, n) for start, total in counts.items() for n in range(1, total + 1))
    assert Counter((row["start"], row["n"]) for row in rows) == expected


def dropped(query: StreamingQuery) -> int:
    return sum(one["stateOperators"][0]["numRowsDroppedByWatermark"] for one in progress_of(query))


def test_bounded_deduplication_forgets_as_the_watermark_moves(pipeline: Pipeline) -> None:
    # Each key comes again after 400 seconds of event time, after its first row was forgotten, and at once.
    rows = timed(pipeline, delay_s=100).withColumn("key", F.expr("id % 400 - id % 2"))
    with collected(pipeline) as out, loaded(pipeline) as load:
        with pipeline.running(rows.dropDuplicatesWithinWatermark(["key"]), epoch=EPOCH) as query:
            until(lambda: overlapped(query) >= 10, "boundaries overlapped", within_s=SOON_S)
            load.stop()
            until(lambda: sum(one["numInputRows"] for one in progress_of(query)) == load.sent, "all rows are read")
            tailrace.drain(query, timeout_s=SOON_S)
            progress = progress_of(query)
        results = out.rows()
    assert_watermark_moves_with_the_rows(progress, delay_s=100)
    state = [one["stateOperators"][0] for one in progress]
    assert sum(one["numRowsRemoved"] for one in state) > 0
    # Every row is kept in the state when it is new, and only then written.
    assert len(results) == sum(one["numRowsUpdated"] for one in state)
    assert state[-1]["numRowsTotal"] == len(results) - sum(one["numRowsRemoved"] for one in state)
    assert_only_forgotten_keys_come_again(results, progress)


def assert_only_forgotten_keys_come_again(results: list[dict[str, Any]], progress: list[dict[str, Any]]) -> None:
    """A key is forgotten when the watermark has passed its time and the delay."""
    newest_watermark = max(seconds(one["eventTime"], "watermark") for one in progress)
    by_key: dict[int, list[int]] = {}
    for row in results:
        by_key.setdefault(row["key"], []).append(row["id"])
    assert any(len(ids) > 1 for ids in by_key.values())
    for ids in by_key.values():
        for before, after in pairwise(ids):
            assert after - before >= 400 - 1
            assert before + BEGIN_S + 100 <= newest_watermark


def test_a_restart_goes_on_with_the_watermark(pipeline: Pipeline) -> None:
    """Without a drain: the open epoch comes again, with the watermark that it had."""
    with collected(pipeline) as out, loaded(pipeline) as load:
        progress: list[dict[str, Any]] = []
        for _ in range(2):
            with pipeline.running(windows(pipeline), epoch=EPOCH) as query:
                until(lambda: overlapped(query) >= 4, "boundaries overlapped", within_s=SOON_S)
                progress += progress_of(query)
        load.stop()
        counts = Counter((BEGIN_S + number) // WINDOW_S * WINDOW_S for number in range(load.sent))
        with pipeline.running(windows(pipeline), epoch=EPOCH):
            until(lambda: last_counts(out.rows()) == counts, "all rows are counted", within_s=SOON_S)
    assert_watermark_moves_with_the_rows(progress)
    assert_state_goes_with_the_watermark(progress)


def last_counts(rows: list[dict[str, Any]]) -> dict[int, int]:
    return {row["start"]: row["n"] for row in rows}
