"""Timers of JVM processors fire while no rows arrive."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

import tailrace
from tailrace._process.machine_load import stretched
from tests.helpers.pipeline import Pipeline
from tests.helpers.scala import compiled_jar
from tests.helpers.waiting import comparing_times, until

EPOCH = "10 minutes"
AFTER_MS = 3000
# Between a timer that is looked for while nothing comes and one that waits for a row or for the epoch's end.
SOON_MS = 5000


@pytest.fixture(scope="module")
def spark(new_session: Callable[..., SparkSession]) -> SparkSession:
    return new_session("local[6]", {"spark.jars": str(compiled_jar())})


def deadlines(pipeline: Pipeline, key: str, after_ms: int = AFTER_MS) -> DataFrame:
    jvm: Any = pipeline.spark.sparkContext._jvm
    return DataFrame(jvm.tailrace.testing.Deadlines.of(pipeline.rows()._jdf, key, after_ms), pipeline.spark)


@pytest.mark.parametrize("key", ["key", "id"])
def test_a_timer_does_not_wait_for_a_row(pipeline: Pipeline, key: str) -> None:
    """And the processor sees the rows that came, and no other."""
    with pipeline.collect() as out, pipeline.running(deadlines(pipeline, key), epoch=EPOCH):
        pipeline.send(range(4), keys=4)
        until(lambda: len(out.rows()) >= 8, "all timers")
        assert Counter(row["event"] for row in out.rows()) == {"seen 1": 4, "over": 4}
        with comparing_times():
            assert max(row["late_ms"] for row in out.rows()) < SOON_MS


def test_a_timer_fires_in_a_run_that_gets_no_row(pipeline: Pipeline) -> None:
    """There is no row yet to be repeated; and a number, other than a text, cannot be null."""
    key = "id"
    with pipeline.collect() as out:
        # Far enough away for the second run to find it in its state.
        with pipeline.running(deadlines(pipeline, key, after_ms=20_000), epoch=EPOCH) as query:
            pipeline.send(range(2), keys=2)
            until(lambda: len(out.rows()) == 2, "the rows")
            tailrace.drain(query, timeout_s=stretched(60))
        assert Counter(row["event"] for row in out.rows()) == {"seen 1": 2}
        with pipeline.running(deadlines(pipeline, key, after_ms=20_000), epoch=EPOCH):
            until(lambda: len(out.rows()) == 4, "the timers")
        assert Counter(row["event"] for row in out.rows()) == {"seen 1": 2, "over": 2}
