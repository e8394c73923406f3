"""From counts to figures: percentiles equal HdrHistogram's, windows forget, memory stays bounded."""

from __future__ import annotations

import random
import sys
from dataclasses import astuple
from typing import Any

import pytest
from hdrh.histogram import HdrHistogram

from tailrace.contract.codec import to_json
from tailrace.contract.live_figures import (
    LatestOffset,
    LiveFiguresMessage,
    PartitionStart,
    QueryEvent,
    QueryPlanned,
    QueryStarted,
    QueryTerminated,
    ReadingStarted,
    ReadProgress,
    RowsWritten,
    SeriesKey,
    SeriesUpdate,
    StageShape,
    WarmupChanged,
)
from tailrace.contract.snapshot import Application
from tailrace.monitor.application import KEPT_ENDED_QUERIES, ApplicationMonitor, SessionEndedError
from tailrace.monitor.epochs import KEPT_BOUNDARIES, Epochs, pause_in_words, pause_of
from tailrace.monitor.histogram import DIGITS, LONGEST_US, Histogram, highest_us, lowest_us
from tailrace.monitor.history import HISTORY_S
from tailrace.monitor.query import QueryMonitor
from tailrace.monitor.rolling import RollingHistogram


def bucket_of(micros: int) -> int:
    """As the plugin's `Counts.indexOf` has it."""
    halvings = max(0, micros.bit_length() - 8)
    return (halvings << 7) + (micros >> halvings)


def counts_of(micros: list[int]) -> dict[int, int]:
    counts: dict[int, int] = {}
    for value in micros:
        counts[bucket_of(value)] = counts.get(bucket_of(value), 0) + 1
    return counts


def histogram_of(micros: list[int]) -> Histogram:
    histogram = Histogram()
    histogram.add(counts_of(micros))
    return histogram


class TestHistogram:
    def test_every_duration_lies_in_its_bucket_to_one_percent(self) -> None:
        for value in [0, 1, 127, 128, 255, 256, 257, 511, 512, 1000, 123_456, 10**9, LONGEST_US]:
            lowest, highest = lowest_us(bucket_of(value)), highest_us(bucket_of(value))
            assert lowest <= value <= highest
            assert highest - lowest <= max(0, value * 0.01)

    def test_percentiles_are_those_of_an_hdr_histogram(self) -> None:
        numbers = random.Random(7)
        micros = [int(numbers.lognormvariate(8, 2)) + 1 for _ in range(5000)]
        theirs = HdrHistogram(1, LONGEST_US, DIGITS)
        for value in micros:
            theirs.record_value(value)
        ours = histogram_of(micros)
        for percentile in (50.0, 90.0, 99.0, 99.9, 100.0):
            assert ours.percentile_ms(percentile) == theirs.get_value_at_percentile(percentile) / 1000
        summary = ours.distribution()
        assert summary is not None
        assert summary.mean_ms == pytest.approx(sum(micros) / len(micros) / 1000, rel=0.01)
        assert ours.to_hdr().get_value_at_percentile(99.0) == theirs.get_value_at_percentile(99.0)
        assert ours.to_hdr().get_total_count() == 5000

    def test_nothing_recorded(self) -> None:
        assert Histogram().distribution() is None
        assert Histogram().percentile_ms(99.0) is None

    def test_heat_map_columns(self) -> None:
        assert histogram_of([100, 900, 900, 5_000_000]).counts_below([0.5, 1.0, 2.0]) == [1, 2, 0, 1]


class TestWindows:
    def test_a_window_forgets_and_the_run_does_not(self) -> None:
        rolling = RollingHistogram()
        for second in range(100):
            rolling.add(float(second), {second: 1})
            rolling.advance(float(second))
        assert rolling.over("10s").count == 10
        assert rolling.over("1m").count == 60
        assert rolling.over("run").count == 100
        assert rolling.over("10s").percentile_ms(1) == 0.09
        rolling.advance(200.0)
        assert rolling.over("1m").distribution() is None


def read(epoch: int, partition: int, began_s: float, ended_s: float = 0.0, **changes: Any) -> ReadProgress:
    told: dict[str, Any] = {"topic": "in", "offset": 9, "rows": 0} | changes
    return ReadProgress(
        "run", epoch, told["topic"], partition, int(began_s * 1e6), int(ended_s * 1e6), told["offset"], told["rows"]
    )


