"""The demo's options, and the table and the text that it prints."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from tailrace.contract.snapshot import BoundaryPause
from tailrace.demo.options import DemoOptions, DemoResult, Mode
from tailrace.demo.report import method, speed_up, table, to_dict
from tailrace.loadtest import LatencyReport

OPTIONS = DemoOptions(seconds=120, rate=200, modes=tuple(Mode))


def latencies(milliseconds: float) -> LatencyReport:
    """Every record took that long."""
    measured = [(second / 10, int(milliseconds * 1000)) for second in range(100)]
    return LatencyReport.from_latencies(measured, expected=100, duplicates=0, started_ns=0, seconds=10)


BOTH = DemoResult(OPTIONS, {Mode.MICRO_BATCH: latencies(500), Mode.REAL_TIME: latencies(5)}, Path("spark.log"))


def printed(result: DemoResult) -> str:
    console = Console(file=io.StringIO(), width=120)
    console.print(table(result))
    file = console.file
    assert isinstance(file, io.StringIO)
    return file.getvalue()


@pytest.mark.parametrize(("seconds", "epoch_s"), [(5, 5), (12, 6), (120, 60)])
def test_every_measurement_spans_two_epoch_boundaries(seconds: int, epoch_s: int) -> None:
    assert replace(OPTIONS, seconds=seconds).epoch_s == epoch_s


def test_micro_batch_needs_half_a_minute() -> None:
    assert OPTIONS.seconds_of(Mode.REAL_TIME) == 120
    assert OPTIONS.seconds_of(Mode.MICRO_BATCH) == 30
    assert replace(OPTIONS, seconds=12).seconds_of(Mode.MICRO_BATCH) == 12


def test_the_improvement_is_a_ratio_for_each_percentile() -> None:
    ratios = speed_up(BOTH)
    assert set(ratios) == {"p50_ms", "p90_ms", "p99_ms", "p999_ms", "max_ms"}
    assert all(99 < ratio < 101 for ratio in ratios.values())
    [row] = [line for line in printed(BOTH).splitlines() if "improvement" in line]
    assert row.count("100×") == 5


def test_one_mode_has_nothing_to_compare_with() -> None:
    one = replace(BOTH, reports={Mode.REAL_TIME: latencies(5)})
    assert speed_up(one) == {}
    assert "improvement" not in printed(one)


def test_too_few_boundaries_are_admitted() -> None:
    assert "fewer than two" in method(BOTH)
    report = BOTH.reports[Mode.REAL_TIME].with_epoch_ends([3.0, 6.0])
    spanning = replace(BOTH, reports={**BOTH.reports, Mode.REAL_TIME: report})
    assert "spans 2 epoch boundaries" in method(spanning)
    assert "fewer than two" not in method(spanning)


def test_cold_and_warm_pauses_are_apart() -> None:
    pause = BoundaryPause(
        boundaries=2, median_ms=40.0, max_ms=60.0, last_ms=40.0, parts_ms=None, overlapped=0, reason=None
    )
    text = method(replace(BOTH, pause=pause, cold_pauses_ms=(1234.0, 99.0)))
    assert "1,234 ms at the very first of a cold JVM" in text
    assert "40 ms" in text
    assert "The epochs overlapped" in method(replace(BOTH, pause=replace(pause, overlapped=2)))


def test_the_json_has_what_is_printed() -> None:
    found = to_dict(BOTH, Path("latency.png"))
    assert found["method"] == method(BOTH)
    assert set(found["reports"]) == {"micro-batch", "real-time"}
    assert found["plot"] == "latency.png"
