"""Python's `transformWithState` does in Real-Time Mode what it does in micro-batch, row by row."""

from __future__ import annotations

import datetime
import json
import random
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.stateful_processor import StatefulProcessor

import tailrace
from tests.helpers.pipeline import Pipeline
from tests.helpers.topics import Collector, produce
from tests.helpers.waiting import until

LONG_EPOCH = "60 seconds"
OPERATOR = "RealTimeTransformWithState"

PROVIDER = "spark.sql.streaming.stateStore.providerClass"

CASES = 200
STEPS = 9


class Interpreter(StatefulProcessor):
    """Does to its state what the rows say, and tells what it looks like where they ask for it."""

    def init(self, handle: Any) -> None:
        self.value = handle.getValueState("value", "n LONG, name STRING, share DOUBLE")
        self.nested = handle.getValueState("nested", "amount DECIMAL(10, 2), tags ARRAY<STRING>")
        self.dated = handle.getValueState("dated", "day DATE, at TIMESTAMP")
        self.list = handle.getListState("list", "n INT, name STRING")
        self.map = handle.getMapState("map", "n INT, name STRING", "share DOUBLE")

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:
        for row in rows:
            self.do(row.operation, row.number)
            yield Row(key=key[0], step=row.step, seen=json.dumps([self.look(part) for part in row.look], default=str))

    def do(self, operation: str, number: int) -> None:
        name = None if number % 7 == 0 else f"n{number}"
        if operation == "set":
            self.value.update((number, name, number / 3))
        elif operation == "add":
            before = self.value.get()
            self.value.update(((before[0] if before else 0) + number, name, None))
        elif operation == "clear":
            self.value.clear()
        elif operation == "date":
            at = datetime.datetime(2026, 1, 1) + datetime.timedelta(hours=number)
            self.dated.update((None if number % 7 == 0 else at.date(), at))
        elif operation == "nest":
            self.nested.update((Decimal(number), [str(number)] * (number % 3)))
        elif operation == "append":
            self.list.appendValue((number, name))
        elif operation == "extend":
            self.list.appendList([(number + i, name) for i in range(3)])
        elif operation == "replace":
            self.list.put([(number, "new")])
        elif operation == "empty":
            self.list.clear()
        elif operation == "map":
            self.map.updateValue((number % 5, f"k{number % 3}"), (number / 7,))
        elif operation == "unmap":
            self.map.removeKey((number % 5, f"k{number % 3}"))
        elif operation == "clear map":
            self.map.clear()

    def look(self, part: str) -> Any:
        if part == "value":
            return [self.value.exists(), self.value.get()]
        if part == "dated":
            return [self.dated.exists(), self.dated.get()]
        if part == "nested":
            return [self.nested.exists(), self.nested.get()]
        if part == "list":
            return [self.list.exists(), list(self.list.get())]
        if part == "map entry":
            one = self.map.getValue((1, "k1"))
            return [self.map.containsKey((1, "k1")), one and one.share, self.map.containsKey((2, "k0"))]
        return [self.map.exists(), list(self.map.iterator()), list(self.map.keys()), list(self.map.values())]


@pytest.fixture(autouse=True)
def rocks_in_micro_batch(spark: SparkSession) -> Iterator[None]:
    """Real-time queries have it anyway."""
    spark.conf.set(PROVIDER, "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider")
    yield
    spark.conf.unset(PROVIDER)


OPERATIONS = (
    *("set", "add", "add", "add", "clear", "date", "date", "nest", "append", "append", "extend", "replace", "empty"),
    *("map", "map", "map", "map", "unmap", "clear map"),
)
PARTS = ("value", "dated", "nested", "list", "map entry", "map")


def programs(seed: int) -> list[dict[str, Any]]:
    """A random program for each key, and all of them in a random order."""
    chance = random.Random(seed)
    left = [f"k{case}" for case in range(CASES) for _ in range(STEPS)]
    chance.shuffle(left)
    steps = dict.fromkeys(left, 0)
    rows = []
    for key in left:
        steps[key] += 1
        look = [part for part in PARTS if steps[key] == STEPS or chance.random() < 0.2]
        operation = chance.choice(OPERATIONS)
        rows.append(
            {"key": key, "step": steps[key], "operation": operation, "number": chance.randrange(50), "look": look}
        )
    return rows


def interpreted(pipeline: Pipeline) -> DataFrame:
    schema = "key STRING, step INT, operation STRING, number INT, look ARRAY<STRING>"
    rows = pipeline.raw().select(F.from_json("value", schema).alias("row")).select("row.*")
    return rows.groupBy("key").transformWithState(Interpreter(), "key STRING, step INT, seen STRING", "Update", "None")


def seen(out: Collector) -> dict[tuple[str, int], set[str]]:
    found: dict[tuple[str, int], set[str]] = {}
    for row in out.rows():
        found.setdefault((row["key"], row["step"]), set()).add(row["seen"])
    return found


