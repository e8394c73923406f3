"""From counts to figures: percentiles as HdrHistogram has them, windows that forget, memory that stays."""

from __future__ import annotations

import json
import random
import sys
from typing import Any

import pytest
from hdrh.histogram import HdrHistogram

from tailrace.monitor.application import KEPT_ENDED_QUERIES, ApplicationMonitor, SessionEndedError
from tailrace.monitor.epochs import KEPT_BOUNDARIES, Epochs, seam_in_words, seam_of
from tailrace.monitor.histogram import DIGITS, LONGEST_US, Histogram, highest_us, lowest_us
from tailrace.monitor.history import HISTORY_S
from tailrace.monitor.news import NewestOffset, ReadNews, SeriesKey, SeriesNews
from tailrace.monitor.query import QueryFigures
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
        summary = ours.summary()
        assert summary is not None
        assert summary["mean_ms"] == pytest.approx(sum(micros) / len(micros) / 1000, rel=0.01)
        assert ours.to_hdr().get_value_at_percentile(99.0) == theirs.get_value_at_percentile(99.0)
        assert ours.to_hdr().get_total_count() == 5000

    def test_nothing_recorded(self) -> None:
        assert Histogram().summary() is None
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
        assert rolling.over("1m").summary() is None


def read(epoch: int, partition: int, began_s: float, ended_s: float = 0.0, **changes: Any) -> ReadNews:
    told: dict[str, Any] = {"topic": "in", "offset": 9, "rows": 0} | changes
    return ReadNews(
        "run", epoch, told["topic"], partition, int(began_s * 1e6), int(ended_s * 1e6), told["offset"], told["rows"]
    )


class TestEpochs:
    def test_the_gap_is_the_longest_of_a_partition(self) -> None:
        epochs = Epochs()
        epochs.apply([read(0, 0, 1, 10), read(0, 1, 1, 10.1), read(1, 0, 10.3), read(1, 1, 10.6)])
        [boundary] = epochs.boundaries
        assert (boundary["epoch"], boundary["at"]) == (0, 10.0)
        assert boundary["gap_ms"] == pytest.approx(500)
        assert (epochs.number, epochs.began_at) == (1, 10.3)

    def test_the_order_of_the_news_does_not_matter(self) -> None:
        epochs = Epochs()
        for news in (read(0, 0, 1), read(1, 0, 10.4), read(0, 0, 1, 10)):
            epochs.apply([news])
        assert [boundary["gap_ms"] for boundary in epochs.boundaries] == [pytest.approx(400)]

    def test_a_gap_is_the_sum_of_its_parts(self) -> None:
        epochs = Epochs()
        epochs.apply([read(0, 0, 1, 10), read(0, 1, 1, 10.1), read(1, 0, 10.3), read(1, 1, 10.6)])
        [boundary] = epochs.boundaries
        assert boundary["parts_ms"] is None
        for tell, epoch, at_s in (
            (epochs.finished, 0, 10.25),
            (epochs.committed, 0, 10.27),
            (epochs.launched, 1, 10.4),
        ):
            tell(epoch, int(at_s * 1e6))
        parts: dict[str, float] = epochs.boundaries[-1]["parts_ms"]
        assert parts == {
            "finish": pytest.approx(150),
            "log": pytest.approx(20),
            "plan": pytest.approx(130),
            "launch": pytest.approx(200),
        }
        assert sum(parts.values()) == pytest.approx(epochs.boundaries[0]["gap_ms"])

    def test_another_clock_does_not_make_a_part_negative(self) -> None:
        epochs = Epochs()
        epochs.finished(0, 9_000_000)
        epochs.committed(0, 9_990_000)
        epochs.launched(1, 11_000_000)
        epochs.apply([read(0, 0, 1, 10), read(1, 0, 10.4)])
        assert epochs.boundaries[0]["parts_ms"] == {"finish": 0, "log": 0, "plan": pytest.approx(400), "launch": 0}

    def test_the_seam_is_a_median(self) -> None:
        epochs = Epochs()
        epochs.apply([read(0, 0, 1, 9), read(1, 0, 9.1, 19), read(2, 0, 19.3, 29), read(3, 0, 29.9)])
        seam = seam_of(epochs.boundaries)
        assert seam is not None
        assert (seam["boundaries"], seam["median_ms"], seam["max_ms"]) == (3, pytest.approx(300), pytest.approx(900))
        assert seam["parts_ms"] is None
        assert seam_in_words(seam) == "300 ms (median of 3, longest 900)"
        assert seam_of([]) is None

    def test_old_boundaries_are_forgotten(self) -> None:
        epochs = Epochs()
        for number in range(500):
            epochs.apply([read(number, 0, number * 10, number * 10 + 9.5)])
        assert len(epochs.boundaries) == KEPT_BOUNDARIES
        assert epochs.boundaries[-1]["epoch"] == 498


