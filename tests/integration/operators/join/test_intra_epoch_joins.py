"""With `spark.tailrace.watermark.idleAfter`, a join emits unmatched rows and removes old state before the epoch
boundary. No epoch of these tests ends by itself."""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import tailrace
from tailrace import EmbeddedKafka, TailraceError
from tailrace._process.machine_load import stretched
from tests.helpers.topics import Collector
from tests.helpers.two_streams import LIKE_REAL_TIME, Row, TwoStreams, has_read, running
from tests.helpers.waiting import until

OUTER: dict[str, set[tuple[int | None, int | None]]] = {
    "left_outer": {(1, None)},
    "right_outer": {(None, 2)},
    "full_outer": {(1, None), (None, 2)},
}
START = 1_000_000
FOR_EVER = "1h"
# How often a task looks for rows whose time is over, several times.
LOOKS_S = 5
CASES = 200
# As the two streams have it, in seconds.
DELAY, BEFORE, AFTER = 10, 5, 10

Pair = tuple[int | None, int | None]


@pytest.fixture(scope="module")
def spark(new_session: Callable[..., SparkSession]) -> SparkSession:
    return new_session("local[24]", LIKE_REAL_TIME)


@pytest.fixture
def streams(spark: SparkSession, kafka: EmbeddedKafka) -> TwoStreams:
    return TwoStreams(spark, kafka)


def row(number: int, key: str, second: float, **where: int) -> Row:
    return {"id": number, "key": key, "at": round(START + second * 1000), "value": "1", **where}


def everywhere(second: float, **where: int) -> list[Row]:
    """A row for each task."""
    return [row(0, f"time {number}", second, **where) for number in range(8)]


def pairs(out: Collector) -> Counter[Pair]:
    """Without those that only let time pass."""
    found = ((joined.get("l_id"), joined.get("r_id")) for joined in out.rows())
    return Counter(pair for pair in found if 0 not in pair)


def time_passes(streams: TwoStreams, second: float, done: Callable[[], Any], what: str) -> None:
    def passed() -> Any:
        streams.send(everywhere(second), everywhere(second))
        return done()

    until(passed, what)


def state_of(query: Any) -> Any:
    """What the epoch that has been ended says of the join."""
    tailrace.drain(query, timeout_s=stretched(60))
    return next(progress for progress in query.recentProgress if progress.stateOperators).stateOperators[0]


@pytest.mark.parametrize("kind", OUTER)
def test_an_outer_row_leaves_when_its_time_is_over(
    streams: TwoStreams, checkpoint: Path, waits_for_silent_partitions: Callable[[str], None], kind: str
) -> None:
    """And no match of it follows: the row that would have made one is late."""
    waits_for_silent_partitions(FOR_EVER)
    output = streams.new_output()
    with (
        Collector(streams.servers, output) as out,
        running(streams.writer(streams.joined(kind), output, checkpoint)) as query,
    ):
        streams.send([row(1, "a", 10), row(3, "b", 11)], [row(2, "c", 10), row(4, "b", 12)])
        first = OUTER[kind] | {(3, 4)}
        time_passes(streams, 100, lambda: set(pairs(out)) >= first, "the rows without a match")
        # Too late, and then two that are not.
        streams.send([row(5, "c", 10), row(6, "d", 100)], [row(7, "a", 10), row(8, "d", 100)])
        until(lambda: (6, 8) in pairs(out), "the match")
        assert state_of(query).numRowsDroppedByWatermark == 2
        assert pairs(out) == dict.fromkeys(first | {(6, 8)}, 1)


def test_what_matches_nothing_any_more_is_forgotten(
    streams: TwoStreams, checkpoint: Path, waits_for_silent_partitions: Callable[[str], None]
) -> None:
    """By an inner join too, of which nothing is seen. In the first epoch Spark's watermark forgets nothing."""
    waits_for_silent_partitions(FOR_EVER)
    output = streams.new_output()
    old = [row(number, f"k{number}", 10) for number in range(1, 101)]
    with (
        Collector(streams.servers, output) as out,
        running(streams.writer(streams.joined("inner"), output, checkpoint)) as query,
    ):
        streams.send(old, old)
        until(lambda: len(pairs(out)) == len(old), "the matches")
        deadline = time.monotonic() + LOOKS_S
        time_passes(streams, 100, lambda: time.monotonic() > deadline, "several looks")
        assert state_of(query).numRowsRemoved == 2 * len(old)


def test_without_the_setting_nothing_leaves_before_the_epoch_ends(streams: TwoStreams, checkpoint: Path) -> None:
    output = streams.new_output()
    with (
        Collector(streams.servers, output) as out,
        running(streams.writer(streams.joined("full_outer"), output, checkpoint)) as query,
    ):
        streams.send([row(1, "a", 10)], [row(2, "c", 10)])
        time_passes(streams, 100, out.rows, "the first matches")
        deadline = time.monotonic() + LOOKS_S
        time_passes(streams, 100, lambda: time.monotonic() > deadline, "several looks")
        # By Spark's watermark, which stands still, it is not late.
        streams.send((), [row(3, "a", 10)])
        until(lambda: (1, 3) in pairs(out), "the match")
        assert pairs(out) == {(1, 3): 1}
        state = state_of(query)
        assert (state.numRowsRemoved, state.numRowsDroppedByWatermark) == (0, 0)


