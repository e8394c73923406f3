"""The check inside `start()`, and what it takes into account of the application."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery

import tailrace
from tailrace import EmbeddedKafka, TailraceError
from tailrace.check import start_hook
from tailrace.check.check import WARN_ONLY_KEY
from tests.helpers.check_world import World
from tests.helpers.processes import run_python
from tests.helpers.topics import new_topic
from tests.helpers.waiting import until


@pytest.fixture
def world(spark: SparkSession, kafka: EmbeddedKafka, tmp_path: Path) -> World:
    return World(spark, kafka.bootstrap_servers, tmp_path)


@contextmanager
def running(writer: Any) -> Iterator[StreamingQuery]:
    query = writer.start()
    try:
        yield query
    finally:
        query.stop()


@contextmanager
def warn_only(spark: SparkSession, codes: str) -> Iterator[None]:
    spark.conf.set(WARN_ONLY_KEY, codes)
    try:
        yield
    finally:
        spark.conf.unset(WARN_ONLY_KEY)


def test_all_reasons_are_in_one_error(world: World) -> None:
    writer = world.write(world.rows().limit(3), "noop", mode="append", epoch="1 second")
    with pytest.raises(TailraceError) as failure:
        writer.start()
    assert failure.value.code == "TAILRACE_CHECK_FAILED"
    for code in ("UNSUPPORTED_OPERATOR", "UNSUPPORTED_SINK", "OUTPUT_MODE", "EPOCH_TOO_SHORT"):
        assert f"[TAILRACE_{code}]" in failure.value.problem


def test_arguments_of_start_are_checked_too(world: World) -> None:
    writer: Any = world.rows().select("value").writeStream.trigger(realTime="1 minute")  # type: ignore[call-overload]
    with pytest.raises(TailraceError) as failure:
        writer.start(format="noop", outputMode="append", queryName="named", checkpointLocation=str(world.folder / "c"))
    assert "sink 'noop'" in failure.value.problem
    assert "'append'" in failure.value.problem


def test_warnings_are_logged_once(world: World, caplog: pytest.LogCaptureFixture) -> None:
    start_hook._logged.clear()
    with caplog.at_level(logging.WARNING, "tailrace.check"):
        for turn in range(2):
            with running(
                world.to_kafka(world.rows().dropDuplicates(["id"]), checkpointLocation=f"{world.folder}/{turn}")
            ):
                pass
    said = [record.getMessage() for record in caplog.records if record.name == "tailrace.check"]
    assert len([message for message in said if "[TAILRACE_UNBOUNDED_STATE]" in message]) == 1


def test_one_code_can_be_taken_upon_oneself(world: World, kafka: EmbeddedKafka) -> None:
    world.topic = new_topic(kafka.bootstrap_servers, "many", partitions=9)
    writer = world.to_kafka(world.rows())
    with warn_only(world.spark, "TAILRACE_TOO_FEW_SLOTS"):
        verdict = tailrace.check(writer)
        assert not verdict.blocked
        assert "TAILRACE_TOO_FEW_SLOTS" in [finding.code for finding in verdict.findings]
        with running(writer) as query:
            assert query.isActive
        with pytest.raises(TailraceError, match="TAILRACE_OUTPUT_MODE"):
            world.to_kafka(world.rows()).outputMode("append").start()
    with pytest.raises(TailraceError, match="TAILRACE_TOO_FEW_SLOTS"):
        writer.start()


def test_there_is_no_switch_for_all(world: World) -> None:
    with warn_only(world.spark, "all"), pytest.raises(TailraceError) as failure:
        world.to_kafka(world.rows()).start()
    assert failure.value.code == "TAILRACE_BAD_SETTING"


def test_slots_that_other_queries_hold(world: World) -> None:
    first = world.to_kafka(world.rows().groupBy("key").count(), checkpointLocation=f"{world.folder}/first")
    second = world.to_kafka(world.rows().groupBy("key").count(), checkpointLocation=f"{world.folder}/second")
    with running(first.queryName("first")):
        with pytest.raises(TailraceError) as failure:
            second.start()
        assert failure.value.code == "TAILRACE_TOO_FEW_SLOTS"
        assert "4 by 'first'" in failure.value.problem
    assert not tailrace.check(second).blocked


def test_a_run_that_takes_the_place_of_another(world: World) -> None:
    """As Spark does: a notebook's cell that is run again."""
    query = world.rows().groupBy("key").count()
    with running(world.to_kafka(query)) as before, running(world.to_kafka(query)) as after:
        assert after.isActive
        assert not before.isActive


