"""Errors in the use of state: raised at the call, with Spark's text, and reported with the exact record."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from pyspark.errors import PySparkRuntimeError
from pyspark.sql import Row, SparkSession
from pyspark.sql.streaming.stateful_processor import StatefulProcessor

from tailrace.testing import MODES, StreamTest
from tests.helpers.pipeline import Pipeline
from tests.helpers.waiting import until

LONG_EPOCH = "10 minutes"


@pytest.fixture(scope="module")
def spark(new_session: Callable[..., SparkSession]) -> SparkSession:
    return new_session("local[8]")


class Deleted(StatefulProcessor):
    """Uses variables that it has deleted, and tells what each call raised or returned."""

    def init(self, handle: Any) -> None:
        self.value = handle.getValueState("value", "n LONG")
        self.list = handle.getListState("list", "n LONG")
        self.map = handle.getMapState("map", "n LONG", "n LONG")
        self.expiring = handle.getValueState("expiring", "n LONG", ttlDurationMs=1000)
        for name in ("value", "list", "map", "expiring", "unknown"):
            handle.deleteIfExists(name)
        self.kept = handle.getValueState("kept", "n LONG")

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:
        for row in rows:
            self.kept.update((row.id,))
            calls: dict[str, Callable[[], Any]] = {
                "value.update": lambda: self.value.update((1,)),
                "value.exists": self.value.exists,
                "value.get": self.value.get,
                "value.clear": self.value.clear,
                "expiring.update": lambda: self.expiring.update((1,)),
                "expiring.clear": self.expiring.clear,
                "list.exists": self.list.exists,
                "list.get": lambda: list(self.list.get()),
                "list.put": lambda: self.list.put([(1,)]),
                "list.appendValue": lambda: self.list.appendValue((1,)),
                "list.appendList": lambda: self.list.appendList([(1,)]),
                "list.clear": self.list.clear,
                "map.exists": self.map.exists,
                "map.getValue": lambda: self.map.getValue((1,)),
                "map.containsKey": lambda: self.map.containsKey((1,)),
                "map.updateValue": lambda: self.map.updateValue((1,), (1,)),
                "map.removeKey": lambda: self.map.removeKey((1,)),
                "map.iterator": lambda: list(self.map.iterator()),
                "map.clear": self.map.clear,
                "kept.get": self.kept.get,
            }
            for name, call in calls.items():
                yield Row(call=name, outcome=self.outcome(call))

    def outcome(self, call: Callable[[], Any]) -> str:
        try:
            return repr(call())
        except PySparkRuntimeError as error:
            return str(error)


def test_a_deleted_variable_raises_at_the_call_as_in_micro_batch(spark: SparkSession) -> None:
    outcomes = {}
    for mode in MODES:
        with StreamTest(spark, mode) as test:
            source = test.source("key STRING, id LONG")
            keyed = source.rows.groupBy("key")
            results = test.start(
                keyed.transformWithState(Deleted(), "call STRING, outcome STRING", "Update", "ProcessingTime")
            )
            source.add(("a", 7))
            test.process()
            outcomes[mode] = {row.call: row.outcome for row in results.rows()}
    assert outcomes["real-time"] == outcomes["micro-batch"]
    assert outcomes["real-time"]["value.update"] == "Error updating value state: Value state value is not initialized."
    assert outcomes["real-time"]["kept.get"] == "(7,)"


class Careless(StatefulProcessor):
    """Does something wrong to its state at one of its rows."""

    def __init__(self, wrong: Callable[[Any], None]) -> None:
        self.wrong = wrong

    def init(self, handle: Any) -> None:
        self.value = handle.getValueState("value", "n LONG")
        self.list = handle.getListState("list", "n LONG")

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:
        for row in rows:
            self.value.update((row.id,))
            if row.id == 7:
                self.wrong(self)
            yield Row(id=row.id)


def put_nothing(processor: Any) -> None:
    processor.list.put([])


def put_nothing_and_go_on(processor: Any) -> None:
    with contextlib.suppress(Exception):
        processor.list.put([])


def append_nothing(processor: Any) -> None:
    processor.list.appendList([])


def update_with_a_float(processor: Any) -> None:
    processor.value.update((7.0,))


def put_a_float(processor: Any) -> None:
    processor.list.put([(1,), (7.0,)])


WRONG: dict[Callable[[Any], None], str] = {
    put_nothing: "EMPTY_LIST_VALUE",
    put_nothing_and_go_on: "EMPTY_LIST_VALUE",
    append_nothing: "EMPTY_LIST_VALUE",
    update_with_a_float: "TAILRACE_STATE_TYPE",
    put_a_float: "TAILRACE_STATE_TYPE",
}


@pytest.mark.parametrize("wrong", WRONG)
def test_an_error_of_the_state_names_its_record(pipeline: Pipeline, wrong: Callable[[Any], None]) -> None:
    """The rows wait when the query starts, so they share a batch."""
    pipeline.send(range(16), keys=1)
    careless = pipeline.rows().groupBy("key").transformWithState(Careless(wrong), "id LONG", "Update", "None")
    writer = pipeline.writer(careless.selectExpr("to_json(struct(*)) AS value"), "kafka").option(
        "topic", pipeline.output
    )
    query = writer.trigger(realTime=LONG_EPOCH).start()  # type: ignore[call-overload]
    failure = str(until(query.exception, "the failure")).partition("=== Streaming Query ===")[0]
    assert WRONG[wrong] in failure
    assert re.search(rf"the record at topic '{pipeline.input}', partition [01], offset 7\b", failure), failure
