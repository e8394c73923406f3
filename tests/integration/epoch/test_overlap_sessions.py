"""Epochs of session windows overlap: sessions grow, close and are late as in epochs that do not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

import tailrace
from tailrace import EmbeddedKafka
from tests.helpers.overlapping import EPOCH, SHORT_EPOCHS, SOON_S, is_parked, nothing_is_left, overlapped
from tests.helpers.overlapping_times import Epoch, NumberedLoad, Row, assert_meets, epochs_of
from tests.helpers.topics import Collector, new_topic
from tests.helpers.two_streams import TwoStreams, running
from tests.helpers.waiting import until

# A row's time is its number in seconds. Each session is a run of rows with the same key, and the key comes again long
# after the session has ended.
START_S = 1_000_000
LENGTH = 20
KEYS = 5
GAP_S = 10
# Odd enough that no session ends exactly at the watermark.
DELAY_S = 15.5
END = 10_000_000


@pytest.fixture(scope="module")
def spark(new_session: Callable[..., SparkSession]) -> SparkSession:
    # A source and two tasks of the sessions, in two epochs at once, and some more.
    return new_session("local[10]", SHORT_EPOCHS)


@pytest.fixture
def streams(spark: SparkSession, kafka: EmbeddedKafka) -> TwoStreams:
    return TwoStreams(spark, kafka, delay=f"{DELAY_S} seconds")


@pytest.fixture
def output(streams: TwoStreams) -> str:
    """Of one partition, which keeps the order in which rows are written."""
    return new_topic(streams.servers, "sessions", partitions=1)


def row(number: int) -> Row:
    return {"id": number, "key": f"k{number // LENGTH % KEYS}", "at": (START_S + number) * 1000}


def loaded(streams: TwoStreams) -> NumberedLoad:
    def rows_of(number: int) -> Iterable[tuple[str, Row]]:
        yield streams.left_topic, row(number)

    return NumberedLoad(streams.servers, rows_of)


def sessions(streams: TwoStreams) -> DataFrame:
    grouped = streams.left().groupBy(F.session_window("l_at", f"{GAP_S} seconds").alias("session"), "l_key")
    counted = grouped.agg(F.count("*").alias("rows"), F.min("l_id").alias("first"))
    return counted.select("first", "rows", F.unix_seconds("session.end").alias("end"))


def writer_of(streams: TwoStreams, mode: str, output: str, checkpoint: Path) -> DataStreamWriter:
    return streams.writer(sessions(streams), output, checkpoint, mode=mode)


def results(out: Collector) -> list[tuple[int, int]]:
    """The first number of a session and how many rows it has, without those that only let time pass."""
    return [(one["first"], one["rows"]) for one in out.rows() if one["first"] < END]


def whole(sent: int) -> Counter[tuple[int, int]]:
    """Each session of so many rows, when it has closed."""
    return Counter((first, min(LENGTH, sent - first)) for first in range(0, sent, LENGTH))


def growing(sent: int) -> Counter[tuple[int, int]]:
    """Each session after each of its rows."""
    return Counter((number // LENGTH * LENGTH, number % LENGTH + 1) for number in range(sent))


def expected(mode: str, sent: int) -> Counter[tuple[int, int]]:
    return whole(sent) if mode == "append" else growing(sent)


def until_time_has_passed(query: StreamingQuery, boundaries: int) -> None:
    until(lambda: overlapped(query) >= boundaries, f"{boundaries} boundaries overlapped", within_s=SOON_S)
    until(lambda: watermark_of(query) > START_S + 2 * LENGTH, "the watermark has moved", within_s=SOON_S)


def watermark_of(query: StreamingQuery) -> float:
    return max((epoch.watermark_s for epoch in epochs_of(query)), default=0.0)


def let_time_end(streams: TwoStreams) -> None:
    streams.send([{"id": END, "key": "end", "at": (START_S + END) * 1000}])


def until_all_are_out(out: Collector, wanted: Counter[Any]) -> None:
    until(lambda: len(set(results(out))) >= len(wanted), "all results are out", within_s=SOON_S)


def run_across_boundaries(
    streams: TwoStreams, mode: str, output: str, checkpoint: Path, *, epoch: str = EPOCH
) -> tuple[list[tuple[int, int]], list[Epoch], int]:
    """The results over boundaries that overlapped, the epochs, and how many rows were sent."""
    with (
        Collector(streams.servers, output, partitions=1) as out,
        loaded(streams) as load,
        running(writer_of(streams, mode, output, checkpoint), epoch=epoch) as query,
    ):
        until_time_has_passed(query, 5)
        assert "HandOverState" in query._jsq.explainInternal(False)
        load.stop()
        streams.send([{**row(0), "key": "late"}])
        until(lambda: sum(epoch.rows_dropped for epoch in epochs_of(query)) == 1, "the late row", within_s=SOON_S)
        let_time_end(streams)
        until_all_are_out(out, expected(mode, load.sent))
        tailrace.drain(query, timeout_s=SOON_S)
        assert_meets(query)
        return results(out), epochs_of(query), load.sent


def assert_sessions_close_with_the_watermark(epochs: list[Epoch], streams: TwoStreams, mode: str, sent: int) -> None:
    """Sessions are kept until the epoch's watermark has passed their end. Offsets are numbers here."""
    numbered = [epoch for epoch in epochs if epoch.read[streams.left_topic] <= sent]
    assert len(numbered) > 4
    rows_out = 0
    for epoch in numbered:
        read = epoch.read[streams.left_topic]
        # The row before the next session ends it.
        begun = range(0, read, LENGTH)
        closed = [first for first in begun if first + LENGTH - 1 + GAP_S < epoch.watermark_s - START_S]
        assert epoch.rows_kept == len(begun) - len(closed), epoch
        rows_out += epoch.rows_out
        assert rows_out == (len(closed) if mode == "append" else read), epoch
    assert closed, "no session was closed"


