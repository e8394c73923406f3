"""With `spark.tailrace.watermark.idleAfter`, event-time timers of Python processors fire before the epoch boundary.
No epoch of these tests ends by itself."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql.streaming.stateful_processor import StatefulProcessor

import tailrace
from tailrace import EmbeddedKafka
from tailrace._process.machine_load import stretched
from tests.helpers.topics import Collector
from tests.helpers.two_streams import LIKE_REAL_TIME, TwoStreams, has_read, running
from tests.helpers.two_streams import Row as Sent
from tests.helpers.waiting import until

START = 1_000_000
FOR_EVER = "1h"
LOOKS_S = 5
CASES = 200
# As the streams have it, and as the processor does.
DELAY_S, AFTER_S = 10, 5


class AfterAWhile(StatefulProcessor):
    """Sets a timer some time after each row, and tells the watermark whenever it is called."""

    def init(self, handle: Any) -> None:
        self.handle = handle
        self.rows = handle.getValueState("rows", "n LONG")

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:
        for row in rows:
            self.rows.update(((self.rows.get() or (0,))[0] + 1,))
            at = round(row.l_at.timestamp() * 1000)
            self.handle.registerTimer(at + AFTER_S * 1000)
            yield self.told(key, "row", at, timerValues)

    def handleExpiredTimer(self, key: Any, timerValues: Any, expiredTimerInfo: Any) -> Iterator[Row]:
        yield self.told(key, "timer", expiredTimerInfo.getExpiryTimeInMs(), timerValues)

    def told(self, key: Any, kind: str, at: int, timer_values: Any) -> Row:
        watermark = timer_values.getCurrentWatermarkInMs()
        return Row(key=key[0], kind=kind, at=at, rows=self.rows.get()[0], watermark=watermark)


@pytest.fixture(scope="module")
def spark(new_session: Callable[..., SparkSession]) -> SparkSession:
    return new_session("local[12]", {**LIKE_REAL_TIME, "spark.sql.session.timeZone": "UTC"})


@pytest.fixture
def streams(spark: SparkSession, kafka: EmbeddedKafka) -> TwoStreams:
    return TwoStreams(spark, kafka)


def row(key: str, second: float, **where: int) -> Sent:
    return {"id": 0, "key": key, "at": round(START + second * 1000), "value": "1", **where}


def everywhere(second: float, **where: int) -> list[Sent]:
    """A row for each task."""
    return [row(f"time {number}", second, **where) for number in range(8)]


def processed(streams: TwoStreams) -> DataFrame:
    return (
        streams.left()
        .groupBy("l_key")
        .transformWithState(
            AfterAWhile(),
            outputStructType="key STRING, kind STRING, at LONG, rows LONG, watermark LONG",
            outputMode="Update",
            timeMode="EventTime",
        )
    )


def writer(streams: TwoStreams, output: str, checkpoint: Path) -> Any:
    return streams.writer(processed(streams), output, checkpoint, mode="update", key="key")


def told(out: Collector, kind: str) -> list[tuple[str, float, int]]:
    """Key, second, and how many rows it had by then; without those that only let time pass."""
    return [
        (result["key"], (result["at"] - START) / 1000, result["rows"])
        for result in out.rows()
        if result["kind"] == kind and not result["key"].startswith("time")
    ]


def time_passes(streams: TwoStreams, second: float, done: Callable[[], Any], what: str) -> None:
    def passed() -> Any:
        streams.send(everywhere(second))
        return done()

    until(passed, what)


def test_a_timer_fires_when_the_watermark_has_passed(
    streams: TwoStreams, checkpoint: Path, waits_for_silent_partitions: Callable[[str], None]
) -> None:
    """The processor is told of it, and what is older than it is late."""
    waits_for_silent_partitions(FOR_EVER)
    output = streams.new_output()
    with (
        Collector(streams.servers, output) as out,
        running(writer(streams, output, checkpoint)) as query,
    ):
        streams.send([row("a", 10), row("a", 12), row("b", 97)])
        time_passes(streams, 100, lambda: len(told(out, "timer")) >= 2, "the timers")
        # Too late, and then one that is not.
        streams.send([row("a", 13), row("a", 95)])
        until(lambda: len(told(out, "row")) >= 4, "the last row")
        assert [result for result in told(out, "row") if result[0] == "a"] == [("a", 10, 1), ("a", 12, 2), ("a", 95, 3)]
        assert told(out, "timer") == [("a", 15, 2), ("a", 17, 2)]
        passed = START + (100 - DELAY_S) * 1000
        assert {result["watermark"] for result in out.rows() if result["kind"] == "timer"} == {passed}
        assert [result["watermark"] for result in out.rows() if result["key"] == "a"][-1] == passed
        tailrace.drain(query, timeout_s=stretched(60))
        progress = next(progress for progress in query.recentProgress if progress.stateOperators)
        assert progress.stateOperators[0].numRowsDroppedByWatermark == 1


def test_without_the_setting_the_watermark_stands_still(streams: TwoStreams, checkpoint: Path) -> None:
    output = streams.new_output()
    with (
        Collector(streams.servers, output) as out,
        running(writer(streams, output, checkpoint)),
    ):
        streams.send([row("a", 10)])
        time_passes(streams, 100, out.rows, "the first rows")
        deadline = time.monotonic() + LOOKS_S
        time_passes(streams, 100, lambda: time.monotonic() > deadline, "several looks")
        streams.send([row("a", 13)])
        until(lambda: len(told(out, "row")) == 2, "a row that is not late")
        assert told(out, "timer") == []
        assert {result["watermark"] for result in out.rows()} == {0}


@pytest.mark.parametrize("idle_after", [FOR_EVER, "2s"])
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
    with (
        Collector(streams.servers, output) as out,
        running(writer(streams, output, checkpoint)),
    ):
        streams.send([row("a", 10, partition=0), *everywhere(10, partition=1)])
        until(out.rows, "the first rows")
        looks = time.monotonic() + LOOKS_S

        def goes_on() -> bool:
            streams.send(everywhere(100, partition=0))
            return bool(told(out, "timer")) or (idle_after == FOR_EVER and time.monotonic() > looks)

        until(goes_on, "the timer")
        if idle_after == FOR_EVER:
            assert told(out, "timer") == []

            def catches_up() -> bool:
                streams.send(everywhere(100, partition=1))
                return bool(told(out, "timer"))

            until(catches_up, "the timer")
        assert told(out, "timer") == [("a", 15, 1)]


def random_chunks(seed: int) -> list[list[Sent]]:
    """Time moves on, and no row is behind one that came before it by more than may be; and no key has two rows of the
    same time, whose timers would be one. At the end it moves so far, twice, that all timers are over."""
    chance = random.Random(seed)
    rows = []
    for case in range(CASES):
        began = chance.randrange(0, 100_000)
        times = {began + chance.randrange(0, 12_000) for _ in range(chance.randrange(1, 6))}
        rows += [row(f"k{case}", at / 1000) for at in times]
    rows += [passing for second in range(0, 112, 4) for passing in everywhere(second)]
    rows.sort(key=lambda one: one["at"] + chance.randrange(0, DELAY_S * 1000 - 1))
    size = -(-len(rows) // 4)
    chunks = [rows[start : start + size] for start in range(0, len(rows), size)]
    return [*chunks, everywhere(1000), everywhere(2000)]


def test_the_same_timers_as_in_micro_batch(
    streams: TwoStreams, tmp_path: Path, waits_for_silent_partitions: Callable[[str], None]
) -> None:
    """All of them in one epoch, and in several batches."""
    waits_for_silent_partitions(FOR_EVER)
    outputs = [streams.new_output() for _ in range(2)]
    batches = writer(streams, outputs[1], tmp_path / "micro-batch").trigger(availableNow=True)
    sent: list[Sent] = []
    with (
        Collector(streams.servers, outputs[0]) as out,
        Collector(streams.servers, outputs[1]) as in_batches,
        running(writer(streams, outputs[0], tmp_path / "real-time")) as query,
    ):
        for chunk in random_chunks(seed=3):
            streams.send(chunk)
            sent += chunk
            has_read(query, len(sent))
            # It takes longer than a step of the watermark, so that there are several.
            batch = batches.start()
            batch.awaitTermination()
            late = [o.numRowsDroppedByWatermark for one in batch.recentProgress for o in one.stateOperators]
            assert sum(late) == 0
        cases = [one for one in sent if one["key"].startswith("k")]
        expected = sorted((one["key"], (one["at"] - START + AFTER_S * 1000) / 1000) for one in cases)
        assert len(expected) > CASES

        def timers(out: Collector) -> list[tuple[str, float]]:
            return sorted((key, at) for key, at, _ in told(out, "timer"))

        until(lambda: len(timers(out)) >= len(expected), "all timers")
        assert timers(out) == expected
        assert timers(in_batches) == expected
        last: dict[str, int] = {}
        for key, _, rows in told(out, "timer"):
            last[key] = max(last.get(key, 0), rows)
        assert last == {key: sum(one["key"] == key for one in cases) for key in last}
        watermarks = [result["watermark"] for result in out.rows() if result["kind"] == "timer"]
        assert len(set(watermarks)) > 3, "hardly a step within the epoch"
