"""`tailrace.drop_duplicates`: the first row of each key, forgotten in time; the same in both modes."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F

import tailrace
from tailrace.errors import TailraceError
from tailrace.testing import MODES, Mode, StreamTest
from tests.helpers.pipeline import Pipeline
from tests.helpers.waiting import until

EPOCH = "10 minutes"


@pytest.fixture(scope="module")
def spark(new_session: Callable[..., SparkSession]) -> SparkSession:
    return new_session("local[6]")


@pytest.mark.parametrize("mode", MODES)
def test_a_key_is_forgotten_in_time(spark: SparkSession, mode: Mode) -> None:
    """Counted from its first row: those that are dropped do not prolong it."""
    with StreamTest(spark, mode) as test:
        payments = test.source("id string, amount double")
        once = test.start(tailrace.drop_duplicates(payments.rows, "id", ttl="10 minutes"))
        payments.add(("a", 1.0), ("b", 1.0), ("a", 2.0))
        test.advance(minutes=9)
        assert sorted(once.new()) == [Row(id="a", amount=1.0), Row(id="b", amount=1.0)]
        payments.add(("a", 3.0))
        test.process()
        assert once.new() == []
        test.advance(minutes=2)
        payments.add(("a", 4.0), ("a", 5.0))
        test.process()
        assert once.new() == [Row(id="a", amount=4.0)]
        test.advance(minutes=11)
        test.process()
        # Not as PySpark's objects: they need a rate, and Spark has none for a batch that took no time on this clock.
        progress: Any = json.loads(once.query._jsq.lastProgress().json())
        [state] = progress["stateOperators"]
        assert state["numRowsTotal"] == 0, "a key that nobody asks for stays"


@pytest.mark.parametrize("mode", MODES)
def test_keys_outlive_a_restart(spark: SparkSession, mode: Mode) -> None:
    with StreamTest(spark, mode) as test:
        payments = test.source("id long")
        once = test.start(tailrace.drop_duplicates(payments.rows, ["id"], ttl=timedelta(minutes=10)))
        payments.add((1,), (2,))
        test.process()
        test.restart()
        payments.add((1,), (3,))
        test.process()
        assert sorted(row.id for row in once.rows()) == [1, 2, 3]


def test_rows_do_not_wait_for_the_end_of_the_epoch(spark: SparkSession) -> None:
    with StreamTest(spark, "real-time") as test:
        words = test.source("word string")
        once = test.start(tailrace.drop_duplicates(words.rows, ["word"], ttl="1 hour"))
        began = test.now
        for number in range(3):
            words.add((f"w{number}",), (f"w{number}",))
            once.until(lambda rows, seen=number: len(rows) == seen + 1)  # type: ignore[misc]
        assert test.now == began


@pytest.mark.parametrize("mode", MODES)
def test_columns_stay_what_they_are(spark: SparkSession, mode: Mode) -> None:
    noon = datetime(2026, 1, 1, 12)
    schema = (
        "id string, number decimal(20, 4), at timestamp, local timestamp_ntz, day date, bytes binary, "
        "words array<string>, counts map<string, int>, place struct<x: double, y: struct<z: string>>, nothing string"
    )
    row = (
        "ä",
        Decimal("1.5000"),
        noon,
        noon,
        noon.date(),
        bytearray(b"\xff\x00"),
        ["a", None],
        {"a": 1, "b": None},
        (1.0, ("é",)),
        None,
    )
    with StreamTest(spark, mode) as test:
        rows = test.source(schema)
        once_each = tailrace.drop_duplicates(
            rows.rows, ["id", "number", "at", "bytes", "words", "place", "nothing"], ttl="1 day"
        )
        assert once_each.schema.simpleString() == rows.rows.schema.simpleString()
        same = test.start(once_each)
        rows.add(row, row, ("other", *row[1:]))
        test.process()
        [kept, other] = sorted(same.rows(), key=lambda found: found.id != "ä")
        assert tuple(kept)[:8] == row[:8]
        assert kept.place == Row(x=1.0, y=Row(z="é"))
        assert kept.nothing is None
        assert other.id == "other"


@pytest.mark.parametrize("mode", MODES)
def test_texts_that_are_no_texts_are_told_apart(spark: SparkSession, mode: Mode) -> None:
    """Bytes that are not valid UTF-8 would all become the same sign in a string of Java's."""
    with StreamTest(spark, mode) as test:
        records = test.source("key binary")
        texts = records.rows.select(F.col("key").cast("string").alias("text"))
        once = test.start(tailrace.drop_duplicates(texts, ["text"], ttl="1 day").select(F.hex("text").alias("text")))
        records.add((b"\xff",), (b"\xfe",), (b"\xff",))
        test.process()
        assert sorted(row.text for row in once.rows()) == ["FE", "FF"]


