"""`tailrace-kafka`, when a replay brings the rows of a key in another order, or makes others: the last record is right.

Each test decides by files which row comes first, so that the order is a bad one for sure.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.functions import udf
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.stateful_processor import StatefulProcessor

import tailrace
from tests.helpers.pipeline import Pipeline
from tests.helpers.topics import all_messages, produce
from tests.helpers.two_streams import LIKE_REAL_TIME
from tests.helpers.waiting import until

EPOCH = "10 minutes"
SOON_S = 300


@pytest.fixture(scope="module")
def spark(new_session: Callable[..., SparkSession]) -> SparkSession:
    # State stands behind two shuffles in some of these.
    return new_session("local[10]", LIKE_REAL_TIME)


@dataclass(frozen=True)
class Signs:
    """Files that say what may happen."""

    folder: Path

    def put(self, name: str) -> None:
        (self.folder / name).touch()

    def take(self, name: str) -> None:
        (self.folder / name).unlink(missing_ok=True)

    def has(self, name: str) -> bool:
        return (self.folder / name).exists()


@pytest.fixture
def signs(tmp_path: Path) -> Signs:
    folder = tmp_path / "signs"
    folder.mkdir()
    return Signs(folder)


def held_back(rows: DataFrame, signs: Signs) -> DataFrame:
    """A row waits while there is a sign with its number."""

    def passed_on(number: int) -> int:
        import time

        while signs.has(f"hold-{number}"):
            time.sleep(0.01)  # noqa: TID251 (in a worker)
        return number

    return rows.withColumn("id", udf(passed_on, "long")("id"))


class Alerts(StatefulProcessor):
    """Row 0 sets a timer. When it fires, the key is silent; it is back with the next row.

    If rows tell, the next row also tells of the silence, unless the timer has done so. Row 100 is in time.
    """

    def __init__(self, signs: Signs, rows_tell: bool) -> None:
        self.signs = signs
        self.rows_tell = rows_tell

    def init(self, handle: Any) -> None:
        self.handle = handle
        self.silent = handle.getValueState("silent", "is BOOLEAN")

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:
        for row in rows:
            if row.id == 0:
                self.handle.registerTimer(timerValues.getCurrentProcessingTimeInMs() + 1)
            elif row.id == 100:
                self.delete_timers()
                yield Row(key=key[0], said="in time")
            elif self.silent.exists() or self.rows_tell:
                if not self.silent.exists():
                    yield Row(key=key[0], said="silent")
                self.delete_timers()
                self.silent.clear()
                yield Row(key=key[0], said=f"back with {row.id}")
            self.signs.put(f"saw-{row.id}")

    def handleExpiredTimer(self, key: Any, timerValues: Any, expiredTimerInfo: Any) -> Iterator[Row]:
        if self.signs.has("no-silence"):
            self.handle.registerTimer(timerValues.getCurrentProcessingTimeInMs() + 100)
        else:
            self.silent.update((True,))
            self.signs.put("fired")
            yield Row(key=key[0], said="silent")

    def delete_timers(self) -> None:
        for at_ms in list(self.handle.listTimers()):
            self.handle.deleteTimer(at_ms)


def alerts(pipeline: Pipeline, signs: Signs, *, rows_tell: bool = True) -> DataFrame:
    rows = held_back(pipeline.rows(), signs).groupBy("key")
    return rows.transformWithState(Alerts(signs, rows_tell), "key STRING, said STRING", "Update", "ProcessingTime")


def start(pipeline: Pipeline, rows: DataFrame, *, epoch: str = EPOCH, mode: str = "update") -> StreamingQuery:
    out = rows.select("key", F.to_json(F.struct("*")).alias("value"))
    writer: Any = pipeline.writer(out, "tailrace-kafka").option("topic", pipeline.output).outputMode(mode)
    return writer.trigger(realTime=epoch).start()  # type: ignore[no-any-return]


def said(pipeline: Pipeline, column: str) -> list[Any]:
    """What the output says of the only key, in its order."""
    found = [message for message in all_messages(pipeline.servers, pipeline.output) if message.key() == b"k0"]
    assert len({message.partition() for message in found}) <= 1
    return [json.loads(message.value() or b"")[column] for message in found]


def wait(query: StreamingQuery, condition: Callable[[], Any], what: str) -> None:
    until(lambda: query.exception() or condition(), what)
    if (failure := query.exception()) is not None:
        raise failure


def says(query: StreamingQuery, pipeline: Pipeline, column: str, wanted: list[Any]) -> None:
    wait(query, lambda: said(pipeline, column) == wanted, f"{wanted}")


def commit_timer(pipeline: Pipeline, signs: Signs, *, rows_tell: bool = True) -> None:
    signs.put("no-silence")
    query = start(pipeline, alerts(pipeline, signs, rows_tell=rows_tell), epoch="5 seconds")
    pipeline.send(range(1), keys=1)
    wait(query, lambda: signs.has("saw-0"), "the timer is set")
    tailrace.drain(query, timeout_s=SOON_S)
    signs.take("no-silence")


def silent_and_back(pipeline: Pipeline, signs: Signs, *, rows_tell: bool = True) -> None:
    """A timer that was committed fires in the open epoch, then the next row comes, and the query is stopped."""
    commit_timer(pipeline, signs, rows_tell=rows_tell)
    query = start(pipeline, alerts(pipeline, signs, rows_tell=rows_tell))
    says(query, pipeline, "said", ["silent"])
    pipeline.send(range(1, 2), keys=1)
    says(query, pipeline, "said", ["silent", "back with 1"])
    query.stop()
    signs.take("fired")
    signs.take("saw-1")


def read_and_drain(pipeline: Pipeline, signs: Signs, row: int) -> None:
    query = start(pipeline, alerts(pipeline, signs))
    wait(query, lambda: signs.has(f"saw-{row}"), "the row is processed")
    tailrace.drain(query, timeout_s=SOON_S)


def test_a_timer_that_is_due_waits_for_records_that_are_there(pipeline: Pipeline, signs: Signs) -> None:
    """It was due while the query was down, and so was the row that deletes it."""
    commit_timer(pipeline, signs)
    pipeline.send(range(100, 101), keys=1)
    read_and_drain(pipeline, signs, 100)
    assert said(pipeline, "said") == ["in time"]


def test_a_row_that_tells_what_a_timer_told_is_written_once(pipeline: Pipeline, signs: Signs) -> None:
    silent_and_back(pipeline, signs)
    read_and_drain(pipeline, signs, 1)
    assert not signs.has("fired"), "the row comes before the timer"
    assert said(pipeline, "said") == ["silent", "back with 1"]


def test_a_timer_that_fires_later_than_before_is_seen_at_once(pipeline: Pipeline, signs: Signs) -> None:
    """The row finds the key awake and makes nothing of it. So the output's last record is wrong until the timer."""
    silent_and_back(pipeline, signs, rows_tell=False)
    signs.put("no-silence")
    query = start(pipeline, alerts(pipeline, signs, rows_tell=False))
    wait(query, lambda: signs.has("saw-1"), "the row comes first")
    signs.take("no-silence")
    says(query, pipeline, "said", ["silent", "back with 1", "silent"])
    tailrace.drain(query, timeout_s=SOON_S)
    assert said(pipeline, "said") == ["silent", "back with 1", "silent"]


