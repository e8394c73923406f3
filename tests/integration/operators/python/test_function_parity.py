"""Functions see the same values and types in batch, micro-batch and Real-Time Mode, and give the same results.

Each round has one row: a vectorized function gets the batch that its row is in, and in Real-Time Mode that is chance.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession, functions

from tests.helpers.parity import ALL_MODES, BATCH, TYPES, assert_same, outcomes, seen

# PySpark's types know neither vectorized functions nor arguments by name.
F: Any = functions

SCHEMA = ", ".join(["id INT", *(f"{name} {sql_type}" for name, (sql_type, _) in TYPES.items())])
ROUNDS = [[(number, *(values[number] for _, values in TYPES.values()))] for number in range(3)]

# That micro-batch does what batch does is Spark's own promise, so a short run does without.
in_modes = pytest.mark.parametrize(
    "modes",
    [
        pytest.param((BATCH, "real-time"), id="batch and real-time"),
        pytest.param(ALL_MODES, id="all", marks=pytest.mark.chaos),
    ],
)

# PySpark converts no struct with an array of structs to a frame.
NOT_AS_A_FRAME = {"nested"}


@pytest.fixture(scope="module")
def spark(new_session: Callable[..., SparkSession]) -> SparkSession:
    # Not UTC, and with a summer time: a wrong conversion shows.
    zone = {"spark.sql.session.timeZone": "America/New_York", "spark.sql.shuffle.partitions": "1"}
    return new_session("local[8]", zone)


def as_series(series: pd.Series) -> pd.Series:
    return pd.Series([seen(series)] * len(series), dtype=object)


def as_series_of_frame(frame: pd.DataFrame) -> pd.Series:
    return pd.Series([seen(frame)] * len(frame), dtype=object)


def as_array(array: pa.Array) -> pa.Array:
    return pa.array([seen(array)] * len(array))


def as_series_each(batches: Iterator[pd.Series]) -> Iterator[pd.Series]:
    for batch in batches:
        yield as_series(batch)


def as_array_each(batches: Iterator[pa.Array]) -> Iterator[pa.Array]:
    for batch in batches:
        yield as_array(batch)


@in_modes
def test_functions_of_one_column(spark: SparkSession, modes: tuple[str, ...]) -> None:
    def query(rows: DataFrame) -> DataFrame:
        columns = []
        for name, (sql_type, _) in TYPES.items():
            of_frames = sql_type.startswith("STRUCT")
            functions = {
                "arrow": F.udf(seen, "string", useArrow=True),
                "pickle": F.udf(seen, "string", useArrow=False),
                "pandas": F.pandas_udf(as_series_of_frame if of_frames else as_series, "string"),
                "array": F.arrow_udf(as_array, "string"),
            }
            if name in NOT_AS_A_FRAME:
                del functions["pandas"]
            columns += [function(F.col(name)).alias(f"{kind}_{name}") for kind, function in functions.items()]
        return rows.select("id", *columns)

    assert_same(outcomes(spark, query, SCHEMA, ROUNDS, modes))


@pytest.mark.chaos
def test_results_of_each_type(spark: SparkSession) -> None:
    def query(rows: DataFrame) -> DataFrame:
        arrow = [
            F.udf(lambda value: value, sql_type, useArrow=True)(F.col(name)).alias(f"arrow_{name}")
            for name, (sql_type, _) in TYPES.items()
        ]
        pickled = [
            F.udf(lambda value: value, sql_type, useArrow=False)(F.col(name)).alias(f"pickle_{name}")
            for name, (sql_type, _) in TYPES.items()
        ]
        return rows.select("id", *arrow, *pickled)

    assert_same(outcomes(spark, query, SCHEMA, ROUNDS))


@pytest.mark.chaos
def test_functions_over_iterators(spark: SparkSession) -> None:
    def query(rows: DataFrame) -> DataFrame:
        pandas, arrow = F.pandas_udf(as_series_each, "string"), F.arrow_udf(as_array_each, "string")
        columns = [function(name) for name in ("long", "timestamp") for function in (pandas, arrow)]
        return rows.select("id", *(column.alias(f"c{number}") for number, column in enumerate(columns)))

    assert_same(outcomes(spark, query, SCHEMA, ROUNDS))


def frames(batches: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
    for frame in batches:
        yield frame.assign(pandas=[seen(frame)] * len(frame))


def batches(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        yield pa.RecordBatch.from_pydict({"id": batch.column("id"), "arrow": [seen(batch)] * batch.num_rows})


@in_modes
def test_whole_batches(spark: SparkSession, modes: tuple[str, ...]) -> None:
    """One behind the other: the second sees what the first has made."""

    def query(rows: DataFrame) -> DataFrame:
        with_frames = rows.drop("nested").mapInPandas(
            frames, rows.drop("nested").withColumn("pandas", F.lit("")).schema
        )
        return with_frames.mapInArrow(batches, "id INT, arrow STRING")

    assert_same(outcomes(spark, query, SCHEMA, ROUNDS, modes))


def named(first: Any, *, second: Any = "none", third: Any = "none") -> str:
    return seen([first, second, third])


def named_series(first: pd.Series, second: pd.Series, third: pd.Series) -> pd.Series:
    return pd.Series([seen([first, second, third])] * len(first))


@in_modes
def test_arguments_by_name(spark: SparkSession, modes: tuple[str, ...]) -> None:
    def query(rows: DataFrame) -> DataFrame:
        one, many = F.udf(named, "string", useArrow=True), F.udf(named, "string", useArrow=False)
        series = F.pandas_udf(named_series, "string")
        return rows.select(
            one("int", third=F.col("date")).alias("arrow"),
            many(F.col("int"), third=F.col("date"), second=F.col("string")).alias("pickle"),
            series("int", third=F.col("date"), second=F.lit(1)).alias("pandas"),
        )

    assert_same(outcomes(spark, query, SCHEMA, ROUNDS, modes))


def many_arguments(*arguments: Any) -> str:
    return seen(arguments)


def many_series(*arguments: pd.Series) -> pd.Series:
    return pd.Series([seen(list(arguments))] * len(arguments[0]))


@pytest.mark.chaos
def test_256_arguments(spark: SparkSession) -> None:
    def query(rows: DataFrame) -> DataFrame:
        arguments = [(F.col("long") if number % 2 else F.col("string")) for number in range(256)]
        return rows.select(
            F.udf(many_arguments, "string", useArrow=True)(*arguments).alias("arrow"),
            F.udf(many_arguments, "string", useArrow=False)(*arguments).alias("pickle"),
            F.pandas_udf(many_series, "string")(*arguments).alias("pandas"),
        )

    assert_same(outcomes(spark, query, SCHEMA, ROUNDS))
