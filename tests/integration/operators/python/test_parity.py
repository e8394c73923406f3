"""Python functions give the same results in Real-Time Mode as in micro-batch, type by type and kind by kind."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession, functions

from tailrace import EmbeddedKafka
from tests.helpers.pipeline import Pipeline
from tests.helpers.topics import produce
from tests.helpers.waiting import until

# PySpark's types know neither vectorized functions nor arguments by name.
F: Any = functions

TYPES: dict[str, tuple[str, list[Any]]] = {
    "boolean": ("BOOLEAN", [True, False, None]),
    "byte": ("BYTE", [1, -128, None]),
    "short": ("SHORT", [300, -32768, None]),
    "int": ("INT", [70_000, -1, None]),
    "long": ("LONG", [2**62, -1, None]),
    "float": ("FLOAT", [1.5, -0.25, None]),
    "double": ("DOUBLE", [3.141592653589793, -1e300, None]),
    "decimal": ("DECIMAL(20, 4)", ["1234567890123456.7891", "-0.0001", None]),
    "wide_decimal": ("DECIMAL(38, 18)", ["12345678901234567890.123456789012345678", "-1", None]),
    "string": ("STRING", ["größer, 汉字, \U0001f600", "", None]),
    "binary": ("BINARY", [base64.b64encode(b"\x00\xff\x10").decode(), "", None]),
    "date": ("DATE", ["2026-02-28", "1969-07-20", None]),
    "timestamp": ("TIMESTAMP", ["2026-03-29T01:30:00.123456Z", "1969-07-20T20:17:40Z", None]),
    "timestamp_ntz": ("TIMESTAMP_NTZ", ["2026-03-29T02:30:00.123456", "1969-07-20T20:17:40", None]),
    "array": ("ARRAY<INT>", [[1, None, 3], [], None]),
    "array_of_timestamps": ("ARRAY<TIMESTAMP>", [["2026-07-01T12:00:00Z"], [], None]),
    "map": ("MAP<STRING, LONG>", [{"a": 1, "b": 2}, {}, None]),
    "struct": ("STRUCT<x: INT, y: STRING>", [{"x": 1, "y": "one"}, {"x": None, "y": None}, None]),
    "nested": (
        "STRUCT<points: ARRAY<STRUCT<at: TIMESTAMP, tags: MAP<STRING, DOUBLE>>>>",
        [{"points": [{"at": "2026-01-01T00:00:00Z", "tags": {"t": 0.5}}]}, {"points": []}, None],
    ),
}


def same(value: Any) -> Any:
    return value


def same_series(values: pd.Series) -> pd.Series:
    return values


def same_frame(values: pd.DataFrame) -> pd.DataFrame:
    return values


def same_array(values: pa.Array) -> pa.Array:
    return values


def same_series_each(batches: Iterator[pd.Series]) -> Iterator[pd.Series]:
    yield from batches


def same_frame_each(batches: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
    yield from batches


def same_array_each(batches: Iterator[pa.Array]) -> Iterator[pa.Array]:
    yield from batches


def same_batches(batches: Iterator[Any]) -> Iterator[Any]:
    yield from batches


def is_struct(sql_type: str) -> bool:
    """pandas functions get structs as frames."""
    return sql_type.startswith("STRUCT")


# What makes, for a SQL type, a function of one column that gives back what it got.
SCALARS: dict[str, Callable[[str], Callable[[Any], Any]]] = {
    "udf with Arrow": lambda sql_type: F.udf(same, sql_type, useArrow=True),
    "udf with pickle": lambda sql_type: F.udf(same, sql_type, useArrow=False),
    "pandas_udf": lambda sql_type: F.pandas_udf(same_frame if is_struct(sql_type) else same_series, sql_type),
    "pandas_udf over an iterator": lambda sql_type: F.pandas_udf(
        same_frame_each if is_struct(sql_type) else same_series_each, sql_type
    ),
    "arrow_udf": lambda sql_type: F.arrow_udf(same_array, sql_type),
    "arrow_udf over an iterator": lambda sql_type: F.arrow_udf(same_array_each, sql_type),
}
WHOLE_ROWS = {
    "mapInPandas": lambda rows: rows.mapInPandas(same_batches, rows.schema),
    "mapInArrow": lambda rows: rows.mapInArrow(same_batches, rows.schema),
}
OPERATORS = {**dict.fromkeys(SCALARS, "RealTimeEvalPython"), **dict.fromkeys(WHOLE_ROWS, "RealTimeMapInBatch")}

# PySpark's own limits, in either mode.
NOT_IN_PYSPARK = {
    ("pandas_udf", "nested"),
    ("pandas_udf over an iterator", "nested"),
}
CASES = [(kind, name) for kind in OPERATORS for name in TYPES if (kind, name) not in NOT_IN_PYSPARK]


@dataclass
class Outcome:
    """What a kind of function made of all types, in each mode."""

    real_time: dict[int, dict[str, Any]] = field(default_factory=dict)
    micro_batch: dict[int, dict[str, Any]] = field(default_factory=dict)
    plan: str = ""
    epochs_ended: bool = True


@pytest.fixture(scope="module")
def outcome_of(
    spark: SparkSession, kafka: EmbeddedKafka, tmp_path_factory: pytest.TempPathFactory
) -> Callable[[str], Outcome]:
    """Runs each kind once, over all types at the same time."""
    # Not UTC, and with a summer time: a wrong conversion shows.
    spark.conf.set("spark.sql.session.timeZone", "America/New_York")
    outcomes: dict[str, Outcome] = {}
    values = [[column[row] for _, column in TYPES.values()] for row in range(3)]
    schema = ", ".join(f"{name} {sql_type}" for name, (sql_type, _) in TYPES.items())

    def query(pipeline: Pipeline, kind: str) -> DataFrame:
        raw = pipeline.raw().select(F.from_json("value", f"id INT, {schema}").alias("row")).select("row.*")
        if kind in WHOLE_ROWS:
            whole: DataFrame = WHOLE_ROWS[kind](raw)
            return whole
        columns = [
            (F.col(name) if (kind, name) in NOT_IN_PYSPARK else SCALARS[kind](sql_type)(F.col(name))).alias(name)
            for name, (sql_type, _) in TYPES.items()
        ]
        return raw.select("id", *columns)

    def run(kind: str, folder: Path) -> Outcome:
        outcome = Outcome()
        # Functions over an iterator are not called together: each type has a worker of its own in each partition.
        pipeline = Pipeline(spark, kafka, folder / "real-time", input_partitions=1)
        produce(
            pipeline.servers,
            pipeline.input,
            ({"id": number, **dict(zip(TYPES, row, strict=True))} for number, row in enumerate(values)),
            key="id",
        )
        with pipeline.collect() as out, pipeline.running(query(pipeline, kind), epoch="200 seconds") as started:
            until(lambda: len(out.rows()) == len(values) or started.exception(), "all rows in one epoch")
            outcome.epochs_ended = started.lastProgress is not None
            outcome.plan = started._jsq.explainInternal(False)
            outcome.real_time = {row["id"]: row for row in out.rows()}
        pipeline.use_fresh_output(folder / "micro-batch")
        with pipeline.collect() as out, pipeline.running(query(pipeline, kind), epoch=None) as started:
            started.processAllAvailable()
            until(lambda: len(out.rows()) == len(values), "all rows of the micro-batch")
            outcome.micro_batch = {row["id"]: row for row in out.rows()}
        return outcome

    def outcome_of(kind: str) -> Outcome:
        if kind not in outcomes:
            outcomes[kind] = run(kind, tmp_path_factory.mktemp("parity"))
        return outcomes[kind]

    return outcome_of


@pytest.mark.parametrize(("kind", "name"), CASES, ids=[f"{kind}-{name}" for kind, name in CASES])
def test_same_result_as_micro_batch(kind: str, name: str, outcome_of: Callable[[str], Outcome]) -> None:
    outcome = outcome_of(kind)
    assert not outcome.epochs_ended, "an epoch ended: rows may have waited for it"
    assert OPERATORS[kind] in outcome.plan
    results = {number: row.get(name) for number, row in outcome.real_time.items()}
    assert results == {number: row.get(name) for number, row in outcome.micro_batch.items()}
    # Nothing is proved by comparing nothing.
    assert results[0] not in (None, {}, [], "")
    assert results[0] != results[1]


def test_the_table_is_long_enough() -> None:
    assert len(CASES) >= 40
