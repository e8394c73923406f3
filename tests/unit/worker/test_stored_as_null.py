"""What Spark would store as null in place of a value is refused."""

from __future__ import annotations

import datetime
import sys
from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import Any

import pytest
from pyspark.errors import PySparkTypeError
from pyspark.sql import types as T

from tailrace.errors import TailraceError
from tests.helpers.tree import ROOT

NAN = float("nan")
INTEGERS = T.ArrayType(T.IntegerType())
SHARES = T.MapType(T.StringType(), T.DoubleType())
NESTED = T.StructType().add("x", T.IntegerType()).add("y", T.ArrayType(T.DoubleType()))


@pytest.fixture
def check(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[T.DataType, Any], None]]:
    monkeypatch.syspath_prepend(str(ROOT / "jvm" / "worker"))
    from tailrace_worker.stored_as_null import NullCheck

    def check(data_type: T.DataType, value: Any) -> None:
        schema = T.StructType().add("first", T.StringType()).add("column", data_type)
        NullCheck(schema)(schema.toInternal(("x", value)))

    yield check
    for name in [name for name in sys.modules if name.startswith("tailrace_worker")]:
        del sys.modules[name]


@pytest.mark.parametrize(
    ("data_type", "value"),
    [
        (T.IntegerType(), 1),
        (T.LongType(), -(2**63)),
        (T.IntegerType(), NAN),
        (T.DoubleType(), 1.0),
        (T.DoubleType(), NAN),
        (T.FloatType(), 0.1),
        (T.BooleanType(), False),
        (T.StringType(), 1),
        (T.BinaryType(), b"x"),
        (T.BinaryType(), bytearray(b"x")),
        (T.DecimalType(10, 2), Decimal("1")),
        (T.DateType(), datetime.date(2026, 1, 1)),
        (T.TimestampType(), datetime.datetime(2026, 1, 1)),
        (T.TimestampNTZType(), datetime.datetime(2026, 1, 1)),
        (INTEGERS, [1, None]),
        (INTEGERS, (1, 2)),
        (SHARES, {"a": 1.0, "b": None}),
        (NESTED, (1, [2.0])),
        (NESTED, {"x": 1, "y": None}),
    ],
)
def test_what_spark_keeps_is_kept(check: Callable[[T.DataType, Any], None], data_type: T.DataType, value: Any) -> None:
    check(data_type, value)
    check(data_type, None)


@pytest.mark.parametrize(
    ("data_type", "value"),
    [
        (T.IntegerType(), 1.0),
        (T.IntegerType(), True),
        (T.IntegerType(), "1"),
        (T.LongType(), 2**63),
        (T.DoubleType(), 1),
        (T.FloatType(), Decimal("1")),
        (T.BooleanType(), 1),
        (T.BinaryType(), 1),
        (T.DecimalType(10, 2), 1),
        (T.DecimalType(10, 2), 1.0),
        (INTEGERS, {1}),
        (INTEGERS, [1, 2.0]),
        (SHARES, {"a": 1}),
        (SHARES, [("a", 1.0)]),
        (NESTED, (1, [2])),
    ],
)
def test_what_spark_loses_is_refused(
    check: Callable[[T.DataType, Any], None], data_type: T.DataType, value: Any
) -> None:
    with pytest.raises(PySparkTypeError) as refused:
        check(data_type, value)
    found = TailraceError.find_in(str(refused.value))
    assert found is not None
    assert found.code == "TAILRACE_STATE_TYPE"
    assert "'column'" in found.problem