@pytest.mark.parametrize("silent", ["partition", "side"])
@pytest.mark.parametrize("idle_after", [FOR_EVER, "2s"])
def test_who_is_behind_is_waited_for(
    spark: SparkSession,
    kafka: EmbeddedKafka,
    checkpoint: Path,
    waits_for_silent_partitions: Callable[[str], None],
    idle_after: str,
    silent: str,
) -> None:
    """Unless nothing has come from there for long enough."""
    waits_for_silent_partitions(idle_after)
    streams = TwoStreams(spark, kafka, partitions=2)
    output = streams.new_output()

    def those_that_go_on(second: float) -> None:
        right = () if silent == "side" else everywhere(second, partition=0)
        streams.send([*everywhere(second, partition=0), *everywhere(second, partition=1)], right)

    with (
        Collector(streams.servers, output) as out,
        running(streams.writer(streams.joined("left_outer"), output, checkpoint)),
    ):
        streams.send([row(1, "a", 10, partition=0)], [*everywhere(10, partition=0), *everywhere(10, partition=1)])
        those_that_go_on(10)

        def is_out() -> bool:
            return (1, None) in pairs(out)

        until(out.rows, "the first matches")
        looks = time.monotonic() + LOOKS_S

        def goes_on() -> bool:
            those_that_go_on(100)
            return is_out() or (idle_after == FOR_EVER and time.monotonic() > looks)

        until(goes_on, "the row without a match")
        if idle_after == FOR_EVER:
            assert not is_out()

            def catches_up() -> bool:
                streams.send((), [*everywhere(100, partition=0), *everywhere(100, partition=1)])
                return is_out()

            until(catches_up, "the row without a match")


def test_the_last_rows_need_no_others(
    streams: TwoStreams, checkpoint: Path, waits_for_silent_partitions: Callable[[str], None]
) -> None:
    """A task looks though nothing comes."""
    waits_for_silent_partitions(FOR_EVER)
    output = streams.new_output()
    with (
        Collector(streams.servers, output) as out,
        running(streams.writer(streams.joined("left_outer"), output, checkpoint)),
    ):
        streams.send([row(1, "a", 10), *everywhere(100)], everywhere(100))
        until(lambda: (1, None) in pairs(out), "the row without a match")


def random_chunks(seed: int) -> list[tuple[list[Row], list[Row]]]:
    """Each key is a case with few rows. Time moves on, and no row is behind one that came before it by more than may
    be. At the end it moves so far, twice, that nothing is left waiting."""
    chance = random.Random(seed)
    cases = [(f"k{case}", chance.randrange(0, 100)) for case in range(CASES)]
    rows = [
        (side, row(0, key, began + chance.randrange(0, 12_000) / 1000))
        for key, began in cases
        for side in [chance.randrange(2) for _ in range(chance.randrange(1, 6))]
    ]
    rows += [(side, passing) for second in range(0, 112, 4) for side in (0, 1) for passing in everywhere(second)]
    # Each comes later than it happened, by less than the delay.
    rows.sort(key=lambda timed: timed[1]["at"] + chance.randrange(0, DELAY * 1000 - 1))
    rows += [(side, passing) for second in (1000, 2000) for side in (0, 1) for passing in everywhere(second)]
    for number, (_, one) in enumerate(rows, start=1):
        one["id"] = number
    size = len(rows) // 8
    chunks = [rows[start : start + size] for start in range(0, len(rows), size)]
    return [([one for side, one in chunk if side == 0], [one for side, one in chunk if side == 1]) for chunk in chunks]


def expected_pairs(kind: str, left: Sequence[Row], right: Sequence[Row]) -> Counter[Pair]:
    """What the join of all rows is, without any streaming."""
    matches = [
        (one["id"], other["id"])
        for one in left
        for other in right
        if one["key"] == other["key"] and -BEFORE * 1000 <= other["at"] - one["at"] <= AFTER * 1000
    ]
    if kind == "left_semi":
        return Counter({(number, None): 1 for number, _ in matches})
    matched_left, matched_right = {pair[0] for pair in matches}, {pair[1] for pair in matches}
    found: list[Pair] = list(matches)
    if kind in ("left_outer", "full_outer"):
        found += [(one["id"], None) for one in left if one["id"] not in matched_left]
    if kind in ("right_outer", "full_outer"):
        found += [(None, one["id"]) for one in right if one["id"] not in matched_right]
    return Counter(found)