class TestEpochs:
    def test_the_pause_is_the_longest_of_a_partition(self) -> None:
        epochs = Epochs()
        epochs.apply([read(0, 0, 1, 10), read(0, 1, 1, 10.1), read(1, 0, 10.3), read(1, 1, 10.6)])
        [boundary] = epochs.boundaries
        assert (boundary.epoch, boundary.at) == (0, 10.0)
        assert boundary.pause_ms == pytest.approx(500)
        assert (epochs.number, epochs.began_at) == (1, 10.3)

    def test_the_order_of_the_updates_does_not_matter(self) -> None:
        epochs = Epochs()
        for news in (read(0, 0, 1), read(1, 0, 10.4), read(0, 0, 1, 10)):
            epochs.apply([news])
        assert [boundary.pause_ms for boundary in epochs.boundaries] == [pytest.approx(400)]

    def test_a_pause_is_the_sum_of_its_parts(self) -> None:
        epochs = Epochs()
        epochs.apply([read(0, 0, 1, 10), read(0, 1, 1, 10.1), read(1, 0, 10.3), read(1, 1, 10.6)])
        [boundary] = epochs.boundaries
        assert boundary.parts_ms is None
        for tell, epoch, at_s in (
            (epochs.finished, 0, 10.25),
            (epochs.committed, 0, 10.27),
            (epochs.launched, 1, 10.4),
        ):
            tell(epoch, int(at_s * 1e6))
        parts = epochs.boundaries[-1].parts_ms
        assert parts is not None
        assert astuple(parts) == pytest.approx((150, 20, 130, 200))
        assert sum(astuple(parts)) == pytest.approx(epochs.boundaries[0].pause_ms)

    def test_another_clock_does_not_make_a_part_negative(self) -> None:
        epochs = Epochs()
        epochs.finished(0, 9_000_000)
        epochs.committed(0, 9_990_000)
        epochs.launched(1, 11_000_000)
        epochs.apply([read(0, 0, 1, 10), read(1, 0, 10.4)])
        parts = epochs.boundaries[0].parts_ms
        assert parts is not None
        assert astuple(parts) == pytest.approx((0, 0, 400, 0))

    def test_the_pause_over_boundaries_is_a_median(self) -> None:
        epochs = Epochs()
        epochs.apply([read(0, 0, 1, 9), read(1, 0, 9.1, 19), read(2, 0, 19.3, 29), read(3, 0, 29.9)])
        pause = pause_of(epochs.boundaries)
        assert pause is not None
        assert (pause.boundaries, pause.median_ms, pause.max_ms) == pytest.approx((3, 300, 900))
        assert pause.parts_ms is None
        assert pause_in_words(pause) == "300 ms (median of 3, longest 900)"
        assert pause_of([]) is None

    def test_a_boundary_says_whether_the_epochs_overlapped(self) -> None:
        epochs = Epochs()
        epochs.launched(1, 8_000_000)
        epochs.apply([read(0, 0, 1, 10), read(1, 0, 10.005, 20), read(2, 0, 20.2)])
        epochs.begun(1, None)
        epochs.begun(2, "too few slots")
        epochs.finished(0, 10_010_000)
        epochs.committed(0, 10_300_000)
        first, second = epochs.boundaries
        assert (first.overlapped, first.reason) == (True, None)
        assert (second.overlapped, second.reason) == (False, "too few slots")
        assert first.parts_ms is not None
        assert astuple(first.parts_ms) == pytest.approx((5, 0, 0, 0)), "what the driver did later held nothing up"
        said = [pause_in_words(pause) for some in ([first, second], [first], [second]) if (pause := pause_of(some))]
        assert said[0].endswith("; 1 of 2 overlapped: too few slots")
        assert said[1].endswith("; overlapped")
        assert said[2] == "200 ms; not overlapped: too few slots"

    def test_old_boundaries_are_forgotten(self) -> None:
        epochs = Epochs()
        for number in range(500):
            epochs.apply([read(number, 0, number * 10, number * 10 + 9.5)])
        assert len(epochs.boundaries) == KEPT_BOUNDARIES
        assert epochs.boundaries[-1].epoch == 498


def series(figure: str, micros: list[int], partition: int = 0, topic: str = "in", stage: int = 0) -> SeriesUpdate:
    return SeriesUpdate(SeriesKey("run", figure, stage, topic, partition), counts_of(micros))


def running_query(now: float = 100.0) -> QueryMonitor:
    query = QueryMonitor("run", now)
    query.apply_event(QueryPlanned("run", None, (StageShape(0, (), (), (), None, None),), timed=True))
    return query


