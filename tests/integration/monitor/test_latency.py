"""Latency from inside the engine agrees with an outside observer, and shows where rows are delayed."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession, functions
from pyspark.sql.streaming.query import StreamingQuery

import tailrace
from tailrace import EmbeddedKafka, TailraceError
from tailrace._spark.plugin import LIVE_FIGURES_CLASS, jvm_object
from tailrace.contract.snapshot import Distribution
from tailrace.loadtest import LoadTest
from tailrace.monitor.health import health_of
from tailrace.results import Finding, Latency
from tests.helpers.pipeline import Pipeline
from tests.helpers.waiting import comparing_times, let_pass, until

F: Any = functions


def fed_by(pipeline: Pipeline, rate: int = 100) -> LoadTest:
    return LoadTest(
        bootstrap_servers=pipeline.servers, input_topic=pipeline.input, output_topic=pipeline.output, rate=rate
    )


def finding(query: StreamingQuery, code: str) -> Finding | None:
    return next((one for one in tailrace.latency(query).findings if one.code == code), None)


def distribution(report: Latency, figure: str) -> Distribution:
    found = report.figure(figure)
    assert found is not None, f"nothing was recorded for {figure}"
    return found


def recorded(report: Latency, figure: str) -> int:
    found = report.figure(figure)
    return found.count if found else 0


def finding_after(
    pipeline: Pipeline, query: StreamingQuery, ids: range, code: str, *, keys: int = 10
) -> Finding | None:
    """The finding, if it is there after these rows."""
    pipeline.send(ids, keys=keys)
    return finding(query, code)


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
        load.wait_for_output(timeout_s=60, records=800)
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
    with pipeline.running(pipeline.counts(), epoch="60 seconds") as query:
        report = until(lambda: delivered(query, 40), "all rows", within_s=60)
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


def reported(query: StreamingQuery, rows: int) -> Latency | None:
    report = tailrace.latency(query, "run")
    return report if report.to_dict()["windows"]["run"]["rows_out"] >= rows else None


def acknowledged(query: StreamingQuery, rows: int) -> Latency | None:
    """The report, when the sink has all rows and at least those that stand for half of them are acknowledged."""
    report = reported(query, rows)
    return report if report is not None and recorded(report, "end_to_end") > rows / 2 else None


def delivered(query: StreamingQuery, rows: int, window: str = "run") -> Latency | None:
    """The report, when it has so many rows and is calm."""
    report = tailrace.latency(query, window)
    enough = recorded(report, "end_to_end") >= rows
    return report if enough and report.status == "running" else None


def test_the_same_percentiles_are_in_sparks_own_progress(pipeline: Pipeline) -> None:
    pipeline.send(range(40))
    with pipeline.running(pipeline.rows(), epoch="5 seconds") as query:
        progress: Any = until(lambda: query.lastProgress, "an epoch", within_s=60)
        observed = progress.observedMetrics["tailrace"]
        assert progress.numInputRows == 40
        inside = tailrace.latency(query, "run")
    assert observed.rows == 40
    assert observed.p99_ms == pytest.approx(distribution(inside, "end_to_end").p99_ms, rel=0.02)
    assert observed.p50_ms <= observed.p90_ms <= observed.p99_ms <= observed.p999_ms <= observed.max_ms


def test_a_slow_row_in_a_function_shows_in_its_stage_and_partition(pipeline: Pipeline) -> None:
    @F.udf("long")  # type: ignore[untyped-decorator]
    def slow(id: int) -> int:
        if id == 77:
            time.sleep(0.8)  # noqa: TID251 (a user's slow function)
        return id

    def names_the_slowest(found: Finding | None, query: StreamingQuery) -> bool:
        [_, last] = tailrace.latency(query).to_dict()["stages"]
        python = {task["partition"]: task["windows"]["1m"]["python"] for task in last["tasks"]}
        most = {partition: figure["max_ms"] if figure else 0 for partition, figure in python.items()}
        slowest = max(most, key=lambda partition: most[partition])
        named = found is not None and f"stage 1, partition {slowest}" in found.detail
        return named and most[slowest] >= 800

    code = "TAILRACE_SLOW_PYTHON"
    query = pipeline.rows().repartition(2, "key").select(slow("id").alias("id"))
    with pipeline.running(query, epoch="60 seconds") as started:
        # Warm first: a worker that starts is slow too.
        pipeline.send(range(20))
        until(lambda: delivered(started, 20), "the first rows", within_s=60)
        with tailrace.measure(started) as measurement:
            sent = 20

            def slow_row_is_found() -> bool:
                nonlocal sent
                # One slow row at a time: a backlog of them would be another finding.
                if delivered(started, sent):
                    pipeline.send(range(70, 80))
                    sent += 10
                taken = measurement.latency.figure("python")
                return names_the_slowest(finding(started, code), started) and taken is not None and taken.max_ms >= 800

            # Findings begin some seconds after the start; on a busy machine the first may be about another row.
            until(slow_row_is_found, code, within_s=120)
        figures = measurement.latency
        assert distribution(figures, "processing").max_ms >= 800
        assert distribution(figures, "source_queue").max_ms < 800


def test_a_slow_row_before_a_shuffle_shows_in_the_first_stage(pipeline: Pipeline) -> None:
    @F.udf("long")  # type: ignore[untyped-decorator]
    def slow(id: int) -> int:
        if id == 77:
            time.sleep(0.8)  # noqa: TID251 (a user's slow function)
        return id

    query = pipeline.rows().select(slow("id").alias("id"), "key").repartition(2, "key")
    with pipeline.running(query, epoch="60 seconds") as started:
        pipeline.send(range(20))
        until(lambda: delivered(started, 20), "the first rows", within_s=60)
        with tailrace.measure(started) as measurement:
            pipeline.send(range(70, 80))
            until(lambda: recorded(measurement.latency, "processing") >= 10, "the slow row")
        whole = measurement.latency.to_dict()
    with comparing_times():
        # From reading to the sink, over both stages; and of the two it was the first.
        assert whole["windows"]["measured"]["processing"]["max_ms"] >= 800
        [first, last] = [stage["windows"]["10s"]["time"]["max_ms"] for stage in whole["stages"]]
        assert first >= 800
        assert last < 800


def test_under_load_a_timed_row_stands_for_others(pipeline: Pipeline) -> None:
    rows = 20_000
    pipeline.send(range(rows))
    with pipeline.running(pipeline.rows().repartition(2, "key"), epoch="60 seconds") as query:
        # Rows are counted when the sink gets them, and timed end to end when the broker has acknowledged them.
        report = until(lambda: acknowledged(query, rows), "all rows, acknowledged", within_s=60)
    assert report.to_dict()["windows"]["run"]["rows_in"] == rows
    assert report.to_dict()["windows"]["run"]["rows_out"] == rows
    for figure in ("source_queue", "shuffle", "processing", "end_to_end"):
        # Those at the end of every 20 ms have nobody to stand for them.
        assert rows / 2 < distribution(report, figure).count <= rows


def test_a_hot_key_shows_in_the_task_that_gets_it(pipeline: Pipeline) -> None:
    with pipeline.running(pipeline.counts(), epoch="60 seconds") as query:
        pipeline.send(range(20))
        until(lambda: delivered(query, 20), "the first rows", within_s=60)
        found = until(lambda: finding_after(pipeline, query, range(200), "TAILRACE_SKEWED_KEYS", keys=1), "the finding")
        assert "One task of stage 1 gets" in found.title
        assert finding(query, "TAILRACE_HOT_PARTITION") is not None, "its records are in one partition too"


def test_a_broker_that_stops_shows_outside_of_the_query(spark: SparkSession, checkpoint: Path) -> None:
    with EmbeddedKafka() as kafka:
        pipeline = Pipeline(spark, kafka, checkpoint)
        with pipeline.running(pipeline.numbered(), epoch="60 seconds") as query, fed_by(pipeline) as load:
            load.wait_for_output(timeout_s=60, records=400)
            with tailrace.measure(query) as measurement:
                with stopped(kafka.pid or 0):
                    let_pass(1.2)
                load.wait_for_output(timeout_s=30, records=800)
            inside = measurement.latency
            with comparing_times():
                # Waiting for the broker is not the query's doing.
                assert max(distribution(inside, name).max_ms for name in ("source_queue", "acknowledgement")) >= 500
                assert distribution(inside, "processing").max_ms < 500
                codes = {one.code for one in inside.findings}
                assert codes & {"TAILRACE_SLOW_BROKER", "TAILRACE_LATE_RECORDS", "TAILRACE_SLOW_SINK"}
                assert "TAILRACE_SLOW_PYTHON" not in codes


@contextmanager
def stopped(pid: int) -> Iterator[None]:
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


def test_a_backlog_is_called_one(pipeline: Pipeline) -> None:
    @F.udf("long")  # type: ignore[untyped-decorator]
    def slow(id: int) -> int:
        time.sleep(0.02)  # noqa: TID251 (a user's slow function)
        return id

    pipeline.send(range(20_000))
    with pipeline.running(pipeline.rows().select(slow("id").alias("id")), epoch="60 seconds") as query:
        found = until(lambda: finding(query, "TAILRACE_LAGGING"), "the finding", within_s=60)
        report = tailrace.latency(query)
        assert report.status == "lagging"
        assert (report.lag_rows or 0) > 10_000
        assert "backlog" in found.detail


def test_two_queries_in_one_session(pipeline: Pipeline, tmp_path: Path) -> None:
    other = Pipeline(pipeline.spark, pipeline.servers, tmp_path / "other")
    pipeline.send(range(30))
    other.send(range(50))
    with (
        pipeline.running(pipeline.rows(), epoch="60 seconds") as first,
        other.running(other.rows(), epoch="60 seconds") as second,
    ):
        until(lambda: delivered(first, 30) and delivered(second, 50), "rows of both", within_s=60)
        assert distribution(tailrace.latency(first, "run"), "end_to_end").count == 30
        assert distribution(tailrace.latency(second, "run"), "end_to_end").count == 50
        [partition] = {part["topic"] for part in tailrace.latency(second).to_dict()["partitions"]}
        assert partition == other.input


def test_a_failure_is_told(pipeline: Pipeline) -> None:
    query = pipeline.rows().select(F.udf(lambda id: 1 // (id - 5), "long")("id").alias("id"))
    pipeline.send(range(10))
    with pytest.raises(Exception, match="ZeroDivisionError"), pipeline.running(query, epoch="60 seconds") as started:
        until(lambda: started.exception() is not None, "the failure", within_s=60)
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
        with pipeline.collect() as out, pipeline.running(pipeline.counts(), epoch="60 seconds") as query:
            until(lambda: len(out.rows()) == 10, "all rows", within_s=60)
            plan = query._jsq.explainInternal(False)
            query.stop()
            with pytest.raises(TailraceError, match="TAILRACE_NO_FIGURES"):
                tailrace.latency(query)
    finally:
        pipeline.spark.conf.unset("spark.tailrace.latency.enabled")
    assert "LatencyInProgress" not in plan


def test_figures_can_be_asked_for_in_any_thread(pipeline: Pipeline) -> None:
    pipeline.send(range(10))
    with pipeline.running(pipeline.rows(), epoch="60 seconds") as query:
        until(lambda: delivered(query, 10), "all rows", within_s=60)
        with ThreadPoolExecutor(max_workers=1) as another:
            report = another.submit(lambda: tailrace.latency(query, "run")).result()
            assert distribution(report, "end_to_end").count == 10


def test_executors_report_to_the_driver(
    new_session: Callable[[str], SparkSession], kafka: EmbeddedKafka, checkpoint: Path
) -> None:
    spark = new_session("local-cluster[2,3,1024]")
    pipeline = Pipeline(spark, kafka, checkpoint)
    pipeline.send(range(40))
    with pipeline.running(pipeline.counts(), epoch="60 seconds") as query:
        report = until(lambda: delivered(query, 40), "all rows", within_s=90)
        assert distribution(report, "shuffle").count == 40
        assert len(report.to_dict()["partitions"]) == 2
        monitor = tailrace.monitor.monitor_of(spark)
        until(lambda: len(monitor.snapshot().executors) >= 2, "both executors")
    # Of the session before, which has another application, nothing is left.
    assert [one.run_id for one in monitor.snapshot().queries] == [str(query.runId)]


def test_too_few_slots_are_seen(
    new_session: Callable[[str], SparkSession], kafka: EmbeddedKafka, checkpoint: Path
) -> None:
    """Spark itself says nothing: it reads one partition and never gets to the other."""
    pipeline = Pipeline(new_session("local[1]"), kafka, checkpoint)
    pipeline.spark.conf.set("spark.tailrace.check.warnOnly", "TAILRACE_TOO_FEW_SLOTS")
    with pipeline.running(pipeline.rows(), epoch="60 seconds") as query:
        found = until(
            lambda: finding_after(pipeline, query, range(50), "TAILRACE_PARTITION_NOT_READ"),
            "the finding",
            within_s=60,
        )
        assert f"{pipeline.input}/" in found.title
        assert "task slot" in found.fix


def test_sparks_own_allowlist_in_force_keeps_the_probes_out(
    new_session: Callable[[str], SparkSession], kafka: EmbeddedKafka, checkpoint: Path
) -> None:
    pipeline = Pipeline(new_session("local[4]"), kafka, checkpoint)
    pipeline.spark.conf.set("spark.sql.streaming.realTimeMode.allowlistCheck", "true")
    pipeline.send(range(10))
    with pipeline.collect() as out, pipeline.running(pipeline.counts(), epoch="60 seconds"):
        until(lambda: len(out.rows()) == 10, "all rows", within_s=60)


def test_a_dead_broker_does_not_hold_up_the_end_of_a_query(
    new_session: Callable[[str], SparkSession], checkpoint: Path
) -> None:
    spark = new_session("local[4]")
    with EmbeddedKafka() as kafka:
        pipeline = Pipeline(spark, kafka, checkpoint)
        pipeline.send(range(10))
        with pipeline.running(pipeline.rows(), epoch="5 minutes") as query:
            until(lambda: delivered(query, 10), "all rows", within_s=60)
            with stopped(kafka.pid or 0):
                # Long enough that the newest offsets are being asked for.
                until(lambda: tailrace.latency(query).lag_rows is None, "the lag is not known", within_s=30)
                begun = time.monotonic()
                query.stop()
                assert time.monotonic() - begun < 20


def test_without_a_session(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SparkSession, "getActiveSession", lambda: None)
    monkeypatch.setattr(SparkSession, "_instantiatedSession", None)
    with pytest.raises(TailraceError, match="TAILRACE_SESSION_NOT_CONFIGURED"):
        tailrace.latency(None)  # type: ignore[arg-type]


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
        with pipeline.collect() as out, pipeline.running(pipeline.counts(), epoch="60 seconds"):
            until(lambda: len(out.rows()) == 10, "all rows", within_s=60)
            until(lambda: health_of(monitor.snapshot()).is_ready, "it is ready", within_s=60)
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
        with pipeline.running(pipeline.rows(), epoch="60 seconds") as query:
            run = str(query.runId)
            until(lambda: [one for one in taken if "query_planned" in one and run in one], "its plan", within_s=60)
    finally:
        monitor._take = take
    events = [event for one in taken for event in json.loads(one)["events"] if event["run"] == run]
    assert (events[0]["type"], events[0]["real_time"]) == ("query_started", True)
