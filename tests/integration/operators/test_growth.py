"""Nothing grows with the rows of an epoch: no listener of a task, no scan of a store, no exchange with a worker."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from pyspark.sql import DataFrame, Row, SparkSession, functions
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.stateful_processor import StatefulProcessor

from tailrace import EmbeddedKafka
from tests.helpers.heap import listeners, live_instances
from tests.helpers.pipeline import Pipeline
from tests.helpers.topics import Collector
from tests.helpers.two_streams import LIKE_REAL_TIME, TwoStreams, running
from tests.helpers.waiting import until

# PySpark's types know neither vectorized functions nor arguments by name.
F: Any = functions

LONG_EPOCH = "10 minutes"
FEW, MANY = 200, 2000
# A garbage collection may find a task between two states.
SLACK = 20
EXCHANGE = "org.apache.spark.sql.tailrace.operators.python.WorkerExchange"
WATCHED = ("org.rocksdb.RocksIterator", "org.rocksdb.ReadOptions", EXCHANGE)


@pytest.fixture(scope="module")
def spark(new_session: Callable[..., SparkSession]) -> SparkSession:
    return new_session("local[8]", LIKE_REAL_TIME)


def is_bad(number: int) -> bool:
    return number % 10 == 7


def fail_if_bad(number: int) -> int:
    if is_bad(number):
        raise ValueError(f"cannot score {number}")
    return number


def with_function(make: Callable[[], Any]) -> Callable[[Pipeline], DataFrame]:
    """Made when it is used: some functions need a session."""
    return lambda pipeline: pipeline.rows().select(make()("id").alias("id"))


def series(values: pd.Series) -> pd.Series:
    return values.map(fail_if_bad)


def over_batches(batches: Iterator[pd.Series]) -> Iterator[pd.Series]:
    for values in batches:
        yield values.map(fail_if_bad)


def fails_in_arguments(pipeline: Pipeline) -> DataFrame:
    # A cast below Python and above it would be projections of their own; this one is an argument.
    text = F.udf(lambda number: "seven" if is_bad(number) else str(number), "string")("id")
    return pipeline.rows().select(F.udf(lambda number: number, "long")(text.cast("long")).alias("id"))


def sessions(pipeline: Pipeline) -> DataFrame:
    rows = pipeline.rows().withColumn("at", F.timestamp_millis(F.lit(1_000_000) + F.col("id")))
    found = rows.withWatermark("at", "10 seconds").groupBy(F.session_window("at", "5 seconds"), "key")
    return found.agg(F.max("id").alias("id")).select("id", "key")


class Reminding(StatefulProcessor):
    """Answers each row from a timer."""

    def init(self, handle: Any) -> None:
        self.handle = handle

    def handleInputRows(self, key: Any, rows: Any, timerValues: Any) -> Iterator[Row]:
        for _ in rows:
            due = timerValues.getCurrentProcessingTimeInMs() + 1
            while due in self.handle.listTimers():
                due += 1
            self.handle.registerTimer(due)
        yield from ()

    def handleExpiredTimer(self, key: Any, timerValues: Any, expiredTimerInfo: Any) -> Iterator[Row]:
        yield Row(id=1)


class Mapping(StatefulProcessor):
    """Reads a whole map for each row; with a time to live, so the map is not cached."""

    def init(self, handle: Any) -> None:
        self.seen = handle.getMapState("seen", "k LONG", "v LONG", ttlDurationMs=3_600_000)

    def handleInputRows(self, key: Any, rows: Any, timerValues: Any) -> Iterator[Row]:
        for row in rows:
            self.seen.updateValue((row.id % 10,), (row.id,))
            yield Row(id=sum(1 for _ in self.seen.iterator()))


def timers(pipeline: Pipeline) -> DataFrame:
    return pipeline.rows().groupBy("key").transformWithState(Reminding(), "id LONG", "Update", "ProcessingTime")


def maps(pipeline: Pipeline) -> DataFrame:
    return pipeline.rows().groupBy("key").transformWithState(Mapping(), "id LONG", "Update", "ProcessingTime")


BAD_RECORDS: dict[str, Callable[[Pipeline], DataFrame]] = {
    "udf with Arrow": with_function(lambda: F.udf(fail_if_bad, "long", useArrow=True)),
    "udf with pickle": with_function(lambda: F.udf(fail_if_bad, "long", useArrow=False)),
    "pandas_udf": with_function(lambda: F.pandas_udf(series, "long")),
    "pandas_udf over an iterator": with_function(lambda: F.pandas_udf(over_batches, "long")),
    "arguments": fails_in_arguments,
}
ALL_GOOD: dict[str, Callable[[Pipeline], DataFrame]] = {"sessions": sessions, "timers": timers, "maps": maps}


def start(pipeline: Pipeline, rows: DataFrame) -> StreamingQuery:
    writer: Any = pipeline.writer(rows.select(F.to_json(F.struct("*")).alias("value")), "kafka")
    writer = writer.option("topic", pipeline.output).option("onError", "drop").option("errorsPerMinute", "1000000")
    return writer.trigger(realTime=LONG_EPOCH).start()  # type: ignore[no-any-return]


def refuse_growth(spark: SparkSession, process: Callable[[range], None]) -> None:
    """After ten times as many rows, as much is alive as before."""
    process(range(FEW))
    before = live_instances(spark)
    process(range(FEW, FEW + MANY))
    after = live_instances(spark)
    grown = {name: after[name] - before[name] for name in WATCHED if after[name] - before[name] > SLACK}
    assert grown == {}
    assert listeners(after) - listeners(before) <= SLACK


# These two end as the other functions do.
LIKE_OTHERS = ("udf with pickle", "pandas_udf")


@pytest.mark.parametrize(
    "kind",
    [
        *ALL_GOOD,
        *(pytest.param(kind, marks=pytest.mark.chaos if kind in LIKE_OTHERS else ()) for kind in BAD_RECORDS),
    ],
)
def test_nothing_grows(pipeline: Pipeline, kind: str) -> None:
    query = start(pipeline, {**ALL_GOOD, **BAD_RECORDS}[kind](pipeline))
    pipeline.wait_until_reading(query)
    with pipeline.collect() as out:

        def process(ids: range) -> None:
            pipeline.send(ids)
            good = ids.stop - (0 if kind in ALL_GOOD else sum(map(is_bad, range(ids.stop))))
            until(lambda: query.exception() or len(out.rows()) >= good, f"{good} rows")
            assert query.exception() is None

        refuse_growth(pipeline.spark, process)
    assert query.lastProgress is None, "an epoch ended: this test would prove nothing"
    query.stop()


def test_nothing_grows_in_a_join(
    spark: SparkSession, kafka: EmbeddedKafka, checkpoint: Path, waits_for_silent_partitions: Callable[[str], None]
) -> None:
    """Each step of the watermark looks through the state for old rows."""
    waits_for_silent_partitions("1s")
    streams = TwoStreams(spark, kafka)
    output = streams.new_output()
    writer = streams.writer(streams.joined("left_outer"), output, checkpoint)
    with Collector(streams.servers, output) as out, running(writer) as query:

        def process(ids: range) -> None:
            rows = [{"id": i, "key": f"k{i}", "at": 1_000_000 + 100 * i, "value": "1"} for i in ids]
            for begin in range(0, len(rows), 20):
                streams.send(rows[begin : begin + 20], rows[begin : begin + 20])
            until(lambda: query.exception() or len(out.rows()) >= ids.stop, f"{ids.stop} matches")
            assert query.exception() is None

        refuse_growth(spark, process)
