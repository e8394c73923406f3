"""`tailrace.testing`: the same test in Real-Time Mode and micro-batch, without a broker, on the test's clock."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pytest
from pyspark.sql import Row, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.functions import udf

from tailrace.errors import TailraceError
from tailrace.testing import MODES, Mode, StreamTest
from tests.helpers.silence import alerts
from tests.helpers.tree import ROOT

GUIDE = ROOT / "docs/guide"


@pytest.fixture(scope="module")
def spark(new_session: Callable[..., SparkSession]) -> SparkSession:
    return new_session("local[8]", {"spark.sql.shuffle.partitions": "2"})


@pytest.mark.parametrize("mode", MODES)
def test_a_sum_per_key(spark: SparkSession, mode: Mode) -> None:
    with StreamTest(spark, mode) as test:
        payments = test.source("card string, amount double", partitions=2)
        sums = test.start(payments.rows.groupBy("card").agg(F.sum("amount").alias("total")))
        payments.add(("a", 1.0), ("b", 5.0), ("a", 2.0))
        payments.add(("b", 1.0), partition=1)
        test.process()
        assert sums.latest("card") == {"a": 3.0, "b": 6.0}
        sums.new()
        payments.add(("b", 4.0))
        test.process()
        assert sums.new() == [Row(card="b", total=10.0)]
        test.restart()
        payments.add(("b", 1.0))
        test.process()
        assert sums.latest("card")["b"] == 11.0
        assert sums.latest("card", "total")[("b", 11.0)] == Row()


@pytest.mark.parametrize("mode", MODES)
def test_a_window_closes_by_the_rows_time(spark: SparkSession, mode: Mode) -> None:
    """A late row is dropped when the watermark has passed it, in either mode."""
    noon = datetime(2026, 1, 1, 12)
    with StreamTest(spark, mode) as test:
        clicks = test.source("page string, at timestamp")
        counts = test.start(
            clicks.rows.withWatermark("at", "10 minutes")
            .groupBy(F.window("at", "1 hour"), "page")
            .count()
            .select(F.col("window.start").alias("hour"), "page", "count")
        )
        clicks.add(("home", noon), ("home", noon + timedelta(minutes=5)))
        test.process()
        clicks.add(("home", noon + timedelta(hours=3)))
        test.process()
        clicks.add(("home", noon + timedelta(minutes=6)), ("home", noon + timedelta(hours=3)))
        test.process()
        assert counts.latest("hour", "page") == {(noon, "home"): 2, (noon + timedelta(hours=3), "home"): 2}


@pytest.mark.parametrize("mode", MODES)
def test_functions_in_python(spark: SparkSession, mode: Mode) -> None:
    with StreamTest(spark, mode) as test:
        words = test.source("word string")
        shouted = test.start(words.rows.select(udf(lambda word: word.upper(), "string")("word").alias("word")))
        words.add(*((f"w{number}",) for number in range(20)))
        test.process()
        assert Counter(row.word for row in shouted.rows()) == Counter(f"W{number}" for number in range(20))


@pytest.mark.parametrize("mode", MODES)
def test_timers_go_by_the_tests_clock(spark: SparkSession, mode: Mode) -> None:
    with StreamTest(spark, mode) as test:
        readings = test.source("device string, degrees double")
        found = test.start(alerts(readings.rows, silence_ms=600_000))
        readings.add(("door", 1.0), ("window", 1.0))
        test.advance(minutes=9)
        assert found.rows() == []
        readings.add(("window", 1.0))
        test.advance(minutes=2)
        assert found.new() == [Row(device="door", alert="silent")]
        readings.add(("door", 1.0))
        test.advance(minutes=9)
        assert sorted(found.new()) == [Row(device="door", alert="back"), Row(device="window", alert="silent")]


def test_rows_do_not_wait_for_the_end_of_the_epoch(spark: SparkSession) -> None:
    with StreamTest(spark, "real-time") as test:
        words = test.source("word string")
        same = test.start(words.rows)
        began = test.now
        for number in range(3):
            words.add((f"w{number}",))
            same.until(lambda rows, seen=number: len(rows) == seen + 1)  # type: ignore[misc]
        assert test.now == began


def test_a_restart_repeats_the_open_epoch(spark: SparkSession) -> None:
    """As it is with a sink that writes at least once."""
    with StreamTest(spark, "real-time") as test:
        words = test.source("word string")
        same = test.start(words.rows)
        words.add(("committed",))
        test.process()
        words.add(("open",))
        same.until(lambda rows: len(rows) == 2)
        test.restart()
        test.process()
        assert Counter(row.word for row in same.rows()) == {"committed": 1, "open": 2}


@pytest.mark.parametrize("mode", MODES)
def test_the_clock(spark: SparkSession, mode: Mode) -> None:
    with StreamTest(spark, mode) as test:
        words = test.source("word string")
        test.start(words.rows)
        before = test.now
        test.advance(hours=2)
        assert timedelta(hours=2) <= test.now - before < timedelta(hours=2, seconds=5)


@pytest.mark.parametrize("mode", MODES)
def test_a_failure_of_the_query_is_raised(spark: SparkSession, mode: Mode) -> None:
    with StreamTest(spark, mode) as test:
        words = test.source("word string")
        test.start(words.rows.select(F.col("word").cast("int")))
        words.add(("seven",))
        with pytest.raises(Exception, match="CAST_INVALID_INPUT"):
            test.process()


class TestMisuse:
    def test_two_at_a_time(self, spark: SparkSession) -> None:
        with StreamTest(spark), pytest.raises(TailraceError, match="another StreamTest is open"):
            StreamTest(spark)

    def test_no_such_mode(self, spark: SparkSession) -> None:
        with pytest.raises(TailraceError, match="there is no mode 'batch'"):
            StreamTest(spark, "batch")  # type: ignore[arg-type]

    def test_no_such_partition(self, spark: SparkSession) -> None:
        with StreamTest(spark) as test, pytest.raises(TailraceError, match="there is no partition 1"):
            test.source("word string").add(("a",), partition=1)

    def test_without_a_query(self, spark: SparkSession) -> None:
        with StreamTest(spark) as test, pytest.raises(TailraceError, match="no query is running"):
            test.process()

    def test_results_that_do_not_come(self, spark: SparkSession) -> None:
        with StreamTest(spark) as test:
            same = test.start(test.source("word string").rows)
            with pytest.raises(TailraceError, match="the results were") as slow:
                same.until(bool, within_s=0.1)
            assert slow.value.code == "TAILRACE_TEST_TIMEOUT"


@pytest.mark.parametrize("mode", MODES)
def test_the_documented_example(spark: SparkSession, mode: Mode) -> None:
    [example] = re.findall(r"```python\n(.*?)```", (GUIDE / "testing.md").read_text(), re.DOTALL)
    names: dict[str, Any] = {}
    exec(compile(example, "testing.md", "exec"), names)
    names["test_sums_per_card"](spark, mode)