def compare(streams: TwoStreams, folder: Path, kinds: Sequence[str], seed: int, waits: Callable[[str], None]) -> None:
    """One epoch of each, in which all of it happens, with micro-batches of the same rows."""
    outputs = {(mode, kind): streams.new_output() for mode in ("real-time", "micro-batch") for kind in kinds}

    def writer(mode: str, kind: str) -> Any:
        return streams.writer(streams.joined(kind), outputs[mode, kind], folder / mode / kind)

    def one_batch_of_each() -> int:
        queries = [writer("micro-batch", kind).trigger(availableNow=True).start() for kind in kinds]
        for query in queries:
            query.awaitTermination()
        operators = [o for query in queries for batch in query.recentProgress for o in batch.stateOperators]
        return sum(operator.numRowsDroppedByWatermark for operator in operators)

    left: list[Row] = []
    right: list[Row] = []
    with ExitStack() as stack:
        out = {name: stack.enter_context(Collector(streams.servers, topic)) for name, topic in outputs.items()}
        waits(FOR_EVER)
        queries = [stack.enter_context(running(writer("real-time", kind))) for kind in kinds]
        for number, (more_left, more_right) in enumerate(random_chunks(seed)):
            left += more_left
            right += more_right
            streams.send(more_left, more_right)
            for query in queries:
                has_read(query, len(left) + len(right))
            # Takes longer than a step of the watermark, so that there are several; and the last two are by themselves.
            if number % 2 == 1 or number > 6:
                assert one_batch_of_each() == 0, "a row was late"
            if number == 5:
                for kind in set(kinds) & set(OUTER):
                    until(lambda: any(None in pair for pair in all_pairs(out["real-time", kind])), "a step")  # noqa: B023
        for kind in kinds:
            expected = expected_pairs(kind, left, right)
            found = out["real-time", kind]

            def settled(found: Collector = found, expected: Counter[Pair] = expected) -> bool:
                return sum(all_pairs(found).values()) >= sum(expected.values())

            until(settled, f"all rows of {kind}")
            assert all_pairs(found) == expected, kind
            in_batches = all_pairs(out["micro-batch", kind])
            if kind == "left_semi":
                # In micro-batch, Spark 4.3.0 misses some.
                assert in_batches <= expected
            else:
                assert in_batches == expected, kind
            assert sum(None in pair for pair in expected) > CASES / 4 or kind == "inner", "hardly a row without a match"
        for query in queries:
            assert state_of(query).numRowsDroppedByWatermark == 0


def all_pairs(out: Collector) -> Counter[Pair]:
    return Counter((joined.get("l_id"), joined.get("r_id")) for joined in out.rows())


def test_the_same_rows_as_in_micro_batch(
    streams: TwoStreams, tmp_path: Path, waits_for_silent_partitions: Callable[[str], None]
) -> None:
    compare(streams, tmp_path, ["full_outer", "left_semi"], 5, waits_for_silent_partitions)


@pytest.mark.chaos
@pytest.mark.parametrize("seed", range(3))
def test_the_same_rows_for_every_kind(
    streams: TwoStreams, tmp_path: Path, waits_for_silent_partitions: Callable[[str], None], seed: int
) -> None:
    kinds = ["inner", *OUTER, "left_semi"]
    compare(streams, tmp_path, kinds, seed, waits_for_silent_partitions)


def test_a_stop_loses_no_outer_row(
    streams: TwoStreams, checkpoint: Path, waits_for_silent_partitions: Callable[[str], None]
) -> None:
    """The epoch is computed again from its start, and its watermark too: outer rows of it come twice."""
    waits_for_silent_partitions(FOR_EVER)
    output = streams.new_output()
    with Collector(streams.servers, output) as out:
        for times in (1, 2):
            with running(streams.writer(streams.joined("left_outer"), output, checkpoint)):
                streams.send([row(1, "a", 10)] if times == 1 else [])
                time_passes(streams, 100, lambda: pairs(out)[1, None] == times, "the row")  # noqa: B023
        assert pairs(out) == {(1, None): 2}


def test_a_window_can_be_the_time(
    streams: TwoStreams, checkpoint: Path, waits_for_silent_partitions: Callable[[str], None]
) -> None:
    """Then the key itself is forgotten when it is over."""
    waits_for_silent_partitions(FOR_EVER)
    left = streams.left().withColumn("l_window", F.window("l_at", "10 seconds")).drop("l_at")
    right = streams.right().withColumn("r_window", F.window("r_at", "10 seconds")).drop("r_at")
    joined = left.join(right, F.expr("l_key = r_key AND l_window = r_window"), "left_outer")
    output = streams.new_output()
    with Collector(streams.servers, output) as out, running(streams.writer(joined, output, checkpoint)):
        streams.send([row(1, "a", 11), row(2, "b", 11)], [row(3, "b", 19)])
        expected = {(1, None): 1, (2, 3): 1}
        time_passes(streams, 100, lambda: len(pairs(out)) >= len(expected), "both")
        assert pairs(out) == expected


def test_a_length_of_time_that_is_none_is_refused(
    streams: TwoStreams, checkpoint: Path, waits_for_silent_partitions: Callable[[str], None]
) -> None:
    waits_for_silent_partitions("soon")
    writer = streams.writer(streams.joined("inner"), streams.new_output(), checkpoint)
    with pytest.raises(TailraceError) as refused:
        writer.trigger(realTime="10 minutes").start()  # type: ignore[call-overload]
    assert refused.value.code == "TAILRACE_BAD_SETTING"