def test_timers_of_later_epochs_are_new(pipeline: Pipeline, signs: Signs) -> None:
    """They look like one that was replayed, and must not be taken for it."""
    silent_and_back(pipeline, signs)
    read_and_drain(pipeline, signs, 1)
    query = start(pipeline, alerts(pipeline, signs))
    pipeline.send(range(1), keys=1)
    says(query, pipeline, "said", ["silent", "back with 1", "silent"])
    query.stop()


def largest(pipeline: Pipeline, signs: Signs) -> DataFrame:
    distinct = held_back(pipeline.rows(), signs).dropDuplicates(["id"])
    return distinct.groupBy("key").agg(F.max("id").alias("largest"))


def test_a_new_row_that_overtakes_a_known_one_does_not_stay_last(pipeline: Pipeline, signs: Signs) -> None:
    """Behind two shuffles the order of the first run cannot be restored."""
    produce(pipeline.servers, pipeline.input, [{"id": 100, "key": "k0"}], key="id")
    query = start(pipeline, largest(pipeline, signs))
    says(query, pipeline, "largest", [100])
    query.stop()
    (first,) = all_messages(pipeline.servers, pipeline.input)
    signs.put("hold-100")
    # Until one is in the other partition.
    number = 0
    while {one.partition() for one in all_messages(pipeline.servers, pipeline.input)} == {first.partition()}:
        number += 1
        produce(pipeline.servers, pipeline.input, [{"id": number, "key": "k0"}], key="id")
    query = start(pipeline, largest(pipeline, signs))
    says(query, pipeline, "largest", [100, number])
    signs.take("hold-100")
    wait(query, lambda: said(pipeline, "largest")[-1] == 100, "the largest is last")
    query.stop()


