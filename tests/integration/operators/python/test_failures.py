"""Python code that fails, dies or hangs: the user learns at once where and at which record, and no row is lost."""

from __future__ import annotations

import os
import re
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, Row, SparkSession, functions
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.stateful_processor import StatefulProcessor

from tailrace import TailraceError
from tests.helpers.pipeline import Pipeline
from tests.helpers.topics import produce
from tests.helpers.waiting import until

# PySpark's types know neither vectorized functions nor arguments by name.
F: Any = functions

LONG_EPOCH = "10 minutes"
TIMEOUT = "spark.tailrace.python.timeout"


@pytest.fixture
def flag(tmp_path: Path) -> Path:
    """A file that a function looks for: with it, the function behaves."""
    return tmp_path / "behave"


def start(pipeline: Pipeline, query: DataFrame) -> StreamingQuery:
    writer: Any = query.select(F.to_json(F.struct("*")).alias("value")).writeStream.format("kafka")
    writer = writer.option("kafka.bootstrap.servers", pipeline.servers).option("topic", pipeline.output)
    writer = writer.option("checkpointLocation", str(pipeline.checkpoint)).outputMode("update")
    return writer.trigger(realTime=LONG_EPOCH).start()  # type: ignore[no-any-return]


def failure_of(query: StreamingQuery) -> str:
    """The error without Spark's description of the query."""
    failure = until(query.exception, "the failure")
    assert isinstance(failure, StreamingQueryException)
    return str(failure).partition("=== Streaming Query ===")[0]


def fail_at(number: int, *, unless: Path) -> Callable[[int], int]:
    def call(value: int) -> int:
        if value == number and not unless.exists():
            raise ValueError(f"cannot score {value}")
        return value

    return call