def series(figure: str, micros: list[int], partition: int = 0, topic: str = "in", stage: int = 0) -> SeriesNews:
    return SeriesNews("run", SeriesKey(figure, stage, topic, partition), counts_of(micros))


def running_query(now: float = 100.0) -> QueryFigures:
    query = QueryFigures("run", now)
    query.apply_event({"event": "planned", "stages": [{"stage": 0, "inputs": [], "sources": [], "operators": []}]})
    return query


class TestQuery:
    def test_lag_is_what_is_newer_than_the_last_row_read(self) -> None:
        query = running_query()
        query.apply(100.0, newest=[NewestOffset("run", "in", 0, 50)])
        query.apply(101.0, [], [read(0, 0, 100.5, offset=41, rows=42)], [NewestOffset("run", "in", 0, 90)])
        # What came within the last second may have been read, and not yet told.
        assert query.lag_rows == 8
        assert query.snapshot(101.0)["partitions"][0]["latest_offset"] == 90
        assert query.status == "running"

    def test_the_first_short_epochs_are_its_start(self) -> None:
        """It is not ready while they last, and their boundaries are not the ones to come."""
        query = running_query()
        query.apply_event({"event": "warming", "epoch": 7, "warming": True})
        query.apply(101.0, [], [read(7, 0, 100.0, 101.0, rows=42), read(8, 0, 102.0, rows=42)])
        assert query.status == "starting"
        query.apply_event({"event": "warming", "epoch": 8, "warming": False})
        query.apply(110.0, [], [read(8, 0, 102.0, 109.0, rows=42), read(9, 0, 109.1, rows=42)])
        assert query.status == "running"
        seam = query.snapshot(110.0)["seam"]
        assert (seam["boundaries"], seam["max_ms"]) == (1, pytest.approx(100))

    def test_a_backlog_that_takes_seconds_is_lagging(self) -> None:
        query = running_query()
        newest = [NewestOffset("run", "in", 0, 5000)]
        query.apply(100.0, newest=newest)
        query.apply(101.0, [], [read(0, 0, 100.5, offset=41, rows=42)], newest)
        assert query.status == "lagging"

    def test_a_lag_that_the_broker_has_not_confirmed_for_a_while_is_not_known(self) -> None:
        query = running_query()
        newest = [NewestOffset("run", "in", 0, 5000)]
        query.apply(100.0, newest=newest)
        query.apply(101.0, [], [read(0, 0, 100.5, offset=41, rows=42)], newest)
        query.apply(110.0)
        assert query.lag_rows is None

    def test_a_partition_that_is_never_read_is_lagging_after_a_while(self) -> None:
        query = running_query()
        newest = [NewestOffset("run", "in", 0, 5000)]
        query.apply(101.0, [], [read(0, 0, 100.5, offset=-1)], newest)
        assert query.status == "starting"
        query.apply(112.0, [], [read(0, 0, 100.5, offset=-1)], newest)
        assert query.status == "lagging"

    def test_a_partition_that_no_task_ever_got_to_is_lagging_after_a_while(self) -> None:
        query = running_query()
        partitions = [{"topic": "in", "partition": number, "from": 0} for number in (0, 1)]
        query.apply_event({"event": "reading", "partitions": partitions})
        newest = [NewestOffset("run", "in", 0, 0), NewestOffset("run", "in", 1, 5000)]
        for second in range(101, 115):
            query.apply(float(second), [], [read(0, 0, 100.5, offset=-1)], newest)
        assert query.status == "lagging"
        assert [part["lag_rows"] for part in query.snapshot(115.0)["partitions"]] == [0, 5000]

    def test_findings_are_not_made_from_a_start_or_a_backlog(self) -> None:
        query = running_query()
        newest = [NewestOffset("run", "in", 0, 5000)]
        rows = [series("end_to_end", [9_000_000])]
        query.apply(101.0, rows, [read(0, 0, 100.5, offset=10, rows=10)], newest)
        query.apply(102.0, rows, [read(0, 0, 100.5, offset=20, rows=10)], newest)
        assert query.status == "lagging"
        for second in range(103, 110):
            query.apply(
                float(second), [series("end_to_end", [1000])], [read(0, 0, 100.5, offset=4999, rows=10)], newest
            )
        assert query.status == "running"
        longest = {window: query.histogram("end_to_end", window).percentile_ms(100) for window in ("1m", "steady")}
        assert longest["1m"] == pytest.approx(9000, rel=0.01)
        assert longest["steady"] == pytest.approx(1, rel=0.01)

    def test_how_it_ended(self) -> None:
        query = running_query()
        query.end(120.0)
        assert query.status == "ended"
        query.apply_event({"event": "terminated", "error": "boom"})
        assert query.status == "failed"

    def test_partitions_and_the_whole(self) -> None:
        query = running_query()
        news = [series("end_to_end", [1000] * 90), series("end_to_end", [9000] * 10, partition=1)]
        query.apply(101.0, news, [read(0, 0, 100, rows=90), read(0, 1, 100, rows=10)], [])
        figures = query.snapshot(102.0)
        assert figures["windows"]["10s"]["end_to_end"]["count"] == 100
        assert figures["windows"]["10s"]["end_to_end"]["p50_ms"] == pytest.approx(1, rel=0.01)
        assert figures["windows"]["10s"]["end_to_end"]["p99_ms"] == pytest.approx(9, rel=0.01)
        by_partition = [part["windows"]["10s"]["end_to_end"]["p50_ms"] for part in figures["partitions"]]
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


