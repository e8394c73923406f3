"""Python's `transformWithState` does in Real-Time Mode what it does in micro-batch, row by row."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pandas as pd
import pytest
from pyspark.sql import Row
from pyspark.sql import functions as F
from pyspark.sql.streaming.stateful_processor import StatefulProcessor

import tailrace
from tests.helpers.pipeline import Pipeline
from tests.helpers.topics import Collector, produce
from tests.helpers.waiting import until

LONG_EPOCH = "10 minutes"


def keyed(pipeline: Pipeline) -> Any:
    return pipeline.rows().groupBy("key")


class Alarm(StatefulProcessor):
    """Sets a timer for each row and tells how late it fired."""

    def __init__(self, after_ms: int) -> None:
        self.after_ms = after_ms

    def init(self, handle: Any) -> None:
        self.handle = handle
        self.rows = handle.getValueState("rows", "n LONG")

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:
        for row in rows:
            n = (self.rows.get() or (0,))[0] + 1
            self.rows.update((n,))
            now = timerValues.getCurrentProcessingTimeInMs()
            if row.id < 0:
                for timer in list(self.handle.listTimers()):
                    self.handle.deleteTimer(timer)
            else:
                # Later for a later row: two timers of a key at the same time would be one.
                self.handle.registerTimer(now + self.after_ms + row.id)
            yield Row(key=key[0], kind="row", n=n, late=0)

    def handleExpiredTimer(self, key: Any, timerValues: Any, expiredTimerInfo: Any) -> Iterator[Row]:
        late = timerValues.getCurrentProcessingTimeInMs() - expiredTimerInfo.getExpiryTimeInMs()
        yield Row(key=key[0], kind="timer", n=self.rows.get()[0], late=late)


ALARMS = "key STRING, kind STRING, n LONG, late LONG"


def fired(out: Collector) -> list[dict[str, Any]]:
    return [row for row in out.rows() if row["kind"] == "timer"]


def test_timers_fire_though_nothing_arrives(pipeline: Pipeline) -> None:
    alarms = keyed(pipeline).transformWithState(Alarm(700), ALARMS, "Update", "ProcessingTime")
    with pipeline.collect() as out, pipeline.running(alarms, epoch=LONG_EPOCH) as query:
        pipeline.wait_until_reading(query)
        pipeline.send(range(20))
        until(lambda: len(fired(out)) >= 20 or query.exception(), "every timer")
        assert {row["n"] for row in fired(out)} == {2}, "the timer does not see the state"
        late = sorted(row["late"] for row in fired(out))
        assert late[0] >= 0
        assert late[len(late) // 2] <= 100, f"timers fire late: {late}"
        # Timers that were deleted do not fire.
        pipeline.send(range(20, 30))
        produce(pipeline.servers, pipeline.input, ({"id": -1, "key": f"k{n}"} for n in range(5)))
        until(lambda: len(fired(out)) >= 25 or query.exception(), "the timers that are left")
        assert not query.awaitTermination(1)
        assert len(fired(out)) == 25


def test_timers_outlive_an_epoch_and_a_restart(pipeline: Pipeline) -> None:
    alarms = keyed(pipeline).transformWithState(Alarm(6000), ALARMS, "Update", "ProcessingTime")
    with pipeline.collect() as out:
        with pipeline.running(alarms, epoch=LONG_EPOCH) as query:
            pipeline.send(range(4))
            until(lambda: len(out.rows()) == 4 or query.exception(), "the rows")
            tailrace.drain(query)
        assert fired(out) == []
        with pipeline.running(alarms, epoch=LONG_EPOCH) as query:
            until(lambda: len(fired(out)) == 4 or query.exception(), "the timers of the run before")


class LastSeen(StatefulProcessor):
    """An event-time timer two seconds after each row."""

    def init(self, handle: Any) -> None:
        self.handle = handle

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:
        for row in rows:
            self.handle.registerTimer(row.id * 1000 + 2000)
            yield Row(key=key[0], kind="row", n=row.id, late=timerValues.getCurrentWatermarkInMs())

    def handleExpiredTimer(self, key: Any, timerValues: Any, expiredTimerInfo: Any) -> Iterator[Row]:
        yield Row(key=key[0], kind="timer", n=expiredTimerInfo.getExpiryTimeInMs() // 1000, late=0)


def test_event_time_timers_fire_when_the_watermark_has_passed(pipeline: Pipeline) -> None:
    rows = pipeline.rows().withColumn("at", F.timestamp_seconds("id")).withWatermark("at", "1 second")
    timed = rows.groupBy("key").transformWithState(LastSeen(), ALARMS, "Update", "EventTime")
    with pipeline.collect() as out, pipeline.running(timed, epoch="5 seconds") as query:
        pipeline.send(range(100, 101), keys=1)
        until(lambda: len(out.rows()) == 1 or query.exception(), "the row")
        pipeline.send(range(200, 201), keys=1)
        until(lambda: fired(out) or query.exception(), "the timer")
        assert [row["n"] for row in fired(out)] == [102]


class Forgetful(StatefulProcessor):
    def init(self, handle: Any) -> None:
        self.value = handle.getValueState("value", "n LONG", ttlDurationMs=1500)
        self.list = handle.getListState("list", "n LONG", ttlDurationMs=1500)
        self.map = handle.getMapState("map", "n LONG", "n LONG", ttlDurationMs=1500)
        self.kept = handle.getValueState("kept", "n LONG")

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:
        for row in rows:
            n = (self.kept.get() or (0,))[0] + 1
            self.kept.update((n,))
            found = self.look()
            self.value.update((row.id,))
            self.list.appendValue((row.id,))
            self.map.updateValue((row.id,), (row.id,))
            yield Row(key=key[0], n=n, found=json.dumps(found), then=json.dumps(self.look()), id=row.id)

    def look(self) -> list[Any]:
        return [self.value.exists(), len(list(self.list.get())), len(list(self.map.keys()))]


def test_state_with_a_time_to_live_is_forgotten_in_time(pipeline: Pipeline) -> None:
    """Of a key of which nothing is heard meanwhile, in an epoch that goes on, while the worker serves another."""
    schema = "key STRING, n LONG, found STRING, then STRING, id LONG"
    forgetful = keyed(pipeline).transformWithState(Forgetful(), schema, "Update", "ProcessingTime")
    with pipeline.collect() as out, pipeline.running(forgetful, epoch=LONG_EPOCH) as query:

        def after(row: int) -> dict[str, Any]:
            """Keys have rows in turn: the even ones are the idle key's."""
            pipeline.send(range(row, row + 1), keys=2)
            until(lambda: len(out.rows()) == row + 1 or query.exception(), f"row {row}")
            return out.rows()[row]

        pipeline.wait_until_reading(query)
        first = after(0)
        assert json.loads(first["found"]) == [False, 0, 0]
        assert json.loads(first["then"]) == [True, 1, 1], "what was written a moment ago is there"
        after(1)
        assert not query.awaitTermination(2)
        last = after(2)
        assert (last["key"], last["n"]) == (first["key"], 2)
        assert json.loads(last["found"]) == [False, 0, 0]
        assert json.loads(last["then"]) == [True, 1, 1], "one value of this row, and not two of both"
        assert query.lastProgress is None, "no epoch has ended"