@pytest.mark.parametrize("steps", [6, pytest.param(30, marks=pytest.mark.chaos)])
def test_random_rows_and_times(spark: SparkSession, steps: int) -> None:
    """Against a reference in Python, and so both modes against each other; with restarts."""
    for mode in MODES:
        chance = random.Random(8)
        expected: list[int] = []
        forgotten_at: dict[str, datetime] = {}
        with StreamTest(spark, mode) as test:
            rows = test.source("number int, key string")
            once = test.start(tailrace.drop_duplicates(rows.rows, ["key"], ttl="60 seconds"))
            for step in range(steps):
                # Half a minute or more between all that matters: an epoch's end moves the clock by some milliseconds.
                for number in range(step * 10, step * 10 + 10):
                    key = f"k{chance.randrange(12)}"
                    rows.add((number, key))
                    if test.now >= forgotten_at.get(key, datetime.min.replace(tzinfo=UTC)):
                        expected.append(number)
                        forgotten_at[key] = test.now + timedelta(seconds=59)
                test.advance(seconds=chance.choice((0, 31, 31)))
                if chance.random() < 0.2:
                    test.restart()
            assert sorted(row.number for row in once.rows()) == expected


def test_a_batch_is_one_moment(spark: SparkSession) -> None:
    rows = spark.createDataFrame([(1, "a"), (1, "b"), (2, "a")], "id int, word string")
    once = tailrace.drop_duplicates(rows, ["id"], ttl="1 second")
    assert sorted(row.id for row in once.collect()) == [1, 2]


@pytest.mark.parametrize(
    ("columns", "ttl", "problem"),
    [
        (["nobody"], "10 minutes", "no column 'nobody'"),
        ([], "10 minutes", "the list of columns is empty"),
        ([F.col], "10 minutes", "must be given by name"),
        (["tags"], "10 minutes", "a map"),
        (["id"], "soon", "'soon', which is not a duration"),
        (["id"], 600, "'600', which is not a duration"),
        (["id"], "0 seconds", "forgotten at once"),
        (["id"], "-1 minute", "forgotten at once"),
        (["id"], timedelta(0), "forgotten at once"),
        (["id"], "1 month", "months differ in length"),
    ],
)
def test_what_makes_no_sense(spark: SparkSession, columns: Any, ttl: Any, problem: str) -> None:
    with StreamTest(spark) as test, pytest.raises(TailraceError, match=problem) as refused:
        tailrace.drop_duplicates(test.source("id string, tags map<string, string>").rows, columns, ttl=ttl)
    assert refused.value.code == "TAILRACE_BAD_DEDUPLICATION"
    assert refused.value.fix


def once_each(pipeline: Pipeline, ttl: str = "1 hour") -> DataFrame:
    return tailrace.drop_duplicates(pipeline.rows(), ["key"], ttl=ttl)


def test_each_row_once_after_a_stop(pipeline: Pipeline) -> None:
    """The open epoch is computed again, and the exactly-once sink knows its rows."""
    with pipeline.collect() as out:
        for ids in (range(30), range(20, 50)):
            with pipeline.running(once_each(pipeline), epoch=EPOCH, sink="tailrace-kafka"):
                pipeline.send(ids, keys=40)
                until(lambda known=ids.stop: len(out.rows()) >= min(known, 40), "each key once")  # type: ignore[misc]
        assert sorted(row["key"] for row in out.rows()) == sorted(f"k{number}" for number in range(40))


def test_the_check_knows_it(pipeline: Pipeline) -> None:
    writer = pipeline.writer(once_each(pipeline).select(F.to_json(F.struct("*")).alias("value")), "kafka")
    verdict = tailrace.check(writer.option("topic", pipeline.output).trigger(realTime=EPOCH))  # type: ignore[call-overload]
    assert "TAILRACE_UNBOUNDED_STATE" not in {finding.code for finding in verdict.findings}
    assert not verdict.blocked
