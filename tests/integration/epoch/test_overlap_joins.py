"""Epochs of joins of two streams overlap: matches, outer rows and late rows are those of epochs that do not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from itertools import pairwise
from pathlib import Path

import pytest
from pyspark.errors import StreamingQueryException
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

# A row's time is its number in seconds. The right row of a number comes long after the left one: the two are mostly in
# different epochs.
START_S = 1_000_000
BEHIND = 30
DELAY_S = 45
# Odd enough that no row is exactly as old as the watermark says.
NEAR_S = 0.25
KEYS = 20
KINDS = ("inner", "left_outer", "right_outer", "full_outer", "left_semi")
LATE, END = -1, 10_000_000

Pair = tuple[int | None, int | None]


@pytest.fixture(scope="module")
def spark(new_session: Callable[..., SparkSession]) -> SparkSession:
    # Two sources and two tasks of the join, in two epochs at once, and some more.
    return new_session("local[12]", SHORT_EPOCHS)


@pytest.fixture
def streams(spark: SparkSession, kafka: EmbeddedKafka) -> TwoStreams:
    return TwoStreams(spark, kafka, delay=f"{DELAY_S} seconds")


@pytest.fixture
def output(streams: TwoStreams) -> str:
    """Of one partition, which keeps the order in which rows are written."""
    return new_topic(streams.servers, "joined", partitions=1)


def at_s(number: float) -> int:
    return round((START_S + number) * 1000)


def left_row(number: int) -> Row:
    return {"id": number, "key": f"k{number % KEYS}", "at": at_s(number)}


def right_row(number: int) -> Row:
    """Every third one is too far from the left one to match it."""
    return {"id": number, "key": f"k{number % KEYS}", "at": at_s(number if matches(number) else number + 0.5)}


def matches(number: int) -> bool:
    return number % 3 != 0


def loaded(streams: TwoStreams) -> NumberedLoad:
    def rows_of(number: int) -> Iterable[tuple[str, Row]]:
        yield streams.left_topic, left_row(number)
        if number >= BEHIND:
            yield streams.right_topic, right_row(number - BEHIND)

    return NumberedLoad(streams.servers, rows_of)


def joined(streams: TwoStreams, kind: str) -> DataFrame:
    near = f"r_at BETWEEN l_at - INTERVAL {NEAR_S} SECONDS AND l_at + INTERVAL {NEAR_S} SECONDS"
    return streams.left().join(streams.right(), F.expr(f"l_key = r_key AND {near}"), kind)


def pairs(out: Collector) -> list[Pair]:
    """Without what only lets time pass."""
    found = [(row.get("l_id"), row.get("r_id")) for row in out.rows()]
    return [pair for pair in found if not {LATE, END} & set(pair)]


def expected(kind: str, sent: int) -> Counter[Pair]:
    """All results of so many numbers, when their time is over."""
    found: list[Pair] = []
    for number in range(sent):
        has_right = number < sent - BEHIND
        if has_right and matches(number):
            found.append((number, None) if kind == "left_semi" else (number, number))
        else:
            if kind in ("left_outer", "full_outer"):
                found.append((number, None))
            if has_right and kind in ("right_outer", "full_outer"):
                found.append((None, number))
    return Counter(found)


def until_time_has_passed(query: StreamingQuery, boundaries: int) -> None:
    until(lambda: overlapped(query) >= boundaries, f"{boundaries} boundaries overlapped", within_s=SOON_S)
    until(lambda: watermark_of(query) > START_S + DELAY_S, "the watermark has moved", within_s=SOON_S)


def watermark_of(query: StreamingQuery) -> float:
    return max((epoch.watermark_s for epoch in epochs_of(query)), default=0.0)


def let_time_end(streams: TwoStreams) -> None:
    end = [{"id": END, "key": "end", "at": at_s(END)}]
    streams.send(end, end)


def until_all_are_out(out: Collector, wanted: Counter[Pair]) -> None:
    until(lambda: len(set(pairs(out))) >= len(wanted), "all rows are out", within_s=SOON_S)


def writer_of(streams: TwoStreams, kind: str, output: str, checkpoint: Path) -> DataStreamWriter:
    return streams.writer(joined(streams, kind), output, checkpoint)


def run_across_boundaries(
    streams: TwoStreams, kind: str, output: str, checkpoint: Path, *, epoch: str = EPOCH
) -> tuple[list[Pair], list[Epoch], int]:
    """The results of a join over boundaries that overlapped, its epochs, and how many numbers were sent."""
    writer = writer_of(streams, kind, output, checkpoint)
    with (
        Collector(streams.servers, output, partitions=1) as out,
        loaded(streams) as load,
        running(writer, epoch=epoch) as query,
    ):
        until_time_has_passed(query, 5)
        assert "HandOverState" in query._jsq.explainInternal(False)
        load.stop()
        late = [{"id": LATE, "key": "late", "at": at_s(0)}]
        streams.send(late, late)
        until(lambda: sum(epoch.rows_dropped for epoch in epochs_of(query)) == 2, "late rows", within_s=SOON_S)
        let_time_end(streams)
        until_all_are_out(out, expected(kind, load.sent))
        tailrace.drain(query, timeout_s=SOON_S)
        assert_meets(query)
        return pairs(out), epochs_of(query), load.sent


def before_the_end(epochs: list[Epoch], streams: TwoStreams, sent: int) -> list[Epoch]:
    """The epochs that have read nothing but numbered rows."""
    return [
        epoch
        for epoch in epochs
        if epoch.read[streams.left_topic] <= sent and epoch.read[streams.right_topic] <= sent - BEHIND
    ]


def assert_rows_go_with_the_watermark(epochs: list[Epoch], streams: TwoStreams, kind: str) -> None:
    """An epoch keeps the rows, and emits the outer rows, that its watermark says. Offsets are numbers here."""
    for epoch in epochs:
        left, right = epoch.read[streams.left_topic], epoch.read[streams.right_topic]
        oldest = epoch.watermark_s - START_S - NEAR_S
        old_left = [number for number in range(left) if number < oldest]
        old_right = [number for number in range(right) if right_row(number)["at"] < at_s(oldest)]
        matched = [number for number in range(min(left, right)) if matches(number)]
        used_up = [number for number in matched if number >= oldest] if kind == "left_semi" else []
        assert epoch.rows_kept == left - len(old_left) + right - len(old_right) - len(used_up), epoch
        assert total_out(epochs, epoch) == len(matched) + outer(kind, old_left, old_right), epoch


def total_out(epochs: list[Epoch], until_epoch: Epoch) -> int:
    return sum(epoch.rows_out for epoch in epochs if epoch.number <= until_epoch.number)


def outer(kind: str, old_left: list[int], old_right: list[int]) -> int:
    emitted = old_left if kind in ("left_outer", "full_outer") else []
    emitted = emitted + (old_right if kind in ("right_outer", "full_outer") else [])
    return sum(1 for number in emitted if not matches(number))


def assert_in_order(found: list[Pair], sent: int) -> None:
    """Both sides come in the order of their numbers, so the matches of a key do."""
    matched = [left for left, _ in found if left is not None and matches(left) and left < sent - BEHIND]
    for key in range(KEYS):
        assert all(one < other for one, other in pairwise(number for number in matched if number % KEYS == key))


@pytest.mark.parametrize("kind", KINDS)
def test_the_same_rows_as_in_micro_batch(streams: TwoStreams, output: str, tmp_path: Path, kind: str) -> None:
    found, epochs, sent = run_across_boundaries(streams, kind, output, tmp_path / "real-time")
    assert Counter(found) == expected(kind, sent)
    assert_in_order(found, sent)
    numbered = before_the_end(epochs, streams, sent)
    assert len(numbered) > 4
    assert_rows_go_with_the_watermark(numbered, streams, kind)
    in_batches = streams.new_output()
    writer = writer_of(streams, kind, in_batches, tmp_path / "micro-batch")
    with Collector(streams.servers, in_batches) as out:
        query = writer.start()
        until_all_are_out(out, expected(kind, sent))
        query.stop()
        assert Counter(pairs(out)) == Counter(found)


def test_rows_that_leave_before_the_boundary(
    streams: TwoStreams, output: str, checkpoint: Path, waits_for_silent_partitions: Callable[[str], None]
) -> None:
    """In each epoch the watermark moves as it does in one that was not started ahead."""
    waits_for_silent_partitions("1h")
    found, epochs, sent = run_across_boundaries(streams, "full_outer", output, checkpoint, epoch="3 seconds")
    assert Counter(found) == expected("full_outer", sent)
    numbered = before_the_end(epochs, streams, sent)
    with pytest.raises(AssertionError):
        assert_rows_go_with_the_watermark(numbered, streams, "full_outer")


def test_a_restart_loses_no_row(streams: TwoStreams, output: str, checkpoint: Path) -> None:
    """Without a drain: the open epoch comes again."""
    writer = writer_of(streams, "full_outer", output, checkpoint)
    with Collector(streams.servers, output, partitions=1) as out, loaded(streams) as load:
        for _ in range(2):
            with running(writer, epoch=EPOCH) as query:
                until_time_has_passed(query, 3)
        load.stop()
        let_time_end(streams)
        wanted = expected("full_outer", load.sent)
        with running(writer, epoch=EPOCH) as query:
            until_all_are_out(out, wanted)
        assert set(pairs(out)) == set(wanted)


def test_a_drain_while_the_next_epoch_waits_for_its_state(streams: TwoStreams, output: str, checkpoint: Path) -> None:
    writer = writer_of(streams, "full_outer", output, checkpoint)
    with Collector(streams.servers, output, partitions=1) as out, loaded(streams) as load:
        for _ in range(2):
            with running(writer, epoch="6 seconds") as query:
                until(lambda: is_parked(query), "the next epoch waits")
                drained = tailrace.drain(query, timeout_s=SOON_S)
                assert (checkpoint / "commits" / str(drained.epoch)).exists()
            until(lambda: nothing_is_left(streams.spark), "nothing is left")
        load.stop()
        let_time_end(streams)
        wanted = expected("full_outer", load.sent)
        with running(writer, epoch=EPOCH) as query:
            until_all_are_out(out, wanted)
            tailrace.drain(query, timeout_s=SOON_S)
        # Nothing was replayed.
        assert Counter(pairs(out)) == wanted


def test_an_epoch_that_continued_from_other_state_is_not_committed(
    streams: TwoStreams, output: str, checkpoint: Path
) -> None:
    """A join has four stores in a partition, and one of them is another than Spark committed."""
    writer = writer_of(streams, "inner", output, checkpoint)
    with (  # noqa: PT012
        pytest.raises(StreamingQueryException, match="TAILRACE_EPOCHS_DO_NOT_MEET"),
        running(writer, epoch="6 seconds") as query,
    ):
        streams.send([left_row(1)], [right_row(1)])
        until(lambda: overlapped(query) >= 1, "epochs overlap", within_s=SOON_S)

        def has_failed() -> bool:
            # Again, in case that an epoch was just being committed.
            query._jsq.streamingQuery().lastExecution().currentStateStoreCkptId().apply(0)[0][2] = "another"
            return query.exception() is not None

        until(has_failed, "the query fails", within_s=SOON_S)
    until(lambda: nothing_is_left(streams.spark), "nothing is left")