def each_id(function: Callable[[int], int]) -> Any:
    def call(frames: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
        for frame in frames:
            yield frame.assign(id=frame["id"].map(function))

    return call


class Scoring(StatefulProcessor):
    """Calls a function for each row."""

    def __init__(self, function: Callable[[int], int]) -> None:
        self.function = function

    def init(self, handle: Any) -> None:
        self.rows = handle.getValueState("rows", "n LONG")

    def handleInputRows(self, key: Any, rows: Any, timerValues: Any) -> Iterator[Row]:
        for row in rows:
            self.rows.update(((self.rows.get() or (0,))[0] + 1,))
            yield Row(id=self.function(row.id))


def with_state(rows: DataFrame, function: Callable[[int], int]) -> DataFrame:
    return rows.groupBy("key").transformWithState(Scoring(function), "id LONG", "Update", "None")


class ScoringOfFrames(Scoring):
    def handleInputRows(self, key: Any, rows: Iterator[Any], timerValues: Any) -> Iterator[Any]:
        for frame in rows:
            yield pd.DataFrame({"id": [self.function(value) for value in frame["id"]]})


def with_frames(rows: DataFrame, function: Callable[[int], int]) -> DataFrame:
    return rows.groupBy("key").transformWithStateInPandas(ScoringOfFrames(function), "id LONG", "Update", "None")


KINDS: dict[str, Callable[[DataFrame, int, Path], DataFrame]] = {
    "udf with Arrow": lambda rows, number, flag: rows.select(
        F.udf(fail_at(number, unless=flag), "long", useArrow=True)("id").alias("id")
    ),
    "udf with pickle": lambda rows, number, flag: rows.select(
        F.udf(fail_at(number, unless=flag), "long", useArrow=False)("id").alias("id")
    ),
    "pandas_udf": lambda rows, number, flag: rows.select(
        F.pandas_udf(lambda values: values.map(fail_at(number, unless=flag)), "long")("id").alias("id")
    ),
    "mapInPandas": lambda rows, number, flag: rows.select("id").mapInPandas(
        each_id(fail_at(number, unless=flag)), "id LONG"
    ),
    "transformWithState": lambda rows, number, flag: with_state(rows, fail_at(number, unless=flag)),
}


@pytest.mark.parametrize("kind", KINDS)
def test_an_exception_names_the_record_at_once_though_no_row_follows(pipeline: Pipeline, kind: str, flag: Path) -> None:
    query = start(pipeline, KINDS[kind](pipeline.rows(), 7, flag))
    with pipeline.collect() as out:
        pipeline.send(range(7), keys=1)
        until(lambda: len(out.rows()) == 7, "the rows before")
        sent = time.monotonic()
        pipeline.send(range(7, 8), keys=1)
        message = failure_of(query)
        # Not the epoch's end.
        assert time.monotonic() - sent < 300
        assert "[PYTHON_EXCEPTION]" in message
        assert "ValueError: cannot score 7" in message
        assert "in call" in message, "no traceback of the user's function"
        assert re.search(rf"topic '{pipeline.input}', partition [01], offset 7\b", message), message

        flag.touch()
        again = start(pipeline, KINDS[kind](pipeline.rows(), 7, flag))
        pipeline.send(range(8, 12), keys=1)
        until(lambda: {row["id"] for row in out.rows()} == set(range(12)), "every row, after the restart")
        again.stop()


@pytest.mark.parametrize("kind", ["udf with Arrow", "udf with pickle", "pandas_udf", "transformWithState"])
def test_the_record_is_named_within_a_large_batch(pipeline: Pipeline, kind: str, flag: Path) -> None:
    """Thousands wait when the query starts, so that many rows share a batch."""
    pipeline.send(range(3000), keys=1)
    query = start(pipeline, KINDS[kind](pipeline.rows(), 2345, flag))
    message = failure_of(query)
    assert "ValueError: cannot score 2345" in message
    assert re.search(r"partition [01], offset 2345\b", message), message


def test_a_map_names_the_records_of_its_batch(pipeline: Pipeline, flag: Path) -> None:
    """On a busy machine the function may keep up with its input, and then the record is alone in its batch."""
    pipeline.send(range(3000), keys=1)
    message = failure_of(start(pipeline, KINDS["mapInPandas"](pipeline.rows(), 2345, flag)))
    one_of = re.search(r"one of \d+ records: topic '[^']+', partition [01], offsets (\d+) to (\d+)", message)
    if one_of is None:
        assert re.search(r"the record at topic '[^']+', partition [01], offset 2345\b", message), message
    else:
        assert int(one_of[1]) <= 2345 <= int(one_of[2])


def test_behind_a_shuffle_the_error_names_the_record_too(pipeline: Pipeline, flag: Path) -> None:
    counts = pipeline.rows().groupBy("key").agg(F.max("id").alias("id"))
    query = start(pipeline, KINDS["udf with Arrow"](counts, 3, flag))
    pipeline.send(range(4))
    message = failure_of(query)
    assert "cannot score 3" in message
    assert f"the record at topic '{pipeline.input}', partition " in message


@pytest.mark.parametrize("kind", ["transformWithState", "transformWithStateInPandas"])
def test_a_result_that_cannot_be_converted_names_its_record(pipeline: Pipeline, kind: str) -> None:
    def score(value: int) -> Any:
        return "many" if value == 7 else value

    rows = with_state(pipeline.rows(), score) if kind == "transformWithState" else with_frames(pipeline.rows(), score)
    query = start(pipeline, rows)
    pipeline.send(range(20), keys=1)
    message = failure_of(query)
    assert "many" in message
    assert re.search(rf"topic '{pipeline.input}', partition [01], offset 7\b", message), message


def test_what_fails_before_the_first_record_says_so(pipeline: Pipeline) -> None:
    class Broken:
        def __reduce__(self) -> Any:
            return (eval, ("1 / 0",))

    broken = Broken()
    query = start(pipeline, pipeline.rows().select(F.udf(lambda value: (broken, value)[1], "long")("id").alias("id")))
    message = failure_of(query)
    assert "ZeroDivisionError" in message
    assert "while it had no record" in message


def test_a_worker_that_exits_is_reported_and_nothing_is_lost(pipeline: Pipeline, flag: Path) -> None:
    def call(value: int) -> int:
        if value == 5 and not flag.exists():
            os._exit(3)
        return value

    rows = pipeline.rows().select(F.udf(call, "long")("id").alias("id"))
    query = start(pipeline, rows)
    with pipeline.collect() as out:
        pipeline.send(range(5), keys=1)
        until(lambda: len(out.rows()) == 5, "the rows before")
        pipeline.send(range(5, 10), keys=1)
        message = failure_of(query)
        assert "[TAILRACE_PYTHON_WORKER_LOST]" in message
        assert re.search(r"offsets? 5\b", message), message
        flag.touch()
        again = start(pipeline, rows)
        until(lambda: {row["id"] for row in out.rows()} == set(range(10)), "every row, after the restart")
        again.stop()


def test_a_worker_that_is_killed_is_reported_though_no_row_follows(pipeline: Pipeline, tmp_path: Path) -> None:
    pid_file = tmp_path / "pid"

    def call(value: int) -> int:
        pid_file.write_text(str(os.getpid()))
        return value

    rows = pipeline.rows().select(F.udf(call, "long")("id").alias("id"))
    query = start(pipeline, rows)
    with pipeline.collect() as out:
        pipeline.send(range(3), keys=1)
        until(lambda: len(out.rows()) == 3, "three rows")
        os.kill(int(pid_file.read_text()), signal.SIGKILL)
        message = failure_of(query)
        assert "[TAILRACE_PYTHON_WORKER_LOST]" in message
        assert "while it had no record" in message
        again = start(pipeline, rows)
        pipeline.send(range(3, 6), keys=1)
        until(lambda: {row["id"] for row in out.rows()} == set(range(6)), "every row, after the restart")
        again.stop()


@pytest.fixture
def short_timeout(spark: SparkSession) -> Iterator[None]:
    # Long enough for a worker to start on a busy machine: that time counts.
    spark.conf.set(TIMEOUT, "5s")
    yield
    spark.conf.unset(TIMEOUT)


@pytest.mark.parametrize("kind", ["udf", "mapInPandas", "foreach", "transformWithState"])
def test_a_function_that_hangs_is_reported_and_nothing_is_lost(
    pipeline: Pipeline, kind: str, flag: Path, tmp_path: Path, short_timeout: None
) -> None:
    done = tmp_path / "done"

    def call(value: int) -> int:
        while value == 5 and not flag.exists():
            time.sleep(3600)  # noqa: TID251 (a user's slow function)
        with done.open("a") as lines:
            lines.write(f"{value}\n")
        return value

    def begin() -> StreamingQuery:
        rows = pipeline.rows().select("id")
        if kind == "udf":
            return start(pipeline, rows.select(F.udf(call, "long")("id").alias("id")))
        if kind == "mapInPandas":
            return start(pipeline, rows.mapInPandas(each_id(call), "id LONG"))
        if kind == "transformWithState":
            return start(pipeline, with_state(pipeline.rows(), call))
        process: Any = lambda row: call(row.id)  # noqa: E731
        writer: Any = rows.writeStream.foreach(process).outputMode("update")
        return writer.option("checkpointLocation", str(pipeline.checkpoint)).trigger(realTime=LONG_EPOCH).start()  # type: ignore[no-any-return]

    query = begin()
    pipeline.send(range(5), keys=1)
    until(lambda: done.exists() and len(done.read_text().split()) == 5, "the calls before")
    pipeline.send(range(5, 6), keys=1)
    message = failure_of(query)
    assert "[TAILRACE_PYTHON_TIMEOUT]" in message
    assert "has not answered for 5.0 s" in message
    assert "offset 5" in message
    flag.touch()
    # A worker that starts on a busy machine may need longer than that for its first row.
    pipeline.spark.conf.unset(TIMEOUT)
    again = begin()
    until(lambda: set(done.read_text().split()) == set("012345"), "every call, after the restart")
    again.stop()


def test_an_iterator_that_gives_nothing_back_is_reported(pipeline: Pipeline, short_timeout: None) -> None:
    def hoard(batches: Iterator[pd.Series]) -> Iterator[pd.Series]:
        yield from list(batches)

    pipeline.send(range(70_000), keys=1)
    query = start(pipeline, pipeline.rows().select(F.pandas_udf(hoard, "long")("id").alias("id")))
    message = failure_of(query)
    assert "[TAILRACE_PYTHON_TIMEOUT]" in message
    assert "yield the results of each batch" in message


def test_a_map_that_has_returned_is_not_a_hanging_one(pipeline: Pipeline, short_timeout: None) -> None:
    """Its last batch is done with, though it never asked for the next."""

    def first_frame(frames: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
        yield next(frames)

    query = start(pipeline, pipeline.rows().select("id").mapInPandas(first_frame, "id LONG"))
    with pipeline.collect() as out:
        pipeline.send(range(1))
        until(lambda: len(out.rows()) == 1, "the row")
        assert not query.awaitTermination(4), "twice the timeout without another row"
    query.stop()


def test_a_slow_function_is_not_a_hanging_one(pipeline: Pipeline, short_timeout: None) -> None:
    """The timeout is for one batch, and batches are cut so short that rows alone cannot reach it."""

    def slow(value: int) -> int:
        time.sleep(0.02)  # noqa: TID251 (a user's slow function)
        return value

    pipeline.send(range(600), keys=1)
    query = start(pipeline, pipeline.rows().select(F.udf(slow, "long")("id").alias("id")))
    with pipeline.collect() as out:
        until(lambda: len(out.rows()) == 600 or query.exception(), "all rows")
        assert query.exception() is None
    query.stop()


@pytest.mark.parametrize("value", ["soon", "0s", "-1s"])
def test_a_timeout_that_is_none_is_refused(pipeline: Pipeline, value: str) -> None:
    pipeline.spark.conf.set(TIMEOUT, value)
    try:
        with pytest.raises(TailraceError) as refused:
            start(pipeline, pipeline.rows().select(F.udf(lambda v: v, "long")("id").alias("id")))
    finally:
        pipeline.spark.conf.unset(TIMEOUT)
    assert refused.value.code == "TAILRACE_BAD_SETTING"
    assert TIMEOUT in refused.value.problem


def test_a_failing_source_is_reported_as_such(pipeline: Pipeline) -> None:
    """A row that the JVM cannot convert fails in the feeder's thread, before Python sees it."""
    spark = pipeline.spark
    rows = pipeline.rows().select(F.expr("if(id = 3, raise_error('not a number'), id)").cast("long").alias("id"))
    query = start(pipeline, rows.select(F.udf(lambda value: value, "long")("id").alias("id")))
    produce(pipeline.servers, pipeline.input, ({"id": number} for number in range(4)))
    message = failure_of(query)
    assert "not a number" in message
    assert spark.range(3).count() == 3, "the session does not work any more"
