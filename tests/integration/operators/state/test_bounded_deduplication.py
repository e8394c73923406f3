"""`dropDuplicatesWithinWatermark`: row by row, and the same rows as in micro-batch."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

import tailrace
from tailrace import EmbeddedKafka
from tailrace._process.machine_load import stretched
from tests.helpers.topics import Collector
from tests.helpers.two_streams import LIKE_REAL_TIME, Row, TwoStreams, has_read, running
from tests.helpers.waiting import until

KEYS = 200


@pytest.fixture(scope="module")
def spark(new_session: Callable[..., SparkSession]) -> SparkSession:
    return new_session("local[6]", LIKE_REAL_TIME)


def once_in_a_while(streams: TwoStreams) -> DataFrame:
    return streams.left().dropDuplicatesWithinWatermark(["l_key"])


def random_phases(seed: int) -> list[list[Row]]:
    """What comes in each epoch: keys come again soon, late, and after they have been forgotten."""
    chance = random.Random(seed)
    phases: list[list[Row]] = [[], [], []]
    for number in range(5 * KEYS):
        phase = chance.randrange(3)
        at = 100_000 + phase * 12_000 + chance.randrange(-12_000, 12_000)
        phases[phase].append({"id": number, "key": f"k{chance.randrange(KEYS)}", "at": at, "value": ""})
    return phases


def test_the_same_rows_as_in_micro_batch(spark: SparkSession, kafka: EmbeddedKafka, tmp_path: Path) -> None:
    """With a restart after each epoch."""
    streams = TwoStreams(spark, kafka)
    real_time, micro_batch = streams.new_output(), streams.new_output()
    with Collector(streams.servers, real_time) as found, Collector(streams.servers, micro_batch) as expected:
        for rows in random_phases(seed=3):
            streams.send(rows)
            writer = streams.writer(once_in_a_while(streams), micro_batch, tmp_path / "micro-batch", mode="update")
            writer.trigger(availableNow=True).start().awaitTermination()
            writer = streams.writer(once_in_a_while(streams), real_time, tmp_path / "real-time", mode="update")
            with running(writer) as query:
                has_read(query, len(rows))
                # They do not wait for the epoch's end.
                until(lambda: len(found.rows()) >= len(expected.rows()), "the rows")
                tailrace.drain(query, timeout_s=stretched(60))
        assert len(expected.rows()) > KEYS, "no key came a second time"
        assert [row["l_id"] for row in in_order(found)] == [row["l_id"] for row in in_order(expected)]


def in_order(out: Collector) -> list[Row]:
    return sorted(out.rows(), key=lambda row: row["l_id"])


def test_a_stop_repeats_and_loses_nothing_else(spark: SparkSession, kafka: EmbeddedKafka, checkpoint: Path) -> None:
    streams = TwoStreams(spark, kafka)
    output = streams.new_output()
    writer = streams.writer(once_in_a_while(streams), output, checkpoint, mode="update")
    row = {"at": 1000, "value": ""}
    with Collector(streams.servers, output) as out:
        streams.send([{"id": 1, "key": "a", **row}, {"id": 2, "key": "a", **row}])
        with running(writer):
            until(lambda: len(out.rows()) == 1, "the first")
        streams.send([{"id": 3, "key": "a", **row}, {"id": 4, "key": "b", **row}])
        with running(writer):
            until(lambda: len(out.rows()) == 3, "the open epoch again, and the new key")
        assert sorted(row["l_id"] for row in out.rows()) == [1, 1, 4]
