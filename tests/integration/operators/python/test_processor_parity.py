"""What goes into a processor and comes out of it: the same values and types in batch, micro-batch and real time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pandas as pd
import pytest
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.stateful_processor import StatefulProcessor

from tailrace.testing import StreamTest
from tests.helpers.parity import STREAMS, TYPES, WITH_STATE, assert_same, described, outcomes, seen

COLUMNS = ", ".join(f"{name} {sql_type}" for name, (sql_type, _) in TYPES.items())
ROUNDS = [[(f"k{number}", *(values[number] for _, values in TYPES.values()))] for number in range(3)]
MANY = 300


@pytest.fixture(scope="module")
def spark(new_session: Callable[..., SparkSession]) -> SparkSession:
    return new_session("local[8]", WITH_STATE)


class Describing(StatefulProcessor):
    """Tells what it gets."""

    def init(self, handle: Any) -> None:
        self.rows = handle.getValueState("rows", "n LONG")

    def handleInputRows(self, key: Any, rows: Iterator[Any], timerValues: Any) -> Iterator[Any]:
        for row in rows:
            yield Row(key=seen(key), seen=seen(row))


class DescribingFrames(Describing):
    def handleInputRows(self, key: Any, rows: Iterator[Any], timerValues: Any) -> Iterator[Any]:
        for frame in rows:
            yield pd.DataFrame({"key": [seen(key)], "seen": [seen(frame)]})


def transformed(grouped: Any, kind: str, rows: StatefulProcessor, frames: StatefulProcessor, schema: str) -> DataFrame:
    """The processor of this kind over grouped rows."""
    result: DataFrame = (
        grouped.transformWithStateInPandas(frames, schema, "Update", "None")
        if kind == "pandas"
        else grouped.transformWithState(rows, schema, "Update", "None")
    )
    return result


@pytest.mark.parametrize("kind", [pytest.param("rows", marks=pytest.mark.chaos), "pandas"])
def test_rows_of_each_type_go_in(spark: SparkSession, kind: str) -> None:
    def query(rows: DataFrame) -> DataFrame:
        grouped = rows.groupBy("key", "long", "date")
        return transformed(grouped, kind, Describing(), DescribingFrames(), "key STRING, seen STRING")

    assert_same(outcomes(spark, query, f"key STRING, {COLUMNS}", ROUNDS))


class Giving(StatefulProcessor):
    """Gives back what it got."""

    def init(self, handle: Any) -> None:
        self.rows = handle.getValueState("rows", "n LONG")

    def handleInputRows(self, key: Any, rows: Iterator[Any], timerValues: Any) -> Iterator[Any]:
        for row in rows:
            yield Row(**{name: row[name] for name in TYPES})


class GivingFrames(Giving):
    def handleInputRows(self, key: Any, rows: Iterator[Any], timerValues: Any) -> Iterator[Any]:
        for frame in rows:
            yield frame[list(TYPES)]


@pytest.mark.chaos
@pytest.mark.parametrize("kind", ["rows", "pandas"])
def test_rows_of_each_type_come_out(spark: SparkSession, kind: str) -> None:
    def query(rows: DataFrame) -> DataFrame:
        return transformed(rows.groupBy("key"), kind, Giving(), GivingFrames(), COLUMNS)

    assert_same(outcomes(spark, query, f"key STRING, {COLUMNS}", ROUNDS))


class Account(StatefulProcessor):
    """Starts with a balance from the initial state."""

    def init(self, handle: Any) -> None:
        self.balance = handle.getValueState("balance", "n LONG, small INT, name STRING")

    def handleInitialState(self, key: Any, initialState: Any, timerValues: Any) -> None:
        self.balance.update((initialState.start, initialState.small, seen(initialState)))

    def handleInputRows(self, key: Any, rows: Iterator[Any], timerValues: Any) -> Iterator[Any]:
        for row in rows:
            yield Row(key=key[0], balance=seen(self.balance.get()), seen=seen(row))


class AccountOfFrames(Account):
    def handleInitialState(self, key: Any, initialState: Any, timerValues: Any) -> None:
        start, small = initialState["start"].iloc[0], initialState["small"].iloc[0]
        self.balance.update((start, small, seen(initialState)))

    def handleInputRows(self, key: Any, rows: Iterator[Any], timerValues: Any) -> Iterator[Any]:
        for frame in rows:
            yield pd.DataFrame({"key": [key[0]], "balance": [seen(self.balance.get())], "seen": [seen(frame)]})


@pytest.mark.parametrize("kind", [pytest.param("rows", marks=pytest.mark.chaos), "pandas"])
def test_an_initial_state(spark: SparkSession, kind: str) -> None:
    """The rows wait when the query starts, so they share batches with the initial state."""
    found: dict[str, list[list[Any]]] = {}
    for mode in STREAMS:
        starts = [(f"k{number}", 2**53 + number, number) for number in range(MANY)]
        initial = spark.createDataFrame(starts, "key STRING, start LONG, small INT").groupBy("key")
        with StreamTest(spark, mode) as test:
            source = test.source("key STRING, id INT")
            source.add(*((f"k{number}", number) for number in range(MANY + 10)))
            grouped, schema = source.rows.groupBy("key"), "key STRING, balance STRING, seen STRING"
            if kind == "pandas":
                accounts = grouped.transformWithStateInPandas(AccountOfFrames(), schema, "Update", "None", initial)
            else:
                accounts = grouped.transformWithState(Account(), schema, "Update", "None", initial)
            results = test.start(accounts)
            test.process()
            first = results.new()
            test.restart()
            source.add(("k7", 7), ("k305", 305))
            test.process()
            found[mode] = [sorted((described(row) for row in rows), key=str) for rows in (first, results.new())]
    assert_same(found)
    assert [len(rows) for rows in found["real-time"]] == [MANY + 10, 2]
    assert str(2**53 + 7) in str(found["real-time"][1])


class Numbered(StatefulProcessor):
    def init(self, handle: Any) -> None:
        self.count = handle.getValueState("count", "n INT")

    def handleInputRows(self, key: Any, rows: Iterator[Any], timerValues: Any) -> Iterator[Any]:
        for row in rows:
            (number,) = self.count.get() or (0,)
            self.count.update((number + 1,))
            yield Row(key=key[0], number=number, seen=row.seen)


def label(number: int) -> str | None:
    return None if number == 1 else f"{number:>5}"


def with_length(frames: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
    for frame in frames:
        yield frame.assign(length=frame["seen"].str.len())


@pytest.mark.chaos
def test_one_behind_the_other(spark: SparkSession) -> None:
    """A function, a processor over frames, one over rows, another function and a map."""
    labeled = F.udf(label, "string")

    def query(rows: DataFrame) -> DataFrame:
        grouped = rows.withColumn("label", labeled("id")).groupBy("key")
        described_rows = transformed(grouped, "pandas", Describing(), DescribingFrames(), "key STRING, seen STRING")
        numbered = described_rows.groupBy("key").transformWithState(
            Numbered(), "key STRING, number INT, seen STRING", "Update", "None"
        )
        return numbered.withColumn("label", labeled("number")).mapInPandas(
            with_length, "key STRING, number INT, seen STRING, label STRING, length LONG"
        )

    rounds = [[("a", 1)], [("a", 2), ("b", 1)], [("b", 3)]]
    assert_same(outcomes(spark, query, "key STRING, id INT", rounds, STREAMS))


class Latest(StatefulProcessor):
    """Keeps a number that may be missing."""

    def init(self, handle: Any) -> None:
        self.latest = handle.getValueState("latest", "weight LONG")

    def handleInputRows(self, key: Any, rows: Iterator[Any], timerValues: Any) -> Iterator[Any]:
        for frame in rows:
            self.latest.update((frame["weight"].iloc[0],))
            yield pd.DataFrame(
                {"key": [key[0]], "weight": [seen(self.latest.get())], "kind": [str(frame.dtypes["weight"])]}
            )


def test_integers_beside_nulls_of_an_outer_join_stay_integers(spark: SparkSession) -> None:
    """In micro-batch they become floats, and a state of integers then holds null."""
    weights = spark.createDataFrame(
        [(f"k{number}", 2**53 + number) for number in range(0, 200, 2)], "key STRING, weight LONG"
    )
    with StreamTest(spark, "real-time") as test:
        source = test.source("key STRING")
        source.add(*((f"k{number}",) for number in range(200)))
        joined = source.rows.join(F.broadcast(weights), "key", "left_outer")
        results = test.start(
            joined.groupBy("key").transformWithStateInPandas(
                Latest(), "key STRING, weight STRING, kind STRING", "Update", "None"
            )
        )
        test.process()
        found = {row.key: (row.weight, row.kind) for row in results.rows()}
    assert len(found) == 200
    for number in range(200):
        expected = (seen((2**53 + number,)), "int64") if number % 2 == 0 else (seen((None,)), "float64")
        assert found[f"k{number}"] == expected
