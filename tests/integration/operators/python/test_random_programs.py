"""Random programs over the state of a Python processor do in Real-Time Mode what they do in micro-batch."""

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

LONG_EPOCH = "10 minutes"
OPERATOR = "RealTimeTransformWithState"
PROVIDER = "spark.sql.streaming.stateStore.providerClass"

MANY_CASES = 200
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
            at = datetime.datetime(2026, 1, 1) + datetime.timedelta(hours=int(number))
            self.dated.update((None if number % 7 == 0 else at.date(), at))
        elif operation == "nest":
            self.nested.update((Decimal(int(number)), [str(number)] * (number % 3)))
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


class InterpreterOfFrames(Interpreter):
    """The same over pandas frames: of one row in Real-Time Mode, of all rows of a key in micro-batch."""

    def handleInputRows(self, key: Any, frames: Iterator[pd.DataFrame], timerValues: Any) -> Iterator[pd.DataFrame]:
        for frame in frames:
            for result in super().handleInputRows(key, frame.itertuples(), timerValues):
                yield pd.DataFrame([result.asDict()])


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


def programs(seed: int, cases: int) -> list[dict[str, Any]]:
    """A random program for each key, and all of them in a random order."""
    chance = random.Random(seed)
    left = [f"k{case}" for case in range(cases) for _ in range(STEPS)]
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


def interpreted(pipeline: Pipeline, kind: str) -> DataFrame:
    schema = "key STRING, step INT, operation STRING, number INT, look ARRAY<STRING>"
    rows = pipeline.raw().select(F.from_json("value", schema).alias("row")).select("row.*")
    grouped, results = rows.groupBy("key"), "key STRING, step INT, seen STRING"
    if kind == "pandas":
        return grouped.transformWithStateInPandas(InterpreterOfFrames(), results, "Update", "None")
    return grouped.transformWithState(Interpreter(), results, "Update", "None")


def seen(out: Collector) -> dict[tuple[str, int], set[str]]:
    found: dict[tuple[str, int], set[str]] = {}
    for row in out.rows():
        found.setdefault((row["key"], row["step"]), set()).add(row["seen"])
    return found


@pytest.mark.parametrize(
    ("kind", "seed", "cases"),
    [
        ("rows", 4, 60),
        pytest.param("rows", 4, MANY_CASES, marks=pytest.mark.chaos),
        pytest.param("pandas", 5, MANY_CASES, marks=pytest.mark.chaos),
    ],
)
def test_they_come_to_the_same_as_in_micro_batch(
    pipeline: Pipeline, tmp_path: Path, kind: str, seed: int, cases: int
) -> None:
    """With a checkpoint that moves to micro-batch and back."""
    rows = programs(seed, cases)
    parts = [rows[start : start + len(rows) // 3] for start in range(0, len(rows), len(rows) // 3)]
    sent: list[dict[str, Any]] = []

    def send(part: int) -> None:
        produce(pipeline.servers, pipeline.input, parts[part])
        sent.extend(parts[part])

    def until_all(out: Collector, query: StreamingQuery) -> None:
        until(lambda: len(seen(out)) == len(sent) or query.exception(), "all that was sent")

    with pipeline.collect() as out:
        send(0)
        with pipeline.running(interpreted(pipeline, kind), epoch=LONG_EPOCH) as query:
            until_all(out, query)
            assert OPERATOR in query._jsq.explainInternal(False)
            tailrace.drain(query)
        with pipeline.running(interpreted(pipeline, kind), epoch=None) as query:
            send(1)
            query.processAllAvailable()
        send(2)
        with pipeline.running(interpreted(pipeline, kind), epoch=LONG_EPOCH) as query:
            until_all(out, query)
        real_time = seen(out)

    pipeline.use_fresh_output(tmp_path / "micro-batch")
    with pipeline.collect() as out:
        with pipeline.running(interpreted(pipeline, kind), epoch=None) as query:
            until_all(out, query)
        micro_batch = seen(out)

    assert len(micro_batch) == cases * STEPS
    # What was computed twice was computed alike.
    assert {place: found for place, found in real_time.items() if len(found) > 1} == {}
    assert real_time == micro_batch
