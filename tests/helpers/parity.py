"""Runs a query in batch, in micro-batch and in Real-Time Mode, and compares values and their types."""

from __future__ import annotations

import datetime
import json
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from pyspark.sql import DataFrame, Row, SparkSession

from tailrace.testing import MODES, StreamTest

BATCH = "batch"
ALL_MODES = (BATCH, *MODES)
STREAMS = MODES

Query = Callable[[DataFrame], DataFrame]
Round = list[tuple[Any, ...]]

#: For each type two values and a null.
TYPES: dict[str, tuple[str, list[Any]]] = {
    "boolean": ("BOOLEAN", [True, False, None]),
    "byte": ("BYTE", [1, -128, None]),
    "short": ("SHORT", [300, -32768, None]),
    "int": ("INT", [70_000, -1, None]),
    "long": ("LONG", [2**62 + 1, -1, None]),
    "float": ("FLOAT", [1.5, -0.25, None]),
    "double": ("DOUBLE", [3.141592653589793, -1e300, None]),
    "decimal": ("DECIMAL(20, 4)", [Decimal("1234567890123456.7891"), Decimal("-0.0001"), None]),
    "wide_decimal": ("DECIMAL(38, 18)", [Decimal("12345678901234567890.123456789012345678"), Decimal(-1), None]),
    "string": ("STRING", ["größer, 汉字, \U0001f600", "", None]),
    "binary": ("BINARY", [b"\x00\xff\x10", b"", None]),
    "date": ("DATE", [datetime.date(2026, 2, 28), datetime.date(1969, 7, 20), None]),
    "timestamp": (
        "TIMESTAMP",
        [datetime.datetime(2026, 3, 8, 1, 30, 0, 123456), datetime.datetime(1969, 7, 20, 20, 17, 40), None],
    ),
    "timestamp_ntz": (
        "TIMESTAMP_NTZ",
        [datetime.datetime(2026, 3, 8, 2, 30, 0, 123456), datetime.datetime(1969, 7, 20, 20, 17, 40), None],
    ),
    "array": ("ARRAY<INT>", [[1, None, 3], [], None]),
    "array_of_timestamps": ("ARRAY<TIMESTAMP>", [[datetime.datetime(2026, 7, 1, 12)], [], None]),
    "map": ("MAP<STRING, LONG>", [{"a": 1, "b": 2}, {}, None]),
    "struct": ("STRUCT<x: INT, y: STRING>", [(1, "one"), (None, None), None]),
    "nested": (
        "STRUCT<points: ARRAY<STRUCT<at: DATE, tags: MAP<STRING, DOUBLE>>>>",
        [([(datetime.date(2026, 1, 1), {"t": 0.5})],), ([],), None],
    ),
}

# For sessions whose queries keep state, in batch as well.
WITH_STATE = {
    "spark.sql.session.timeZone": "America/New_York",
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
}


def described(value: Any) -> Any:
    """A value and its type, and those of all values in it, as JSON can say them."""
    match value:
        case None:
            return None
        case pd.DataFrame():
            return ["frame", {str(name): described(value[name]) for name in value.columns}]
        case pd.Series():
            return ["series", str(value.dtype), [described(one) for one in value]]
        case pa.Array() | pa.ChunkedArray():
            return ["arrow", str(value.type), [described(one) for one in value.to_pylist()]]
        case pa.RecordBatch() | pa.Table():
            return ["arrow", {name: described(value.column(name)) for name in value.schema.names}]
        case np.ndarray():
            return ["ndarray", str(value.dtype), [described(one) for one in value]]
        case Row():
            return ["Row", getattr(value, "__fields__", None), [described(one) for one in value]]
        case dict():
            return [type(value).__name__, sorted([str(described(key)), described(one)] for key, one in value.items())]
        case list() | tuple():
            return [type(value).__name__, [described(one) for one in value]]
    return [f"{type(value).__module__}.{type(value).__qualname__}", repr(value)]


def seen(value: Any) -> str:
    """The same as a string, which a function can return."""
    return json.dumps(described(value), ensure_ascii=False)


def outcomes(
    spark: SparkSession, query: Query, schema: str, rounds: list[Round], modes: tuple[str, ...] = ALL_MODES
) -> dict[str, list[list[Any]]]:
    """What each mode makes of each round of rows; the rows of a round are processed together."""
    return {
        mode: _in_batch(spark, query, schema, rounds)
        if mode == BATCH
        else _in_stream(spark, mode, query, schema, rounds)
        for mode in modes
    }


def assert_same(found: dict[str, list[list[Any]]]) -> None:
    """Every mode has the same results, and there are some in each round."""
    reference, *others = found
    assert all(found[reference]), "nothing is proved by comparing nothing"
    for mode in others:
        for number, (expected, got) in enumerate(zip(found[reference], found[mode], strict=True)):
            assert got == expected, f"{mode} differs from {reference} in round {number}"


def _in_batch(spark: SparkSession, query: Query, schema: str, rounds: list[Round]) -> list[list[Any]]:
    return [_sorted(query(spark.createDataFrame(rows, schema)).collect()) for rows in rounds]


def _in_stream(spark: SparkSession, mode: Any, query: Query, schema: str, rounds: list[Round]) -> list[list[Any]]:
    with StreamTest(spark, mode) as test:
        source = test.source(schema)
        results = test.start(query(source.rows))
        found = []
        for rows in rounds:
            source.add(*rows)
            test.process()
            found.append(_sorted(results.new()))
        if mode == "real-time":
            plan = results.query._jsq.explainInternal(False)
            assert "RealTime" in plan, "no operator of Real-Time Mode is in the plan"
        return found


def _sorted(rows: list[Row]) -> list[Any]:
    return sorted((described(row) for row in rows), key=str)
