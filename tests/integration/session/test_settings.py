"""A wrong `spark.tailrace.…` setting is refused when the session starts, or when a query does."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from tailrace._spark.settings import value_of
from tailrace.errors import TailraceError
from tests.helpers.processes import run_python

AT_SESSION_START = """
import tailrace
from pyspark.sql import SparkSession

for key, value in (("spark.tailrace.warmup.epoch", "0"), ("spark.tailrace.checkpoint.fsync", "maybe")):
    try:
        tailrace.configure(SparkSession.builder.master("local[1]").config(key, value)).getOrCreate()
    except tailrace.TailraceError as error:
        print(error.code, key in error.problem, error.fix)
"""


@pytest.fixture(scope="module")
def spark(new_session: Callable[..., SparkSession]) -> SparkSession:
    return new_session("local[2]")


@pytest.fixture
def rows(spark: SparkSession) -> DataFrame:
    return spark.readStream.format("rate").load()


def test_at_session_start() -> None:
    result = run_python(AT_SESSION_START)
    unknown, bad = result.stdout.splitlines()[-2:]
    assert unknown.startswith("TAILRACE_UNKNOWN_SETTING True the nearest is spark.tailrace.warmup.epochs;")
    assert bad.startswith("TAILRACE_BAD_SETTING True set it to true or false")


@pytest.mark.parametrize(
    ("key", "value", "code"),
    [
        ("spark.tailrace.python.timout", "1s", "TAILRACE_UNKNOWN_SETTING"),
        ("spark.tailrace.latency.enabled", "perhaps", "TAILRACE_BAD_SETTING"),
        ("spark.tailrace.checkpoint.fsync", "1", "TAILRACE_BAD_SETTING"),
        ("spark.tailrace.watermark.idleAfter", "soon", "TAILRACE_BAD_SETTING"),
    ],
)
def test_at_the_start_of_a_query(
    spark: SparkSession, rows: DataFrame, tmp_path: Path, key: str, value: str, code: str
) -> None:
    spark.conf.set(key, value)
    try:
        writer = rows.writeStream.format("console").outputMode("update")
        writer = writer.trigger(realTime="5 seconds")  # type: ignore[call-overload]
        with pytest.raises(Exception) as refused:  # noqa: PT011
            writer.option("checkpointLocation", str(tmp_path)).start()
    finally:
        spark.conf.unset(key)
    assert code in str(refused.value)


def test_values_that_python_reads(spark: SparkSession) -> None:
    assert value_of(spark, "spark.tailrace.dashboard.host") == "127.0.0.1"
    assert value_of(spark, "spark.tailrace.dashboard.port") is None
    spark.conf.set("spark.tailrace.dashboard.port", "http")
    try:
        with pytest.raises(TailraceError) as refused:
            value_of(spark, "spark.tailrace.dashboard.port")
    finally:
        spark.conf.unset("spark.tailrace.dashboard.port")
    assert refused.value.code == "TAILRACE_BAD_SETTING"
