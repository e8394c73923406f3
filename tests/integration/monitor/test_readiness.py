"""When a query counts as ready."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import tailrace
from tailrace import EmbeddedKafka
from tailrace._spark.plugin import LIVE_FIGURES_CLASS, jvm_object
from tailrace.monitor.health import health_of
from tests.helpers.pipeline import Pipeline
from tests.helpers.waiting import until


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("spark.tailrace.latency.enabled", "false"),
        ("spark.sql.streaming.realTimeMode.allowlistCheck", "true"),
    ],
)
def test_a_query_whose_rows_are_not_timed_becomes_ready(
    new_session: Callable[[str], SparkSession], kafka: EmbeddedKafka, checkpoint: Path, key: str, value: str
) -> None:
    pipeline = Pipeline(new_session("local[4]"), kafka, checkpoint)
    monitor = tailrace.monitor.monitor_of(pipeline.spark)
    before = pipeline.spark.conf.get(key, None)
    pipeline.spark.conf.set(key, value)
    try:
        pipeline.send(range(10))
        with pipeline.collect() as out, pipeline.running(pipeline.counts(), epoch="10 minutes"):
            until(lambda: len(out.rows()) == 10, "all rows")
            until(lambda: health_of(monitor.snapshot()).is_ready, "it is ready")
    finally:
        pipeline.spark.conf.unset(key) if before is None else pipeline.spark.conf.set(key, before)


def test_a_query_is_known_before_its_first_epoch_is_planned(
    new_session: Callable[[str], SparkSession], kafka: EmbeddedKafka, checkpoint: Path
) -> None:
    pipeline = Pipeline(new_session("local[4]"), kafka, checkpoint)
    figures = jvm_object(pipeline.spark.sparkContext, LIVE_FIGURES_CLASS)
    monitor = tailrace.monitor.monitor_of(pipeline.spark)
    taken: list[str] = []
    take = monitor._take
    monitor._take = lambda: taken.append(str(figures.take())) or taken[-1]  # type: ignore[func-returns-value]
    try:
        with pipeline.running(pipeline.rows(), epoch="10 minutes") as query:
            run = str(query.runId)
            until(lambda: [one for one in taken if "query_planned" in one and run in one], "its plan")
    finally:
        monitor._take = take
    events = [event for one in taken for event in json.loads(one)["events"] if event["run"] == run]
    assert (events[0]["type"], events[0]["real_time"]) == ("query_started", True)
