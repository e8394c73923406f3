"""Latency from inside the engine agrees with an outside observer, in every form of the report."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

import tailrace
from tailrace import EmbeddedKafka, TailraceError
from tests.helpers.pipeline import Pipeline
from tests.helpers.waiting import comparing_times, stretched, until
from tests.integration.monitor.queries import F, delivered, distribution, fed_by, reported, stopped


def plain(pipeline: Pipeline) -> DataFrame:
    return pipeline.numbered()


def aggregated(pipeline: Pipeline) -> DataFrame:
    return pipeline.numbered().groupBy("number").agg(F.max("intended_ns").alias("intended_ns"))


def with_udf(pipeline: Pipeline) -> DataFrame:
    return pipeline.numbered().select(F.udf(lambda number: number, "long")("number").alias("number"), "intended_ns")


@pytest.mark.parametrize(
    "shape", [pytest.param(plain, marks=pytest.mark.chaos), aggregated, pytest.param(with_udf, marks=pytest.mark.chaos)]
)
def test_it_agrees_with_an_observer_outside(shape: Callable[[Pipeline], DataFrame], pipeline: Pipeline) -> None:
    with pipeline.running(shape(pipeline), epoch="5 seconds") as query, fed_by(pipeline) as load:
        load.wait_for_output(timeout_s=stretched(60), records=800)
        with tailrace.measure(query) as measurement:
            outside = load.measure(seconds=8)
        inside = measurement.latency
        # The last seconds' rows are still to be reported.
        whole = until(lambda: reported(query, 1600), "all rows")
    with comparing_times():
        assert distribution(inside, "end_to_end").count == pytest.approx(outside.received, abs=150)
        # How close they are is for the benchmark to say; this tells the same thing from another.
        assert inside.p50_ms == pytest.approx(outside.p50_ms, abs=20, rel=0.5)
        parts = [distribution(inside, name).p50_ms for name in ("source_queue", "processing", "acknowledgement")]
        assert sum(parts) == pytest.approx(inside.p50_ms, abs=10, rel=0.5)
    # The window spans epochs, and the gap between them is told.
    boundaries = whole.figures.boundaries
    assert len(boundaries) >= 1
    assert all(0 < boundary.pause_ms < 5000 for boundary in boundaries)
    assert (inside.figure("python") is not None) == (shape is with_udf)
    assert (inside.figure("shuffle") is not None) == (shape is aggregated)


def test_every_form_of_the_report(pipeline: Pipeline) -> None:
    pipeline.send(range(40))
    with pipeline.running(pipeline.counts(), epoch="10 minutes") as query:
        report = until(lambda: delivered(query, 40), "all rows")
        text = str(report)
        assert "running, epoch 0" in text
        assert [word for word in ("end to end", "shuffle", "p99.9") if word not in text] == []
        assert report.to_pandas().set_index("figure").loc["end_to_end", "count"] == 40
        assert set(report.to_pandas("partitions")["topic"]) == {pipeline.input}
        assert list(report.to_pandas("stages")["stage"]) == [0, 1]
        assert report.histogram(window="run").get_total_count() == 40
        assert until(lambda: tailrace.latency(query).lag_rows == 0, "the newest offsets are known")
        assert f'"run_id": "{query.runId}"' in report.to_json()
        [source, sink] = report.to_dict()["stages"]
        assert (source["sources"], source["inputs"], source["sink"]) == ([pipeline.input], [], None)
        assert (sink["sources"], sink["inputs"], sink["sink"]) == ([], [0], "kafka")
        assert "groupBy().agg(), window(…)" in sink["operators"]
        for wrong in (lambda: report.figure("speed"), lambda: report.to_pandas("speed")):
            with pytest.raises(TailraceError, match="TAILRACE_UNKNOWN_FIGURE"):
                wrong()
        with pytest.raises(TailraceError, match="TAILRACE_UNKNOWN_WINDOW"):
            tailrace.latency(query, "2h")
    # A query that has ended still has its figures.
    ended = until(lambda: report if (report := tailrace.latency(query, "run")).status == "ended" else None, "the end")
    assert distribution(ended, "end_to_end").count == 40
    assert "ended" in str(ended)
    with pytest.raises(TailraceError, match="TAILRACE_QUERY_ENDED"), tailrace.measure(query):
        pass


def test_the_same_percentiles_are_in_sparks_own_progress(pipeline: Pipeline) -> None:
    pipeline.send(range(40))
    with pipeline.running(pipeline.rows(), epoch="5 seconds") as query:
        progress: Any = until(lambda: query.lastProgress, "an epoch")
        observed = progress.observedMetrics["tailrace"]
        assert progress.numInputRows == 40
        inside = tailrace.latency(query, "run")
    assert observed.rows == 40
    assert observed.p99_ms == pytest.approx(distribution(inside, "end_to_end").p99_ms, rel=0.02)
    assert observed.p50_ms <= observed.p90_ms <= observed.p99_ms <= observed.p999_ms <= observed.max_ms


def test_two_queries_in_one_session(pipeline: Pipeline, tmp_path: Path) -> None:
    other = Pipeline(pipeline.spark, pipeline.servers, tmp_path / "other")
    pipeline.send(range(30))
    other.send(range(50))
    with (
        pipeline.running(pipeline.rows(), epoch="10 minutes") as first,
        other.running(other.rows(), epoch="10 minutes") as second,
    ):
        until(lambda: delivered(first, 30) and delivered(second, 50), "rows of both")
        assert distribution(tailrace.latency(first, "run"), "end_to_end").count == 30
        assert distribution(tailrace.latency(second, "run"), "end_to_end").count == 50
        [partition] = {part["topic"] for part in tailrace.latency(second).to_dict()["partitions"]}
        assert partition == other.input


def test_a_failure_is_told(pipeline: Pipeline) -> None:
    query = pipeline.rows().select(F.udf(lambda id: 1 // (id - 5), "long")("id").alias("id"))
    pipeline.send(range(10))
    with pytest.raises(Exception, match="ZeroDivisionError"), pipeline.running(query, epoch="10 minutes") as started:
        until(lambda: started.exception() is not None, "the failure")
    report = until(
        lambda: report if (report := tailrace.latency(started)).status == "failed" else None, "the news of it"
    )
    assert "failed: " in str(report)


def test_a_query_that_is_not_real_time_has_no_figures(pipeline: Pipeline) -> None:
    with pipeline.running(pipeline.rows(), epoch=None) as query:
        query.processAllAvailable()
    with pytest.raises(TailraceError, match="TAILRACE_NO_FIGURES"):
        tailrace.latency(query)


def test_timing_can_be_left_out(pipeline: Pipeline) -> None:
    pipeline.spark.conf.set("spark.tailrace.latency.enabled", "false")
    try:
        pipeline.send(range(10))
        with pipeline.collect() as out, pipeline.running(pipeline.counts(), epoch="10 minutes") as query:
            until(lambda: len(out.rows()) == 10, "all rows")
            plan = query._jsq.explainInternal(False)
            query.stop()
            with pytest.raises(TailraceError, match="TAILRACE_NO_FIGURES"):
                tailrace.latency(query)
    finally:
        pipeline.spark.conf.unset("spark.tailrace.latency.enabled")
    assert "LatencyInProgress" not in plan


def test_figures_can_be_asked_for_in_any_thread(pipeline: Pipeline) -> None:
    pipeline.send(range(10))
    with pipeline.running(pipeline.rows(), epoch="10 minutes") as query:
        until(lambda: delivered(query, 10), "all rows")
        with ThreadPoolExecutor(max_workers=1) as another:
            report = another.submit(lambda: tailrace.latency(query, "run")).result()
            assert distribution(report, "end_to_end").count == 10


def test_sparks_own_allowlist_in_force_keeps_the_probes_out(
    new_session: Callable[[str], SparkSession], kafka: EmbeddedKafka, checkpoint: Path
) -> None:
    pipeline = Pipeline(new_session("local[4]"), kafka, checkpoint)
    pipeline.spark.conf.set("spark.sql.streaming.realTimeMode.allowlistCheck", "true")
    pipeline.send(range(10))
    with pipeline.collect() as out, pipeline.running(pipeline.counts(), epoch="10 minutes"):
        until(lambda: len(out.rows()) == 10, "all rows")


def test_a_dead_broker_does_not_hold_up_the_end_of_a_query(
    new_session: Callable[[str], SparkSession], checkpoint: Path
) -> None:
    spark = new_session("local[4]")
    with EmbeddedKafka() as kafka:
        pipeline = Pipeline(spark, kafka, checkpoint)
        pipeline.send(range(10))
        with pipeline.running(pipeline.rows(), epoch="5 minutes") as query:
            until(lambda: delivered(query, 10), "all rows")
            # Of the session before, which has another application, nothing is left.
            queries = tailrace.monitor.monitor_of(spark).snapshot().queries
            assert [one.run_id for one in queries] == [str(query.runId)]
            with stopped(kafka.pid or 0):
                # Long enough that the newest offsets are being asked for.
                until(lambda: tailrace.latency(query).lag_rows is None, "the lag is not known")
                begun = time.monotonic()
                query.stop()
                assert time.monotonic() - begun < stretched(60)


def test_without_a_session(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SparkSession, "getActiveSession", lambda: None)
    monkeypatch.setattr(SparkSession, "_instantiatedSession", None)
    with pytest.raises(TailraceError, match="TAILRACE_SESSION_NOT_CONFIGURED"):
        tailrace.latency(None)  # type: ignore[arg-type]
