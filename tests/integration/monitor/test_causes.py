"""Latency shows where rows are delayed: in a function, before a shuffle, in one task, on the broker."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

import tailrace
from tailrace import EmbeddedKafka
from tailrace._process.machine_load import stretched
from tailrace.results import Finding, Latency
from tests.helpers.pipeline import Pipeline
from tests.helpers.waiting import comparing_times, let_pass, until
from tests.integration.monitor.queries import F, delivered, distribution, fed_by, recorded, reported, stopped


def finding(query: StreamingQuery, code: str) -> Finding | None:
    return next((one for one in tailrace.latency(query).findings if one.code == code), None)


def finding_after(
    pipeline: Pipeline, query: StreamingQuery, ids: range, code: str, *, keys: int = 10
) -> Finding | None:
    """The finding, if it is there after these rows."""
    pipeline.send(ids, keys=keys)
    return finding(query, code)


def acknowledged(query: StreamingQuery, rows: int) -> Latency | None:
    """The report, when the sink has all rows and at least those that stand for half of them are acknowledged."""
    report = reported(query, rows)
    return report if report is not None and recorded(report, "end_to_end") > rows / 2 else None


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
    with pipeline.running(query, epoch="10 minutes") as started:
        # Warm first: a worker that starts is slow too.
        pipeline.send(range(20))
        until(lambda: delivered(started, 20), "the first rows")
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
            until(slow_row_is_found, code)
        figures = measurement.latency
        assert distribution(figures, "processing").max_ms >= 800
        with comparing_times():
            assert distribution(figures, "source_queue").max_ms < 800


def test_a_slow_row_before_a_shuffle_shows_in_the_first_stage(pipeline: Pipeline) -> None:
    @F.udf("long")  # type: ignore[untyped-decorator]
    def slow(id: int) -> int:
        if id == 77:
            time.sleep(0.8)  # noqa: TID251 (a user's slow function)
        return id

    query = pipeline.rows().select(slow("id").alias("id"), "key").repartition(2, "key")
    with pipeline.running(query, epoch="10 minutes") as started:
        pipeline.send(range(20))
        until(lambda: delivered(started, 20), "the first rows")
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
    with pipeline.running(pipeline.rows().repartition(2, "key"), epoch="10 minutes") as query:
        # Rows are counted when the sink gets them, and timed end to end when the broker has acknowledged them.
        report = until(lambda: acknowledged(query, rows), "all rows, acknowledged")
    assert report.to_dict()["windows"]["run"]["rows_in"] == rows
    assert report.to_dict()["windows"]["run"]["rows_out"] == rows
    for figure in ("source_queue", "shuffle", "processing", "end_to_end"):
        # Those at the end of every 20 ms have nobody to stand for them.
        assert rows / 2 < distribution(report, figure).count <= rows


def test_a_hot_key_shows_in_the_task_that_gets_it(pipeline: Pipeline) -> None:
    with pipeline.running(pipeline.counts(), epoch="10 minutes") as query:
        pipeline.send(range(20))
        until(lambda: delivered(query, 20), "the first rows")
        found = until(lambda: finding_after(pipeline, query, range(200), "TAILRACE_SKEWED_KEYS", keys=1), "the finding")
        assert "One task of stage 1 gets" in found.title
        assert finding(query, "TAILRACE_HOT_PARTITION") is not None, "its records are in one partition too"


def test_a_broker_that_stops_shows_outside_of_the_query(spark: SparkSession, checkpoint: Path) -> None:
    with EmbeddedKafka() as kafka:
        pipeline = Pipeline(spark, kafka, checkpoint)
        with pipeline.running(pipeline.numbered(), epoch="10 minutes") as query, fed_by(pipeline) as load:
            load.wait_for_output(timeout_s=stretched(60), records=400)
            with tailrace.measure(query) as measurement:
                with stopped(kafka.pid or 0):
                    let_pass(1.2)
                load.wait_for_output(timeout_s=stretched(30), records=800)
            inside = measurement.latency
            with comparing_times():
                # Waiting for the broker is not the query's doing.
                assert max(distribution(inside, name).max_ms for name in ("source_queue", "acknowledgement")) >= 500
                assert distribution(inside, "processing").max_ms < 500
                codes = {one.code for one in inside.findings}
                assert codes & {"TAILRACE_SLOW_BROKER", "TAILRACE_LATE_RECORDS", "TAILRACE_SLOW_SINK"}
                assert "TAILRACE_SLOW_PYTHON" not in codes


def test_a_backlog_is_called_one(pipeline: Pipeline) -> None:
    @F.udf("long")  # type: ignore[untyped-decorator]
    def slow(id: int) -> int:
        time.sleep(0.02)  # noqa: TID251 (a user's slow function)
        return id

    pipeline.send(range(20_000))
    with pipeline.running(pipeline.rows().select(slow("id").alias("id")), epoch="10 minutes") as query:
        found = until(lambda: finding(query, "TAILRACE_LAGGING"), "the finding")
        report = tailrace.latency(query)
        assert report.status == "lagging"
        assert (report.lag_rows or 0) > 10_000
        assert "backlog" in found.detail


def test_too_few_slots_are_seen(
    new_session: Callable[[str], SparkSession], kafka: EmbeddedKafka, checkpoint: Path
) -> None:
    """Spark itself says nothing: it reads one partition and never gets to the other."""
    pipeline = Pipeline(new_session("local[1]"), kafka, checkpoint)
    pipeline.spark.conf.set("spark.tailrace.check.warnOnly", "TAILRACE_TOO_FEW_SLOTS")
    with pipeline.running(pipeline.rows(), epoch="10 minutes") as query:
        found = until(
            lambda: finding_after(pipeline, query, range(50), "TAILRACE_PARTITION_NOT_READ"),
            "the finding",
            within_s=60,
        )
        assert f"{pipeline.input}/" in found.title
        assert "task slot" in found.fix
