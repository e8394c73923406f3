"""`session_window`: the same sessions as in micro-batch, and an update at each change."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import AnalysisException, StreamingQueryException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

import tailrace
from tailrace import EmbeddedKafka, TailraceError
from tailrace._process.machine_load import stretched
from tests.helpers.topics import Collector
from tests.helpers.two_streams import LIKE_REAL_TIME, Row, TwoStreams, has_read, running
from tests.helpers.waiting import until

CASES = 200
START = 1_000_000  # a multiple of ten seconds, for times that read well
GAP = "5 seconds"
# Some rows keep their session open for longer than others.
DYNAMIC_GAP = "CASE WHEN l_id % 3 = 0 THEN '9 seconds' WHEN l_id % 7 = 0 THEN '2 seconds' ELSE '5 seconds' END"


@pytest.fixture(scope="module")
def spark(new_session: Callable[..., SparkSession]) -> SparkSession:
    return new_session("local[24]", LIKE_REAL_TIME)


@pytest.fixture
def streams(spark: SparkSession, kafka: EmbeddedKafka) -> TwoStreams:
    return TwoStreams(spark, kafka)


def row(number: int, key: str, second: float) -> Row:
    return {"id": number, "key": key, "at": int(START + second * 1000), "value": "1"}


def sessions(streams: TwoStreams, *more: Column, gap: str = f"'{GAP}'") -> DataFrame:
    results = streams.left().groupBy(F.session_window("l_at", F.expr(gap)).alias("session"), "l_key")
    return results.agg(
        F.count("*").alias("rows"),
        F.sum("l_id").alias("sum"),
        F.sort_array(F.collect_list("l_id")).alias("ids"),
        *more,
    ).select(
        "*", (F.unix_millis("session.start") - START).alias("from"), (F.unix_millis("session.end") - START).alias("to")
    )


def told(out: Collector) -> list[tuple[Any, ...]]:
    """Key, start and end in seconds, ids and status of each result, in the order in which they came."""
    return [
        (result["l_key"], result["from"] / 1000, result["to"] / 1000, result["ids"], result.get("status"))
        for result in out.rows()
    ]


def test_a_session_is_told_of_as_it_grows(streams: TwoStreams, checkpoint: Path) -> None:
    output = streams.new_output()
    writer = streams.writer(
        sessions(streams, tailrace.session_status()), output, checkpoint, mode="update", key="l_key"
    )
    with Collector(streams.servers, output) as out, running(writer) as query:
        expected = [
            (row(1, "a", 10), [("a", 10, 15, [1], "open")]),
            (row(2, "a", 12), [("a", 10, 17, [1, 2], "open")]),
            (row(3, "a", 25), [("a", 25, 30, [3], "open")]),
            (row(4, "b", 17), [("b", 17, 22, [4], "open")]),
            # It begins when the first one ends, and ends before the second one begins.
            (row(5, "a", 17), [("a", 10, 22, [1, 2, 5], "open")]),
            # Between the two, and touches both.
            (row(6, "a", 21), [("a", 25, 30, [3], "merged"), ("a", 10, 30, [1, 2, 3, 5, 6], "open")]),
            # Earlier than what is there: the session has another start from now on.
            (row(7, "b", 13), [("b", 17, 22, [4], "merged"), ("b", 13, 22, [4, 7], "open")]),
        ]
        before: list[tuple[Any, ...]] = []
        for sent, results in expected:
            streams.send([sent])
            before += results
            until(lambda: len(out.rows()) >= len(before), f"the change by {sent}")  # noqa: B023
            assert told(out) == before
        assert "RealTimeSessions" in query._jsq.explainInternal(False)


def test_without_the_status_only_growth_is_told(streams: TwoStreams, tmp_path: Path) -> None:
    output = streams.new_output()
    writer = streams.writer(sessions(streams), output, tmp_path, mode="update", key="l_key")
    with Collector(streams.servers, output) as out:
        one_epoch(streams, writer, [row(1, "a", 1), row(2, "a", 11), row(3, "a", 6), row(4, "end", 1000)])
        one_epoch(streams, writer, [row(5, "end", 2000)])
        until(lambda: len(out.rows()) >= 5, "the updates")
        assert [result for result in told(out) if result[0] == "a"] == [
            ("a", 1, 6, [1], None),
            ("a", 11, 16, [2], None),
            ("a", 1, 16, [1, 2, 3], None),
        ]


def one_epoch(streams: TwoStreams, writer: Any, rows: list[Row]) -> None:
    streams.send(rows)
    with running(writer) as query:
        has_read(query, len(rows))
        tailrace.drain(query, timeout_s=stretched(60))


def one_batch(writer: Any) -> int:
    """How many rows were too late."""
    query = writer.trigger(availableNow=True).start()
    query.awaitTermination()
    return sum(
        operator.numRowsDroppedByWatermark for batch in query.recentProgress for operator in batch.stateOperators
    )


def random_phases(seed: int) -> list[list[Row]]:
    """What comes in each epoch: each key is a case of few rows, some near each other, some far, in any order and as
    late as may be. At the end time moves on, so that all sessions close."""
    chance = random.Random(seed)
    phases: list[list[Row]] = [[], [], [], []]
    number = 0
    for case in range(CASES):
        for _ in range(chance.randrange(1, 9)):
            phase = chance.randrange(3)
            second = 100 + phase * 12 + chance.randrange(-35_000, 14_000) / 1000
            # Touching to the millisecond is a case of its own.
            phases[phase].append(row(number, f"k{case}", round(second) if chance.random() < 0.5 else second))
            number += 1
    for rows in phases:
        chance.shuffle(rows)
    phases[2].append(row(number, "end", 1000))
    phases[3].append(row(number + 1, "end", 2000))
    return phases


@pytest.mark.parametrize(
    "gap", [pytest.param(f"'{GAP}'", id="fixed", marks=pytest.mark.chaos), pytest.param(DYNAMIC_GAP, id="dynamic")]
)
def test_the_same_sessions_as_in_micro_batch(streams: TwoStreams, tmp_path: Path, gap: str) -> None:
    """With a restart after each epoch; `append` in micro-batch, and both modes in real time."""
    outputs = {kind: streams.new_output() for kind in ("micro-batch", "append", "update")}

    def writer(kind: str) -> Any:
        query = sessions(streams, tailrace.session_status(), gap=gap)
        mode = "update" if kind == "update" else "append"
        return streams.writer(query, outputs[kind], tmp_path / kind, mode=mode, key="l_key")

    late = 0
    with ExitStack() as collectors:
        out = {kind: collectors.enter_context(Collector(streams.servers, topic)) for kind, topic in outputs.items()}
        for rows in random_phases(seed=11):
            streams.send(rows)
            late += one_batch(writer("micro-batch"))
            with running(writer("append")) as append, running(writer("update")) as update:
                for query in (append, update):
                    has_read(query, len(rows))
                for query in (append, update):
                    tailrace.drain(query, timeout_s=stretched(60))
        assert late > CASES / 20, "hardly any row was late"
        until(lambda: len(out["append"].rows()) == len(out["micro-batch"].rows()) > CASES, "as many")
        expected = sorted(told(out["micro-batch"]))
        assert len(expected) > CASES, "hardly a key with two sessions"
        assert {status for *_, status in expected} == {"closed"}
        assert sorted(told(out["append"])) == expected
        updates = told(out["update"])
        assert sorted(result for result in updates if result[-1] == "closed") == expected
        assert sum(result[-1] == "merged" for result in updates) > CASES / 10, "hardly any sessions merged"
        assert last_of_each(updates) == {result[:2]: result for result in expected}


def last_of_each(updates: list[tuple[Any, ...]]) -> dict[Any, tuple[Any, ...]]:
    """What a table by key and start holds in the end, if `merged` takes a row out. The session that lets time move on
    does not close itself."""
    table = {result[:2]: result for result in updates if result[0] != "end"}
    return {place: result for place, result in table.items() if result[-1] != "merged"}


def test_a_checkpoint_moves_between_the_modes(streams: TwoStreams, tmp_path: Path) -> None:
    output = streams.new_output()
    writer = streams.writer(sessions(streams), output, tmp_path, mode="append")
    with Collector(streams.servers, output) as out:
        one_epoch(streams, writer, [row(1, "a", 10), row(2, "a", 20)])
        streams.send([row(3, "a", 24)])
        one_batch(writer)
        one_epoch(streams, writer, [row(4, "a", 15), row(5, "b", 12), row(6, "end", 1000)])
        streams.send([row(7, "end", 2000)])
        one_batch(writer)
        until(lambda: len(out.rows()) >= 2, "the sessions")
        assert sorted(told(out)) == [("a", 10, 29, [1, 2, 3, 4], None), ("b", 12, 17, [5], None)]


def test_a_stop_loses_nothing(streams: TwoStreams, checkpoint: Path) -> None:
    """The open epoch is computed again: results of it come twice, as with any query."""
    output = streams.new_output()
    writer = streams.writer(sessions(streams), output, checkpoint, mode="update", key="l_key")
    with Collector(streams.servers, output) as out:
        streams.send([row(1, "a", 10), row(2, "a", 12)])
        with running(writer):
            until(lambda: len(out.rows()) == 2, "the first")
        streams.send([row(3, "a", 14)])
        with running(writer):
            until(lambda: told(out)[-1] == ("a", 10, 19, [1, 2, 3], None), "the rest")


def test_each_update_once_into_the_exactly_once_sink(streams: TwoStreams, checkpoint: Path) -> None:
    output = streams.new_output()
    values = sessions(streams).select(F.to_json(F.struct("*")).alias("value"))
    writer = (
        values.writeStream.format("tailrace-kafka")
        .option("kafka.bootstrap.servers", streams.servers)
        .option("topic", output)
        .option("checkpointLocation", str(checkpoint))
        .outputMode("update")
    )
    with Collector(streams.servers, output) as out:
        streams.send([row(number, f"k{number % 3}", 10 + number) for number in range(9)])
        with running(writer):
            until(lambda: len(out.rows()) == 9, "the first")
        streams.send([row(9, "k0", 19)])
        with running(writer):
            until(lambda: len(out.rows()) >= 10, "the last")
        assert len(out.rows()) == 10
        assert told(out)[-1] == ("k0", 10, 24, [0, 3, 6, 9], None)


def everywhere(second: float, **where: int) -> list[Row]:
    """A row for each task that keeps sessions."""
    return [{**row(0, f"time {number}", second), **where} for number in range(8)]


def test_a_session_can_close_within_an_epoch(
    streams: TwoStreams, checkpoint: Path, waits_for_silent_partitions: Callable[[str], None]
) -> None:
    waits_for_silent_partitions("1h")
    output = streams.new_output()
    writer = streams.writer(
        sessions(streams, tailrace.session_status()), output, checkpoint, mode="update", key="l_key"
    )

    def of_a() -> list[tuple[Any, ...]]:
        return [result for result in told(out) if result[0] == "a"]

    def time_passes_until(told_of_a: int) -> None:
        def enough() -> bool:
            streams.send(everywhere(100))
            return len(of_a()) >= told_of_a

        until(enough, f"{told_of_a} results")

    with Collector(streams.servers, output) as out, running(writer):
        streams.send([row(1, "a", 10), row(2, "a", 12)])
        time_passes_until(told_of_a=3)
        # Too late, and then one that is not.
        streams.send([row(3, "a", 13), row(4, "a", 100)])
        time_passes_until(told_of_a=4)
        assert of_a() == [
            ("a", 10, 15, [1], "open"),
            ("a", 10, 17, [1, 2], "open"),
            ("a", 10, 17, [1, 2], "closed"),
            ("a", 100, 105, [4], "open"),
        ]


@pytest.mark.parametrize("idle_after", ["1h", "2s"])
def test_a_partition_that_is_behind_is_waited_for(
    spark: SparkSession,
    kafka: EmbeddedKafka,
    checkpoint: Path,
    waits_for_silent_partitions: Callable[[str], None],
    idle_after: str,
) -> None:
    """Unless it has been silent for long enough."""
    waits_for_silent_partitions(idle_after)
    streams = TwoStreams(spark, kafka, partitions=2)
    output = streams.new_output()
    writer = streams.writer(sessions(streams), output, checkpoint, mode="append")
    with Collector(streams.servers, output) as out, running(writer) as query:
        streams.send([{**row(1, "a", 10), "partition": 0}, *everywhere(10, partition=1)])
        has_read(query, 9)

        def closes_the_session(partition: int) -> bool:
            streams.send(everywhere(100, partition=partition))
            return ("a", 10, 15, [1], None) in told(out)

        if idle_after == "1h":
            looks = time.monotonic() + 6
            sent = 9
            while time.monotonic() < looks and not closes_the_session(partition=0):
                sent += 8
                has_read(query, sent)
            assert told(out) == []
            until(lambda: closes_the_session(partition=1), "the session")
        else:
            # Until it is there, and not only once: to a task that is behind, either partition may be the last to speak.
            until(lambda: closes_the_session(partition=0), "the session")


def test_a_length_of_time_that_is_none_is_refused(
    streams: TwoStreams, checkpoint: Path, waits_for_silent_partitions: Callable[[str], None]
) -> None:
    waits_for_silent_partitions("soon")
    writer = streams.writer(sessions(streams), streams.new_output(), checkpoint, mode="update")
    with pytest.raises(TailraceError) as refused:
        writer.trigger(realTime="10 minutes").start()  # type: ignore[call-overload]
    assert refused.value.code == "TAILRACE_BAD_SETTING"
    assert "spark.tailrace.watermark.idleAfter" in str(refused.value)


def test_an_error_names_the_record(streams: TwoStreams, checkpoint: Path) -> None:
    numbers = streams.left().groupBy(F.session_window("l_at", GAP), "l_key").agg(F.sum(F.col("l_value").cast("int")))
    writer = streams.writer(numbers, streams.new_output(), checkpoint, mode="update")
    with pytest.raises(StreamingQueryException) as failure, running(writer) as query:  # noqa: PT012
        streams.send([row(1, "a", 10), {**row(2, "a", 11), "value": "no number"}])
        until(query.exception, "the failure")
    message = str(failure.value)
    assert f"topic '{streams.left_topic}', partition 0, offset 1" in message, message


def test_a_row_that_cannot_be_added_is_left_out_if_told_to(streams: TwoStreams, checkpoint: Path) -> None:
    """The session stays as it was, and those that follow are not concerned."""
    total = F.sum(F.col("l_value").cast("long")).alias("total")
    totals = streams.left().groupBy(F.session_window("l_at", GAP), "l_key").agg(total)
    output = streams.new_output()
    writer = streams.writer(totals, output, checkpoint, mode="update", key="l_key").option("onError", "drop")
    too_much = str(2**63 - 1)
    with Collector(streams.servers, output) as out, running(writer):
        streams.send([row(1, "a", 10), {**row(2, "a", 11), "value": too_much}, row(3, "a", 12), row(4, "b", 10)])
        until(lambda: len(out.rows()) >= 3, "the others")
        assert [(result["l_key"], result["total"]) for result in out.rows() if result["l_key"] == "a"] == [
            ("a", 1),
            ("a", 2),
        ]


def test_the_status_needs_a_session(streams: TwoStreams, checkpoint: Path) -> None:
    counts = streams.left().groupBy("l_key").agg(tailrace.session_status())
    writer = streams.writer(counts, streams.new_output(), checkpoint, mode="update")
    with pytest.raises(TailraceError) as refused:
        writer.trigger(realTime="10 minutes").start()  # type: ignore[call-overload]
    assert refused.value.code == "TAILRACE_STATUS_WITHOUT_SESSION"


def test_closed_sessions_alone_need_a_watermark(streams: TwoStreams, checkpoint: Path) -> None:
    """Spark says so itself, in micro-batch too."""
    without = streams.left().withColumn("at", F.col("l_at") + F.expr("INTERVAL 0 SECONDS")).drop("l_at")
    counts = without.groupBy(F.session_window("at", GAP), "l_key").count()
    writer = streams.writer(counts, streams.new_output(), checkpoint, mode="append")
    with pytest.raises((AnalysisException, TailraceError)) as refused:
        writer.trigger(realTime="10 minutes").start()  # type: ignore[call-overload]
    assert "watermark" in str(refused.value)