class Balance(StatefulProcessor):
    def init(self, handle: Any) -> None:
        self.value = handle.getValueState("value", "n LONG")

    def handleInitialState(self, key: Any, initialState: Row, timerValues: Any) -> None:
        self.value.update((initialState.start,))

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:
        for _ in rows:
            n = (self.value.get() or (0,))[0] + 1
            self.value.update((n,))
            yield Row(key=key[0], n=n)


class BalanceOfFrames(Balance):
    def handleInitialState(self, key: Any, initialState: pd.DataFrame, timerValues: Any) -> None:
        self.value.update((initialState["start"].iloc[0],))

    def handleInputRows(self, key: Any, rows: Iterator[pd.DataFrame], timerValues: Any) -> Iterator[pd.DataFrame]:
        for frame in rows:
            n = (self.value.get() or (0,))[0] + len(frame)
            self.value.update((n,))
            yield pd.DataFrame({"key": [key[0]], "n": [n]})


@pytest.mark.parametrize("kind", ["rows", "pandas"])
def test_an_initial_state_comes_before_the_first_row(pipeline: Pipeline, kind: str) -> None:
    start = pipeline.spark.createDataFrame([("k0", 100), ("k1", 200)], "key STRING, start LONG").groupBy("key")
    grouped = keyed(pipeline)
    schema = "key STRING, n LONG"
    if kind == "rows":
        balances = grouped.transformWithState(Balance(), schema, "Update", "None", start)
    else:
        balances = grouped.transformWithStateInPandas(BalanceOfFrames(), schema, "Update", "None", start)
    pipeline.send(range(6), keys=3)
    expected = {"k0": {101, 102}, "k1": {201, 202}, "k2": {1, 2}}

    def found(out: Collector) -> dict[str, set[int]]:
        return {key: {row["n"] for row in out.rows() if row["key"] == key} for key in expected}

    with pipeline.collect() as out:
        with pipeline.running(balances, epoch=LONG_EPOCH) as query:
            until(lambda: len(out.rows()) == 6 or query.exception(), "the rows")
            assert found(out) == expected
            tailrace.drain(query)
        with pipeline.running(balances, epoch=LONG_EPOCH) as query:
            pipeline.send(range(6, 9), keys=3)
            until(lambda: len(out.rows()) == 9 or query.exception(), "the rows after the restart")
            assert found(out) == {key: {*values, max(values) + 1} for key, values in expected.items()}


def test_each_row_of_a_processor_is_written_once_over_a_stop(pipeline: Pipeline) -> None:
    counts = keyed(pipeline).transformWithState(Balance(), "key STRING, n LONG", "Update", "None")
    with pipeline.collect() as out:
        for part in range(3):
            with pipeline.running(counts, epoch=LONG_EPOCH, sink="tailrace-kafka") as query:
                pipeline.send(range(part * 200, part * 200 + 200))
                until(lambda: len(out.rows()) >= (part + 1) * 200 or query.exception(), "the rows")  # noqa: B023
        found = sorted((row["key"], row["n"]) for row in out.rows())
    assert found == sorted((f"k{key}", n) for key in range(10) for n in range(1, 61))