def test_random_programs_come_to_the_same_as_in_micro_batch(pipeline: Pipeline, tmp_path: Path) -> None:
    """With a checkpoint that moves to micro-batch and back."""
    rows = programs(seed=4)
    parts = [rows[start : start + len(rows) // 3] for start in range(0, len(rows), len(rows) // 3)]
    sent: list[dict[str, Any]] = []

    def send(part: int) -> None:
        produce(pipeline.servers, pipeline.input, parts[part])
        sent.extend(parts[part])

    def until_all(out: Collector, query: StreamingQuery) -> None:
        until(lambda: len(seen(out)) == len(sent) or query.exception(), "all that was sent", within_s=60)

    with pipeline.collect() as out:
        send(0)
        with pipeline.running(interpreted(pipeline), epoch=LONG_EPOCH) as query:
            until_all(out, query)
            assert OPERATOR in query._jsq.explainInternal(False)
            tailrace.drain(query)
        with pipeline.running(interpreted(pipeline), epoch=None) as query:
            send(1)
            query.processAllAvailable()
        send(2)
        with pipeline.running(interpreted(pipeline), epoch=LONG_EPOCH) as query:
            until_all(out, query)
        real_time = seen(out)

    pipeline.use_fresh_output(tmp_path / "micro-batch")
    with pipeline.collect() as out:
        with pipeline.running(interpreted(pipeline), epoch=None) as query:
            until_all(out, query)
        micro_batch = seen(out)

    assert len(micro_batch) == CASES * STEPS
    # What was computed twice was computed alike.
    assert {place: found for place, found in real_time.items() if len(found) > 1} == {}
    assert real_time == micro_batch


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
        pipeline.send(range(20))
        until(lambda: len(fired(out)) >= 20 or query.exception(), "every timer", within_s=60)
        assert {row["n"] for row in fired(out)} == {2}, "the timer does not see the state"
        late = sorted(row["late"] for row in fired(out))
        assert late[0] >= 0
        assert late[len(late) // 2] <= 100, f"timers fire late: {late}"
        # Timers that were deleted do not fire.
        pipeline.send(range(20, 30))
        produce(pipeline.servers, pipeline.input, ({"id": -1, "key": f"k{n}"} for n in range(5)))
        until(lambda: len(fired(out)) >= 25 or query.exception(), "the timers that are left", within_s=60)
        assert not query.awaitTermination(1)
        assert len(fired(out)) == 25


def test_timers_outlive_an_epoch_and_a_restart(pipeline: Pipeline) -> None:
    alarms = keyed(pipeline).transformWithState(Alarm(6000), ALARMS, "Update", "ProcessingTime")
    with pipeline.collect() as out:
        with pipeline.running(alarms, epoch=LONG_EPOCH) as query:
            pipeline.send(range(4))
            until(lambda: len(out.rows()) == 4 or query.exception(), "the rows", within_s=60)
            tailrace.drain(query)
        assert fired(out) == []
        with pipeline.running(alarms, epoch=LONG_EPOCH) as query:
            until(lambda: len(fired(out)) == 4 or query.exception(), "the timers of the run before", within_s=60)


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
        until(lambda: len(out.rows()) == 1 or query.exception(), "the row", within_s=60)
        pipeline.send(range(200, 201), keys=1)
        until(lambda: fired(out) or query.exception(), "the timer", within_s=60)
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
            for _ in range(2):
                before = [self.value.exists(), len(list(self.list.get())), len(list(self.map.keys()))]
                self.value.update((row.id,))
                self.list.appendValue((row.id,))
                self.map.updateValue((row.id,), (row.id,))
            yield Row(key=key[0], n=n, before=json.dumps(before), id=row.id)


def test_state_with_a_time_to_live_is_forgotten_in_time(pipeline: Pipeline) -> None:
    schema = "key STRING, n LONG, before STRING, id LONG"
    forgetful = keyed(pipeline).transformWithState(Forgetful(), schema, "Update", "ProcessingTime")
    with pipeline.collect() as out, pipeline.running(forgetful, epoch=LONG_EPOCH) as query:
        pipeline.send(range(1), keys=1)
        until(lambda: len(out.rows()) == 1 or query.exception(), "the first row", within_s=60)
        # What was written a moment ago is there.
        assert json.loads(out.rows()[0]["before"]) == [True, 1, 1]
        assert not query.awaitTermination(2)
        pipeline.send(range(1, 2), keys=1)
        until(lambda: len(out.rows()) == 2 or query.exception(), "the second row")
        assert out.rows()[1]["n"] == 2
        # The first row's is not: one value of this row, and not two of both.
        assert json.loads(out.rows()[1]["before"]) == [True, 1, 1]


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
            until(lambda: len(out.rows()) == 6 or query.exception(), "the rows", within_s=60)
            assert found(out) == expected
            tailrace.drain(query)
        with pipeline.running(balances, epoch=LONG_EPOCH) as query:
            pipeline.send(range(6, 9), keys=3)
            until(lambda: len(out.rows()) == 9 or query.exception(), "the rows after the restart", within_s=60)
            assert found(out) == {key: {*values, max(values) + 1} for key, values in expected.items()}


def test_each_row_of_a_processor_is_written_once_over_a_stop(pipeline: Pipeline) -> None:
    counts = keyed(pipeline).transformWithState(Balance(), "key STRING, n LONG", "Update", "None")
    with pipeline.collect() as out:
        for part in range(3):
            with pipeline.running(counts, epoch=LONG_EPOCH, sink="tailrace-kafka") as query:
                pipeline.send(range(part * 200, part * 200 + 200))
                until(lambda: len(out.rows()) >= (part + 1) * 200 or query.exception(), "the rows", within_s=60)  # noqa: B023
        found = sorted((row["key"], row["n"]) for row in out.rows())
    assert found == sorted((f"k{key}", n) for key in range(10) for n in range(1, 61))
