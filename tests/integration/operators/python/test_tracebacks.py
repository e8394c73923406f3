"""A traceback shows what the same function shows in batch: the user's frames, and not those of PySpark or Tailrace."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from itertools import dropwhile
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, Row, SparkSession, functions
from pyspark.sql.streaming.stateful_processor import StatefulProcessor

from tailrace.testing import StreamTest

# PySpark's types know neither vectorized functions nor arguments by name.
F: Any = functions


@pytest.fixture(scope="module")
def spark(new_session: Callable[..., SparkSession]) -> SparkSession:
    settings = {
        "spark.sql.shuffle.partitions": "1",
        "spark.sql.streaming.stateStore.providerClass": (
            "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
        ),
    }
    return new_session("local[8]", settings)


def inner(value: Any) -> Any:
    raise ValueError(f"cannot score {value}")


def outer(value: Any) -> Any:
    return inner(value)


def each(batches: Iterator[Any]) -> Iterator[Any]:
    for batch in batches:
        yield outer(batch)


def of_series(values: pd.Series) -> pd.Series:
    result: pd.Series = outer(list(values))
    return result


def of_array(values: pa.Array) -> pa.Array:
    return outer(values)


class Failing(StatefulProcessor):
    def init(self, handle: Any) -> None:
        self.rows = handle.getValueState("rows", "n LONG")

    def handleInputRows(self, key: Any, rows: Iterator[Any], timerValues: Any) -> Iterator[Any]:
        for row in rows:
            yield Row(id=outer(row))


KINDS: dict[str, Callable[[DataFrame], DataFrame]] = {
    "udf with Arrow": lambda rows: rows.select(F.udf(outer, "long", useArrow=True)("id")),
    "udf with pickle": lambda rows: rows.select(F.udf(outer, "long", useArrow=False)("id")),
    "pandas_udf": lambda rows: rows.select(F.pandas_udf(of_series, "long")("id")),
    "arrow_udf": lambda rows: rows.select(F.arrow_udf(of_array, "long")("id")),
    "mapInPandas": lambda rows: rows.mapInPandas(each, "id LONG"),
    "mapInArrow": lambda rows: rows.mapInArrow(each, "id LONG"),
    "transformWithState": lambda rows: rows.groupBy("id").transformWithState(Failing(), "id LONG", "Update", "None"),
    "transformWithStateInPandas": lambda rows: rows.groupBy("id").transformWithStateInPandas(
        Failing(), "id LONG", "Update", "None"
    ),
}


def frames(error: BaseException) -> list[tuple[str, str]]:
    """The file and the function of each frame of the first Python traceback in an error."""
    _, _, traceback = str(error).partition("Traceback (most recent call last):")
    traceback = traceback.partition("ValueError: cannot score")[0]
    return [
        (match[1].rpartition("/")[2], match[2])
        for match in re.finditer(r'File "([^"]+)", line \d+, in (\S+)', traceback)
    ]


@pytest.mark.parametrize("kind", KINDS)
def test_the_users_frames_come_first_as_in_batch(spark: SparkSession, kind: str) -> None:
    with pytest.raises(PySparkException) as in_batch:
        KINDS[kind](spark.createDataFrame([(7,)], "id LONG")).collect()
    # In batch, PySpark leaves its own frames before those of a processor.
    expected = list(dropwhile(lambda frame: frame[0] != "test_tracebacks.py", frames(in_batch.value)))
    assert expected[-2:] == [("test_tracebacks.py", "outer"), ("test_tracebacks.py", "inner")]
    with StreamTest(spark, "real-time") as test:
        source = test.source("id LONG")
        test.start(KINDS[kind](source.rows))
        source.add((7,))
        with pytest.raises(PySparkException) as in_real_time:
            test.process()
    assert frames(in_real_time.value) == expected
