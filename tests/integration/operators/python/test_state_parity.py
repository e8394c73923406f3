"""Every method of every state, with every type, does in Real-Time Mode what it does in micro-batch and in batch."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pandas as pd
import pytest
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql.streaming.stateful_processor import StatefulProcessor

from tailrace.testing import StreamTest
from tests.helpers.parity import ALL_MODES, STREAMS, TYPES, WITH_STATE, assert_same, described, outcomes, seen

KEYED = "key STRING, steps ARRAY<STRING>"
SEEN = "key STRING, step INT, seen STRING"
TTL_MS = 60_000


@pytest.fixture(scope="module")
def spark(new_session: Callable[..., SparkSession]) -> SparkSession:
    return new_session("local[8]", WITH_STATE)


class Stepper(StatefulProcessor):
    """Evaluates the expressions in its rows, and tells what each returned or raised."""

    def __init__(self, variables: dict[str, tuple[str, ...]], ttl_ms: int | None = None) -> None:
        self.variables = variables
        self.ttl_ms = ttl_ms

    def init(self, handle: Any) -> None:
        self.names: dict[str, Any] = {"handle": handle, "values": {name: values for name, (_, values) in TYPES.items()}}
        makers = {"value": handle.getValueState, "list": handle.getListState, "map": handle.getMapState}
        for name, (kind, *schemas) in self.variables.items():
            self.names[name] = makers[kind](name, *schemas, ttlDurationMs=self.ttl_ms)

    def handleInputRows(self, key: Any, rows: Iterator[Any], timerValues: Any) -> Iterator[Any]:
        for row in rows:
            for number, step in enumerate(row.steps):
                yield Row(key=key[0], step=number, seen=self.outcome(step))

    def handleExpiredTimer(self, key: Any, timerValues: Any, expiredTimerInfo: Any) -> Iterator[Any]:
        expired = [expiredTimerInfo.getExpiryTimeInMs(), *(self.names[name].exists() for name in self.variables)]
        late = timerValues.getCurrentProcessingTimeInMs() >= expired[0]
        yield Row(key=key[0], step=-1, seen=seen([late, *expired]))

    def outcome(self, step: str) -> str:
        try:
            return seen(eval(step, dict(self.names)))
        except Exception as error:
            return f"{type(error).__name__}: {error}"


class StepperOfFrames(Stepper):
    def handleInputRows(self, key: Any, rows: Iterator[Any], timerValues: Any) -> Iterator[Any]:
        for frame in rows:
            for result in super().handleInputRows(key, frame.itertuples(), timerValues):
                yield pd.DataFrame([result.asDict()])

    def handleExpiredTimer(self, key: Any, timerValues: Any, expiredTimerInfo: Any) -> Iterator[Any]:
        for result in super().handleExpiredTimer(key, timerValues, expiredTimerInfo):
            yield pd.DataFrame([result.asDict()])


def stepping(
    kind: str, variables: dict[str, tuple[str, ...]], time_mode: str = "None", ttl_ms: int | None = None
) -> Callable[[DataFrame], DataFrame]:
    def query(rows: DataFrame) -> DataFrame:
        grouped = rows.groupBy("key")
        if kind == "pandas":
            return grouped.transformWithStateInPandas(StepperOfFrames(variables, ttl_ms), SEEN, "Update", time_mode)
        return grouped.transformWithState(Stepper(variables, ttl_ms), SEEN, "Update", time_mode)

    return query


def of_value(name: str) -> list[str]:
    first, second, null = (f"(values['{name}'][{number}],)" for number in range(3))
    variable = f"v_{name}"
    writes = [step for value in (first, second, null) for step in (f"{variable}.update({value})", f"{variable}.get()")]
    return [f"{variable}.exists()", f"{variable}.get()", *writes, f"{variable}.exists()"]


def of_list(name: str) -> list[str]:
    first, second, null = (f"(values['{name}'][{number}],)" for number in range(3))
    variable = f"l_{name}"
    look = f"list({variable}.get())"
    return [
        f"{variable}.exists()",
        look,
        f"{variable}.appendValue({first})",
        look,
        f"{variable}.appendList([{second}, {null}])",
        f"{variable}.exists()",
        look,
        f"{variable}.put([{null}, {first}])",
        f"[one for one in {variable}.get() for _ in {variable}.get()]",
    ]


def of_map(name: str) -> list[str]:
    first, second, null = (f"(values['{name}'][{number}],)" for number in range(3))
    variable = f"m_{name}"
    return [
        f"{variable}.exists()",
        f"{variable}.getValue({first})",
        f"{variable}.updateValue({first}, {second})",
        f"{variable}.updateValue({second}, {null})",
        f"{variable}.getValue({first})",
        f"{variable}.getValue({second})",
        f"{variable}.containsKey({first})",
        f"{variable}.containsKey({second})",
        f"{variable}.exists()",
        f"list({variable}.iterator())",
        f"list({variable}.keys())",
        f"list({variable}.values())",
        f"{variable}.removeKey({first})",
        f"{variable}.containsKey({first})",
        f"list({variable}.keys())",
    ]


#: Spark allows no map, and nothing with a map in it, in a key.
IN_KEYS = [name for name, (sql_type, _) in TYPES.items() if "MAP" not in sql_type]
VARIABLES: dict[str, tuple[str, ...]] = {
    **{f"v_{name}": ("value", f"one {sql_type}") for name, (sql_type, _) in TYPES.items()},
    **{f"l_{name}": ("list", f"one {sql_type}") for name, (sql_type, _) in TYPES.items()},
    **{f"m_{name}": ("map", f"one {TYPES[name][0]}", f"one {TYPES[name][0]}") for name in IN_KEYS},
}
#: What a second row of the key finds, and how it is cleared.
AGAIN = {
    "v": ["{0}.exists()", "{0}.get()", "{0}.clear()", "{0}.get()", "{0}.exists()"],
    "l": ["list({0}.get())", "{0}.clear()", "{0}.exists()", "list({0}.get())"],
    "m": ["list({0}.iterator())", "{0}.clear()", "{0}.exists()", "list({0}.keys())"],
}


@pytest.mark.parametrize("kind", ["rows", pytest.param("pandas", marks=pytest.mark.chaos)])
def test_every_method_with_every_type(spark: SparkSession, kind: str) -> None:
    """One processor has all the variables: it costs as much to start as one that has few."""
    steps = {"v": of_value, "l": of_list, "m": of_map}
    first = [(name, steps[name[0]](name.partition("_")[2])) for name in VARIABLES]
    again = [(name, [step.format(name) for step in AGAIN[name[0]]]) for name in VARIABLES]
    query = stepping(kind, VARIABLES)
    streams = outcomes(spark, query, KEYED, [first, again], STREAMS)
    assert_same(streams)
    assert_same({mode: streams[mode][:1] for mode in STREAMS} | outcomes(spark, query, KEYED, [first], ALL_MODES[:1]))


SIMPLE: dict[str, tuple[str, ...]] = {
    "one": ("value", "n LONG"),
    "many": ("list", "n LONG"),
    "entries": ("map", "k STRING", "n LONG"),
}
START_MS = 1_767_225_600_000  # where a StreamTest's clock starts
WRITE = ["one.update((1,))", "many.appendList([(1,), (2,)])", "entries.updateValue(('a',), (1,))"]
LOOK = [
    "one.get()",
    "one.exists()",
    "list(many.get())",
    "many.exists()",
    "list(entries.iterator())",
    "entries.exists()",
]


@pytest.mark.parametrize("kind", ["rows", pytest.param("pandas", marks=pytest.mark.chaos)])
def test_time_to_live(spark: SparkSession, kind: str) -> None:
    found: dict[str, list[list[Any]]] = {}
    for mode in STREAMS:
        with StreamTest(spark, mode) as test:
            source = test.source(KEYED)
            results = test.start(stepping(kind, SIMPLE, "ProcessingTime", TTL_MS)(source.rows))
            rounds = []
            for steps, seconds in (
                ([*LOOK, *WRITE, *LOOK], 30),
                (LOOK, 20),
                (WRITE[:1], 30),
                ([*LOOK, *WRITE], 61),
                (LOOK, 0),
            ):
                source.add(("a", steps))
                test.advance(seconds=seconds)
                rounds.append(sorted((described(row) for row in results.new()), key=str))
            found[mode] = rounds
    assert_same(found)


@pytest.mark.parametrize("kind", ["rows", pytest.param("pandas", marks=pytest.mark.chaos)])
def test_timers(spark: SparkSession, kind: str) -> None:
    def at(seconds: int) -> int:
        return START_MS + 1000 * seconds

    register = [f"handle.registerTimer({at(seconds)})" for seconds in (60, 120, 120, 180)]
    listed = "sorted(handle.listTimers())"
    rounds_of_steps: list[tuple[list[str], int]] = [
        ([listed, *register, listed, *WRITE], 61),
        ([listed, f"handle.deleteTimer({at(180)})", "handle.deleteTimer(1)", listed], 60),
        ([listed, "one.clear()", f"handle.registerTimer({at(400)})"], 300),
    ]
    found: dict[str, list[list[Any]]] = {}
    for mode in STREAMS:
        with StreamTest(spark, mode) as test:
            source = test.source(KEYED)
            results = test.start(stepping(kind, SIMPLE, "ProcessingTime")(source.rows))
            rounds = []
            for steps, seconds in rounds_of_steps:
                source.add(("a", steps))
                test.advance(seconds=seconds)
                rounds.append(sorted((described(row) for row in results.new()), key=str))
            found[mode] = rounds
    assert_same(found)
    fired = [row for one_round in found["real-time"] for row in one_round if "-1" in str(row)]
    assert len(fired) == 3