@pytest.mark.parametrize("mode", ["append", "update"])
def test_the_same_sessions_as_in_micro_batch(streams: TwoStreams, output: str, tmp_path: Path, mode: str) -> None:
    found, epochs, sent = run_across_boundaries(streams, mode, output, tmp_path / "real-time")
    assert Counter(found) == expected(mode, sent)
    assert_sessions_close_with_the_watermark(epochs, streams, mode, sent)
    if mode == "update":
        assert_in_order(found)
    in_batches = streams.new_output()
    # Spark's own sessions have no updates.
    writer = writer_of(streams, "append", in_batches, tmp_path / "micro-batch")
    with Collector(streams.servers, in_batches) as out:
        query = writer.start()
        # There the late row is in time, and a session of its own.
        until(lambda: len(results(out)) >= len(whole(sent)) + 1, "all sessions", within_s=SOON_S)
        query.stop()
        assert Counter(results(out)) - Counter([(0, 1)]) == whole(sent)
    # In both modes the last result of a session is the whole session.
    assert dict(found) == dict(whole(sent).keys())


def assert_in_order(found: list[tuple[int, int]]) -> None:
    """Each session has grown row by row."""
    for first in {first for first, _ in found}:
        counts = [rows for one, rows in found if one == first]
        assert all(after == before + 1 for before, after in pairwise(counts)), first


def test_sessions_that_close_before_the_boundary(
    streams: TwoStreams, output: str, checkpoint: Path, waits_for_silent_partitions: Callable[[str], None]
) -> None:
    """In each epoch the watermark moves as it does in one that was not started ahead."""
    waits_for_silent_partitions("1h")
    found, epochs, sent = run_across_boundaries(streams, "append", output, checkpoint, epoch="3 seconds")
    assert Counter(found) == whole(sent)
    with pytest.raises(AssertionError):
        assert_sessions_close_with_the_watermark(epochs, streams, "append", sent)


def test_a_restart_loses_no_session(streams: TwoStreams, output: str, checkpoint: Path) -> None:
    """Without a drain: the open epoch comes again."""
    writer = writer_of(streams, "append", output, checkpoint)
    with Collector(streams.servers, output, partitions=1) as out, loaded(streams) as load:
        for _ in range(2):
            with running(writer, epoch=EPOCH) as query:
                until_time_has_passed(query, 3)
        load.stop()
        let_time_end(streams)
        with running(writer, epoch=EPOCH):
            until_all_are_out(out, whole(load.sent))
        assert set(results(out)) == set(whole(load.sent))


def test_a_drain_while_the_next_epoch_waits_for_its_state(streams: TwoStreams, output: str, checkpoint: Path) -> None:
    writer = writer_of(streams, "update", output, checkpoint)
    with Collector(streams.servers, output, partitions=1) as out, loaded(streams) as load:
        for _ in range(2):
            with running(writer, epoch="6 seconds") as query:
                until(lambda: is_parked(query), "the next epoch waits")
                drained = tailrace.drain(query, timeout_s=SOON_S)
                assert (checkpoint / "commits" / str(drained.epoch)).exists()
            until(lambda: nothing_is_left(streams.spark), "nothing is left")
        load.stop()
        with running(writer, epoch=EPOCH) as query:
            until_all_are_out(out, growing(load.sent))
            tailrace.drain(query, timeout_s=SOON_S)
        # Nothing was replayed.
        assert Counter(results(out)) == growing(load.sent)