class TestApplication:
    EMPTY: dict[str, Any] = {"series": [], "reads": [], "newest": [], "executors": [], "written": [], "events": []}  # noqa: RUF012

    def test_last_figures_that_come_after_the_end_are_counted(self) -> None:
        late = {"run": "r", "figure": "processing", "stage": 0, "topic": "in", "partition": 0, "counts": [10, 5]}
        plan = {"event": "planned", "run": "r", "epoch_ms": 5000, "stages": []}
        told = [
            self.EMPTY | {"events": [plan]},
            self.EMPTY | {"events": [{"event": "terminated", "run": "r"}]},
            self.EMPTY | {"series": [late], "written": [{"run": "r", "rows": 5}]},
        ]
        monitor = ApplicationMonitor(lambda: json.dumps(told.pop(0)), {})
        for _ in range(3):
            monitor.fetch()
        figures = monitor.query("r")
        assert figures is not None
        assert figures["windows"]["run"]["rows_out"] == 5
        assert figures["status"] == "ended"

    def test_figures_can_be_asked_for_when_the_session_is_gone(self) -> None:
        plan = {"event": "planned", "run": "r", "epoch_ms": 5000, "stages": []}
        told = [self.EMPTY | {"events": [plan]}]

        def take() -> str:
            if not told:
                raise SessionEndedError
            return json.dumps(told.pop())

        monitor = ApplicationMonitor(take, {"id": "a"})
        for _ in range(3):
            monitor.fetch()
        assert [query["status"] for query in monitor.snapshot()["queries"]] == ["ended"]

    def test_a_round_that_fails_does_not_end_it(self) -> None:
        plan = {"event": "planned", "run": "r", "epoch_ms": 5000, "stages": []}
        told = ["not JSON", json.dumps(self.EMPTY | {"events": [plan]})]
        monitor = ApplicationMonitor(lambda: told.pop(0), {})
        monitor.fetch()
        monitor.fetch()
        assert [query["run_id"] for query in monitor.snapshot()["queries"]] == ["r"]

    def test_the_first_to_start_is_not_the_first_to_be_forgotten(self) -> None:
        def events(*some: dict[str, Any]) -> str:
            return json.dumps(self.EMPTY | {"events": list(some)})

        def plan(run: str) -> dict[str, Any]:
            return {"event": "planned", "run": run, "epoch_ms": 5000, "stages": []}

        told = [events(plan("long"))]
        for number in range(2 * KEPT_ENDED_QUERIES):
            told.append(events(plan(f"short {number}"), {"event": "terminated", "run": f"short {number}"}))
            told.append(events({"event": "started", "run": f"batch {number}", "id": "i", "at": "2026-11-16T03:00:00Z"}))
            told.append(events({"event": "terminated", "run": f"batch {number}"}))
        told.append(events({"event": "terminated", "run": "long", "error": "boom"}))
        monitor = ApplicationMonitor(lambda: told.pop(0), {})
        while told:
            monitor.fetch()
        kept = {query["run_id"]: query["status"] for query in monitor.snapshot()["queries"]}
        assert kept["long"] == "failed"
        assert len(kept) == KEPT_ENDED_QUERIES

    def test_queries_that_are_not_real_time_are_left_out(self) -> None:
        started = {"event": "started", "run": "r", "id": "i", "at": "2026-11-16T03:00:00.000Z"}
        monitor = ApplicationMonitor(lambda: json.dumps(self.EMPTY | {"events": [started]}), {})
        monitor.fetch()
        assert monitor.snapshot()["queries"] == []
        assert monitor.query("r") is None