class TestQuery:
    def test_lag_is_what_is_newer_than_the_last_row_read(self) -> None:
        query = running_query()
        query.apply(100.0, latest=[LatestOffset("run", "in", 0, 50)])
        query.apply(101.0, [], [read(0, 0, 100.5, offset=41, rows=42)], [LatestOffset("run", "in", 0, 90)])
        # What came within the last second may have been read, and not yet told.
        assert query.lag_rows == 8
        assert query.figures(101.0).partitions[0].latest_offset == 90
        assert query.status == "running"

    def test_the_first_short_epochs_are_its_start(self) -> None:
        """It is not ready while they last, and their boundaries are not the ones to come."""
        query = running_query()
        query.apply_event(WarmupChanged("run", 7, True))
        query.apply(101.0, [], [read(7, 0, 100.0, 101.0, rows=42), read(8, 0, 102.0, rows=42)])
        assert query.status == "starting"
        query.apply_event(WarmupChanged("run", 8, False))
        query.apply(110.0, [], [read(8, 0, 102.0, 109.0, rows=42), read(9, 0, 109.1, rows=42)])
        assert query.status == "running"
        pause = query.figures(110.0).pause
        assert pause is not None
        assert (pause.boundaries, pause.max_ms) == pytest.approx((1, 100))

    def test_a_backlog_that_takes_seconds_is_lagging(self) -> None:
        query = running_query()
        latest = [LatestOffset("run", "in", 0, 5000)]
        query.apply(100.0, latest=latest)
        query.apply(101.0, [], [read(0, 0, 100.5, offset=41, rows=42)], latest)
        assert query.status == "lagging"

    def test_a_lag_that_the_broker_has_not_confirmed_for_a_while_is_not_known(self) -> None:
        query = running_query()
        latest = [LatestOffset("run", "in", 0, 5000)]
        query.apply(100.0, latest=latest)
        query.apply(101.0, [], [read(0, 0, 100.5, offset=41, rows=42)], latest)
        query.apply(110.0)
        assert query.lag_rows is None

    def test_a_partition_that_is_never_read_is_lagging_after_a_while(self) -> None:
        query = running_query()
        latest = [LatestOffset("run", "in", 0, 5000)]
        query.apply(101.0, [], [read(0, 0, 100.5, offset=-1)], latest)
        assert query.status == "starting"
        query.apply(112.0, [], [read(0, 0, 100.5, offset=-1)], latest)
        assert query.status == "lagging"

    def test_a_partition_that_no_task_ever_got_to_is_lagging_after_a_while(self) -> None:
        query = running_query()
        query.apply_event(ReadingStarted("run", (PartitionStart("in", 0, 0), PartitionStart("in", 1, 0))))
        latest = [LatestOffset("run", "in", 0, 0), LatestOffset("run", "in", 1, 5000)]
        for second in range(101, 115):
            query.apply(float(second), [], [read(0, 0, 100.5, offset=-1)], latest)
        assert query.status == "lagging"
        assert [part.lag_rows for part in query.figures(115.0).partitions] == [0, 5000]

    def test_findings_are_not_made_from_a_start_or_a_backlog(self) -> None:
        query = running_query()
        latest = [LatestOffset("run", "in", 0, 5000)]
        rows = [series("end_to_end", [9_000_000])]
        query.apply(101.0, rows, [read(0, 0, 100.5, offset=10, rows=10)], latest)
        query.apply(102.0, rows, [read(0, 0, 100.5, offset=20, rows=10)], latest)
        assert query.status == "lagging"
        for second in range(103, 110):
            query.apply(
                float(second), [series("end_to_end", [1000])], [read(0, 0, 100.5, offset=4999, rows=10)], latest
            )
        assert query.status == "running"
        longest = {window: query.histogram("end_to_end", window).percentile_ms(100) for window in ("1m", "steady")}
        assert longest["1m"] == pytest.approx(9000, rel=0.01)
        assert longest["steady"] == pytest.approx(1, rel=0.01)

    def test_how_it_ended(self) -> None:
        query = running_query()
        query.end(120.0)
        assert query.status == "ended"
        query.apply_event(QueryTerminated("run", "boom"))
        assert query.status == "failed"

    def test_partitions_and_the_whole(self) -> None:
        query = running_query()
        news = [series("end_to_end", [1000] * 90), series("end_to_end", [9000] * 10, partition=1)]
        query.apply(101.0, news, [read(0, 0, 100, rows=90), read(0, 1, 100, rows=10)], [])
        figures = query.figures(102.0)
        end_to_end = figures.windows["10s"].end_to_end
        assert end_to_end is not None
        assert end_to_end.count == 100
        assert end_to_end.p50_ms == pytest.approx(1, rel=0.01)
        assert end_to_end.p99_ms == pytest.approx(9, rel=0.01)
        by_partition = [found.p50_ms for part in figures.partitions if (found := part.windows["10s"].end_to_end)]
        assert by_partition == [pytest.approx(1, rel=0.01), pytest.approx(9, rel=0.01)]

    def test_memory_stays_however_long_it_runs(self) -> None:
        query = running_query()

        def run(seconds: range) -> int:
            for second in seconds:
                news = [series("end_to_end", [1000 + 10 * (second % 50)]), series("processing", [500])]
                query.apply(float(second), news, [read(second // 60, 0, second, rows=1)], [])
            return _size(query)

        early = run(range(100, 100 + 2 * HISTORY_S))
        assert run(range(100 + 2 * HISTORY_S, 100 + 6 * HISTORY_S)) <= early * 1.05


def _size(thing: Any, seen: set[int] | None = None) -> int:
    """Bytes of an object and all that it holds."""
    seen = set() if seen is None else seen
    if id(thing) in seen:
        return 0
    seen.add(id(thing))
    parts: list[Any] = []
    if isinstance(thing, dict):
        parts = [*thing.keys(), *thing.values()]
    elif isinstance(thing, list | tuple | set) or type(thing).__name__ == "deque":
        parts = list(thing)
    elif hasattr(thing, "__dict__"):
        parts = [vars(thing)]
    return sys.getsizeof(thing) + sum(_size(part, seen) for part in parts)


APPLICATION = Application("a", "payments", "local[8]", "4.3.0", "0.1.0")


def message(*events: QueryEvent, series: tuple[SeriesUpdate, ...] = (), written: tuple[RowsWritten, ...] = ()) -> str:
    return to_json(LiveFiguresMessage(series, (), written, (), (), events))


def plan(run: str = "r") -> QueryPlanned:
    return QueryPlanned(run, 5000, (), timed=True)


class TestApplication:
    def test_last_figures_that_come_after_the_end_are_counted(self) -> None:
        late = SeriesUpdate(SeriesKey("r", "processing", 0, "in", 0), {10: 5})
        told = [
            message(plan()),
            message(QueryTerminated("r", None)),
            message(series=(late,), written=(RowsWritten("r", 5),)),
        ]
        monitor = ApplicationMonitor(lambda: told.pop(0), APPLICATION)
        for _ in range(3):
            monitor.fetch()
        figures = monitor.query("r")
        assert figures is not None
        assert figures.windows["run"].rows_out == 5
        assert figures.status == "ended"

    def test_figures_can_be_asked_for_when_the_session_is_gone(self) -> None:
        told = [message(plan())]

        def take() -> str:
            if not told:
                raise SessionEndedError
            return told.pop()

        monitor = ApplicationMonitor(take, APPLICATION)
        for _ in range(3):
            monitor.fetch()
        assert [query.status for query in monitor.snapshot().queries] == ["ended"]

    def test_a_round_that_fails_does_not_end_it(self) -> None:
        told = ["not JSON", "{}", message(plan())]
        monitor = ApplicationMonitor(lambda: told.pop(0), APPLICATION)
        for _ in range(3):
            monitor.fetch()
        assert [query.run_id for query in monitor.snapshot().queries] == ["r"]

    def test_the_first_to_start_is_not_the_first_to_be_forgotten(self) -> None:
        told = [message(plan("long"))]
        for number in range(2 * KEPT_ENDED_QUERIES):
            told.append(message(plan(f"short {number}"), QueryTerminated(f"short {number}", None)))
            told.append(message(QueryStarted(f"batch {number}", "i", None, 1_794_800_000_000, real_time=False)))
            told.append(message(QueryTerminated(f"batch {number}", None)))
        told.append(message(QueryTerminated("long", "boom")))
        monitor = ApplicationMonitor(lambda: told.pop(0), APPLICATION)
        while told:
            monitor.fetch()
        kept = {query.run_id: query.status for query in monitor.snapshot().queries}
        assert kept["long"] == "failed"
        assert len(kept) == KEPT_ENDED_QUERIES

    def test_queries_that_are_not_real_time_are_skipped(self) -> None:
        started = message(QueryStarted("r", "i", None, 1_794_800_000_000, real_time=False))
        monitor = ApplicationMonitor(lambda: started, APPLICATION)
        monitor.fetch()
        assert monitor.snapshot().queries == ()
        assert monitor.query("r") is None