def versioned_counts(pipeline: Pipeline, signs: Signs) -> DataFrame:
    """What is made of a count depends on a table that changes."""

    def version(count: int) -> int:
        signs.put(f"made-{count}")
        return 2 if signs.has(f"second-version-of-{count}") else 1

    counts = held_back(pipeline.rows(), signs).groupBy("key").agg(F.count("id").alias("n"))
    return counts.select("key", F.concat("n", F.lit(" v"), udf(version, "int")("n")).alias("count"))


def test_two_failures_with_a_lookup_that_changes_in_between(pipeline: Pipeline, signs: Signs) -> None:
    producer = Producer({"bootstrap.servers": pipeline.servers, "linger.ms": 0})
    for number in range(3):
        # The last one in a partition of its own: a row that is held back also holds back the others of its batch.
        row = json.dumps({"id": number, "key": "k0"}).encode()
        producer.produce(pipeline.input, row, partition=1 if number == 2 else 0)
    assert producer.flush(20) == 0
    signs.put("hold-2")
    query = start(pipeline, versioned_counts(pipeline, signs))
    says(query, pipeline, "count", ["1 v1", "2 v1"])
    signs.take("hold-2")
    says(query, pipeline, "count", ["1 v1", "2 v1", "3 v1"])
    query.stop()
    signs.put("hold-2")
    signs.put("second-version-of-2")
    query = start(pipeline, versioned_counts(pipeline, signs))
    says(query, pipeline, "count", ["1 v1", "2 v1", "3 v1", "2 v2"])
    query.stop()
    signs.take("hold-2")
    signs.take("second-version-of-2")
    signs.take("made-3")
    query = start(pipeline, versioned_counts(pipeline, signs))
    wait(query, lambda: signs.has("made-3"), "all rows are made again")
    tailrace.drain(query, timeout_s=SOON_S)
    assert said(pipeline, "count") == ["1 v1", "2 v1", "3 v1", "2 v2", "3 v1"]


def sessions(pipeline: Pipeline) -> DataFrame:
    rows = pipeline.raw().select(F.from_json("value", "id LONG, key STRING, at LONG").alias("row")).select("row.*")
    timed = rows.withColumn("time", F.timestamp_millis("at")).withWatermark("time", "1 second")
    found = timed.groupBy(F.session_window("time", "2 seconds"), "key").agg(F.count("*").alias("n"))
    return found.select("key", F.unix_millis("session_window.start").alias("start"), "n")


def test_a_session_that_closes_again_is_written_once(
    pipeline: Pipeline, waits_for_silent_partitions: Callable[[str], None]
) -> None:
    waits_for_silent_partitions("1s")

    def send(*times: int) -> None:
        produce(pipeline.servers, pipeline.input, [{"id": at, "key": "k0", "at": at} for at in times])

    def wait_for(query: StreamingQuery, starts: set[int], after: int) -> None:
        """The watermark moves with the rows, so they keep coming: all in one session, which stays open."""
        times = count(after, 10)

        def are_closed() -> bool:
            send(next(times))
            return set(said(pipeline, "start")) == starts

        wait(query, are_closed, f"{starts} are closed")

    send(1_000, 2_000, 50_000)
    query = start(pipeline, sessions(pipeline), mode="append")
    wait_for(query, {1_000, 50_000}, after=100_000)
    query.stop()
    query = start(pipeline, sessions(pipeline), mode="append")
    wait_for(query, {1_000, 50_000, 100_000}, after=200_000)
    tailrace.drain(query, timeout_s=SOON_S)
    assert said(pipeline, "start") == [1_000, 50_000, 100_000]