def test_a_name_that_is_taken(world: World) -> None:
    with running(world.to_kafka(world.rows()).queryName("there before")):
        other = world.to_kafka(world.rows(), checkpointLocation=f"{world.folder}/other").queryName("there before")
        with pytest.raises(TailraceError) as failure:
            other.start()
    assert failure.value.code == "TAILRACE_NAME_TAKEN"


def test_a_checkpoint_of_its_own_is_gone_on_with(world: World) -> None:
    query = world.rows().groupBy("key").count()
    with running(
        world.to_kafka(query, checkpointLocation=f"{world.folder}/own").trigger(realTime="5 seconds")
    ) as first:
        until(lambda: first.lastProgress, "an epoch that is committed")
    assert not tailrace.check(world.to_kafka(query, checkpointLocation=f"{world.folder}/own")).blocked


def test_a_query_takes_nothing_away_from_itself(world: World) -> None:
    with running(world.to_kafka(world.rows().groupBy("key").count())) as query:
        assert not tailrace.check(query).blocked


def test_a_dataframe_without_a_sink(world: World) -> None:
    verdict = tailrace.check(world.rows().groupBy("key").count())
    assert not verdict.blocked
    assert verdict.shape.arithmetic == "2 + 2 = 4"
    assert verdict.shape.sink is None


def test_a_micro_batch_query_that_runs(world: World) -> None:
    writer = world.to_kafka(world.rows()).trigger(processingTime="1 second").outputMode("append")
    with running(writer.queryName("batches")) as query:
        query.processAllAvailable()
        verdict = tailrace.check(query, from_micro_batch=True)
    places = {finding.title for finding in verdict.findings if finding.code == "TAILRACE_FROM_MICRO_BATCH"}
    assert {"trigger", "output mode", "duplicates", "checkpoint", "latency", "task slots"} == places
    blocking = {finding.code for finding in verdict.findings if finding.severity == "blocking"}
    assert blocking == {"TAILRACE_OUTPUT_MODE", "TAILRACE_CHECKPOINT_FORMAT"}
    assert verdict.name == "batches"


def test_records_that_arrive_old(world: World) -> None:
    """A producer that stamps records and keeps them."""
    stop = threading.Event()

    def lag_behind() -> None:
        producer = Producer({"bootstrap.servers": world.servers, "linger.ms": 0})
        while not stop.wait(0.01):
            producer.produce(world.topic, value=b"{}", timestamp=int(time.time() * 1000) - 150)
            producer.poll(0)
        producer.flush()

    sender = threading.Thread(target=lag_behind)
    sender.start()
    try:
        verdict = tailrace.check(world.to_kafka(world.rows()))
    finally:
        stop.set()
        sender.join()
    assert "TAILRACE_RECORDS_ARRIVE_OLD" in [finding.code for finding in verdict.findings], verdict


def test_a_broker_that_does_not_answer(world: World) -> None:
    world.servers = "127.0.0.1:1"
    verdict = tailrace.check(world.to_kafka(world.rows()))
    assert "TAILRACE_BROKER_UNREACHABLE" in [finding.code for finding in verdict.findings]
    assert verdict.shape.slots is None


def test_what_is_no_query(world: World) -> None:
    for nothing in (world.table(), "rows", None):
        with pytest.raises(TailraceError) as failure:
            tailrace.check(nothing)  # type: ignore[arg-type]
        assert failure.value.code == "TAILRACE_NOTHING_TO_CHECK"


def test_a_session_without_the_plugin() -> None:
    result = run_python(
        "import tailrace\n"
        "from pyspark.sql import SparkSession\n"
        "spark = SparkSession.builder.master('local[1]').config('spark.ui.enabled', 'false').getOrCreate()\n"
        "try: tailrace.check(spark.readStream.format('rate').load())\n"
        "except tailrace.TailraceError as error: print(error.code)\n"
    )
    assert result.stdout.split() == ["TAILRACE_SESSION_NOT_CONFIGURED"], result.stderr


def test_explain_and_size_know_the_query(world: World) -> None:
    writer = world.to_kafka(world.rows().select(F.udf(len, "int")("value").alias("n")).groupBy("n").count())
    text = str(tailrace.explain(writer))
    assert "2 + 2 = 4 task slots" in text
    assert f"reads kafka: {world.topic}" in text
    assert "◆ udf" in text
    assert "writes to kafka" in text
    sizing = tailrace.size(writer, rows_per_s=1000, throughput_rows_per_s=10_000, keys=1000)
    assert sizing.slots == 4
    with pytest.raises(TailraceError) as failure:
        tailrace.size(writer, rows_per_s=0)
    assert failure.value.code == "TAILRACE_BAD_SIZE"


def test_size_of_a_query_that_runs(world: World) -> None:
    with running(world.to_kafka(world.rows().groupBy("key").count())) as query:
        assert tailrace.size(query, keys=10).slots == 4
