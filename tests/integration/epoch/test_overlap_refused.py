"""Where epochs cannot overlap, they follow each other as before, and the figures say why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import tailrace
from tailrace import TailraceError
from tailrace.contract.snapshot import BoundaryPause
from tests.helpers.pipeline import Pipeline
from tests.helpers.processors import counted
from tests.helpers.waiting import until

OVERLAP_KEY = "spark.tailrace.epochs.overlap"
SHORTEST_KEY = "spark.tailrace.testing.overlapShortestMs"
SPARKS_SHORTEST_KEY = "spark.sql.streaming.realTimeMode.minBatchDuration"
MULTIPLE_KEY = "spark.sql.streaming.statefulOperator.allowMultiple"
SHUFFLE_KEY = "spark.sql.shuffle.partitions"
PYTHON_STATE = "transformWithState, transformWithStateInPandas (Python)"
UNLOAD_KEY = "spark.sql.streaming.stateStore.unloadOnCommit"


@pytest.fixture(scope="module")
def spark(new_session: Callable[..., SparkSession]) -> SparkSession:
    # Enough for one epoch of a query with a shuffle, and of one without too few for two.
    return new_session("local[4]", {SHORTEST_KEY: "300", SPARKS_SHORTEST_KEY: "300"})


def reason_of(
    pipeline: Pipeline, rows: DataFrame, *, sink: str = "kafka", options: dict[str, str] | None = None
) -> str:
    """Why the epochs of a query do not overlap, after a few of them; its rows flow all the same."""
    with pipeline.collect() as out, pipeline.running(rows, epoch="1 second", sink=sink, options=options) as query:
        pipeline.send(range(20))
        until(lambda: len(out.rows()) >= 20, "rows flow")
        until(lambda: len(tailrace.latency(query).figures.boundaries) >= 2, "some boundaries")

        def told() -> BoundaryPause | None:
            pause = tailrace.latency(query).figures.pause
            return pause if pause and pause.reason else None

        pause = until(told, "the figures say why")
        assert pause.overlapped == 0
        assert f"not overlapped: {pause.reason}" in str(tailrace.latency(query))
        assert Counter(row["id"] for row in out.rows()) == Counter(range(20))
        return str(pause.reason)


def test_too_few_slots(spark: SparkSession, pipeline: Pipeline, kafka: tailrace.EmbeddedKafka) -> None:
    wide = Pipeline(spark, kafka, pipeline.checkpoint, input_partitions=3)
    assert reason_of(wide, wide.rows()) == "both epochs at once need 3 more task slots, and 1 are free"


def test_too_few_slots_for_a_shuffle(pipeline: Pipeline) -> None:
    assert reason_of(pipeline, pipeline.counts()) == "both epochs at once need 4 more task slots, and 0 are free"


def test_switched_off(spark: SparkSession, pipeline: Pipeline) -> None:
    spark.conf.set(OVERLAP_KEY, "off")
    try:
        assert reason_of(pipeline, pipeline.rows()) == f"{OVERLAP_KEY} is off"
    finally:
        spark.conf.unset(OVERLAP_KEY)


def test_transactions(pipeline: Pipeline) -> None:
    options = {"transactionInterval": "20ms"}
    reason = reason_of(pipeline, pipeline.rows(), sink="tailrace-kafka", options=options)
    assert reason == "the sink tailrace-kafka writes in transactions"


@pytest.mark.parametrize(
    ("query_of", "operation"),
    [
        (lambda rows: rows.dropDuplicatesWithinWatermark(["id"]), "dropDuplicatesWithinWatermark"),
        (
            lambda rows: rows.groupBy("id", F.session_window("at", "1 second")).agg(F.count("*").alias("n")),
            "session_window(…)",
        ),
    ],
)
def test_rows_that_a_replay_could_make_otherwise(
    pipeline: Pipeline, query_of: Callable[[DataFrame], DataFrame], operation: str
) -> None:
    reason = reason_of(pipeline, query_of(timed(pipeline.rows())), sink="tailrace-kafka")
    assert reason == f"{operation} does not overlap epochs if each row is written once"


def test_a_join_whose_rows_are_written_once(spark: SparkSession, pipeline: Pipeline) -> None:
    # Two sources of one partition each, and one task of the join.
    one = Pipeline(spark, pipeline.servers, pipeline.checkpoint, input_partitions=1)
    spark.conf.set(SHUFFLE_KEY, "1")
    try:
        numbers = one.rows().select(F.col("id").alias("number"))
        joined = one.rows().join(numbers, F.expr("id = number")).select("id", "key")
        reason = reason_of(one, joined, sink="tailrace-kafka")
    finally:
        spark.conf.set(SHUFFLE_KEY, "2")
    assert reason == "stream-stream join does not overlap epochs if each row is written once"


def test_a_python_processor_if_each_row_is_written_once(pipeline: Pipeline) -> None:
    reason = reason_of(pipeline, counted(pipeline.rows()), sink="tailrace-kafka")
    assert reason == f"{PYTHON_STATE} does not overlap epochs if each row is written once"


def timed(rows: DataFrame) -> DataFrame:
    return rows.withColumn("at", F.timestamp_seconds(F.col("id") + 1_000_000)).withWatermark("at", "1 hour")


def test_state_that_does_not_stay(spark: SparkSession, pipeline: Pipeline) -> None:
    spark.conf.set(UNLOAD_KEY, "true")
    try:
        assert reason_of(pipeline, pipeline.counts()) == "state stores are unloaded after each epoch"
    finally:
        spark.conf.unset(UNLOAD_KEY)


@pytest.mark.parametrize(
    ("query_of", "reason"),
    [
        (
            lambda rows: tailrace.drop_duplicates(timed(rows), ["id"], ttl="10 minutes"),
            "transformWithState (JVM) with a watermark does not overlap epochs",
        ),
        (lambda rows: counted(timed(rows)), f"{PYTHON_STATE} with a watermark does not overlap epochs"),
        (lambda rows: rows.withColumn("at", F.current_timestamp()), "it asks for the current time or user"),
        (lambda rows: rows.observe("seen", F.count("*").alias("n")), "observe does not overlap epochs"),
    ],
)
def test_operations(pipeline: Pipeline, query_of: Callable[[DataFrame], DataFrame], reason: str) -> None:
    assert reason_of(pipeline, query_of(pipeline.rows())) == reason


def test_rows_that_are_late_by_the_watermark_of_their_own_epoch(spark: SparkSession, pipeline: Pipeline) -> None:
    spark.conf.set(MULTIPLE_KEY, "false")
    try:
        assert reason_of(pipeline, timed(pipeline.rows()).dropDuplicates(["id"])) == f"{MULTIPLE_KEY} is off"
    finally:
        spark.conf.unset(MULTIPLE_KEY)


def test_a_setting_that_makes_no_sense(spark: SparkSession, pipeline: Pipeline) -> None:
    spark.conf.set(OVERLAP_KEY, "sometimes")
    try:
        with pytest.raises(TailraceError) as refused, pipeline.running(pipeline.rows(), epoch="1 second"):
            pass
    finally:
        spark.conf.unset(OVERLAP_KEY)
    assert refused.value.code == "TAILRACE_BAD_SETTING"
