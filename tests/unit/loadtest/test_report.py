"""The report of a load test, from latencies made up for it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tailrace.loadtest import LatencyReport, plot_latency


class TestReport:
    @pytest.fixture
    def report(self) -> LatencyReport:
        # 1 ms to 1 s, in steps of 1 ms, spread over ten seconds; four more never came.
        latencies = [(number % 10, number * 1000) for number in range(1, 1001)]
        return LatencyReport.from_latencies(latencies, expected=1004, duplicates=3, started_ns=0, seconds=10)

    def test_percentiles(self, report: LatencyReport) -> None:
        expected = {"p50_ms": 500, "p90_ms": 900, "p99_ms": 990, "p999_ms": 999, "max_ms": 1000}
        assert report.percentiles() == pytest.approx(expected, rel=0.002)
        assert (report.lost, report.duplicates, report.rate) == (4, 3, 100)

    def test_forms(self, report: LatencyReport) -> None:
        assert "p99.9" in report.text()
        assert "4 lost, 3 duplicates" in str(report)
        assert json.loads(report.to_json()) == report.to_dict()
        assert report.to_dict()["p99_ms"] == pytest.approx(990, rel=0.002)
        assert [point["records"] for point in report.to_dict()["timeline"]] == [100] * 10

    def test_plot(self, report: LatencyReport, tmp_path: Path) -> None:
        path = plot_latency({"one": report, "two": report}, tmp_path / "plot.png", title="title")
        assert path.read_bytes().startswith(b"\x89PNG")

    def test_a_pause_at_the_end_of_an_epoch_is_the_longest_silence_around_it(self) -> None:
        """Records are due every 10 ms and take 1 ms, but those due within the pause wait for its end."""
        pauses = {3.0: 0.25, 6.0: 0.12, 8.0: 0.3}
        latencies = []
        for number in range(1000):
            due = number / 100
            waits = next((start + length - due for start, length in pauses.items() if start <= due < start + length), 0)
            latencies.append((due, int((waits + 0.001) * 1e6)))
        report = LatencyReport.from_latencies(latencies, expected=1000, duplicates=0, started_ns=10**9, seconds=10)
        # By Spark's account two epochs ended there, one where nothing was to be seen, and one at the window's edge.
        measured = report.with_epoch_ends([4.1, 5.0 + 1, 7.05, 10.9])
        assert measured.epoch_boundaries_s == pytest.approx((3.1, 5.0, 6.05))
        assert measured.pauses_ms == pytest.approx((260, 0, 130), abs=1)
        assert measured.to_dict()["pauses_ms"] == [round(pause, 1) for pause in measured.pauses_ms]
        assert report.pauses_ms == ()
        assert [round(silence.at_s, 2) for silence in report.silences] == [2.99, 5.99, 7.99]

    def test_nothing_received(self, tmp_path: Path) -> None:
        report = LatencyReport.from_latencies([], expected=5, duplicates=0, started_ns=0, seconds=1)
        assert (report.received, report.lost, report.max_ms) == (0, 5, 0)
        plot_latency({"nothing": report}, tmp_path / "plot.svg", title="title")
