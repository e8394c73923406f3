"""Regressions that are planted into a job are found in real runs, and none is found between equal ones."""

from __future__ import annotations

import shutil
import statistics
from pathlib import Path

import pytest

from tailrace import EmbeddedKafka
from tailrace._process.console import console
from tailrace.bench.compare import Change, compare
from tailrace.bench.options import JOBS, BenchOptions
from tailrace.bench.result import BenchResult
from tailrace.bench.run import run_bench
from tailrace.bench.view import BenchView
from tests.helpers.waiting import stretched

pytestmark = pytest.mark.bench

SLEEP = "import time as _time\n_score = score\ndef score(*a):\n    _time.sleep(0.005)\n    return _score(*a)\n"
BURN = (
    "import time as _time\n_score = score\ndef score(*a):\n    end = _time.thread_time() + {seconds}\n"
    "    while _time.thread_time() < end: pass\n    return _score(*a)\n"
)


def measured(kafka: EmbeddedKafka, folder: Path, planted: str = "") -> BenchResult:
    folder.mkdir()
    shutil.copytree(JOBS, folder / "jobs")
    with (folder / "jobs" / "score.py").open("a", encoding="utf-8") as file:
        file.write(f"\n\n{planted}")
    options = BenchOptions(
        ("python-per-record",),
        ("loop",),
        seconds=15,
        warm_up_s=5,
        rounds=3,
        patience_s=stretched(15),
        jobs=folder / "jobs",
    )
    result = run_bench(
        options, BenchView(console), logs=folder / "logs", command="test", bootstrap_servers=kafka.bootstrap_servers
    )
    assert result.failures == []
    if all(run.disturbance.is_disturbed for run in result.runs):
        pytest.skip("the machine was disturbed in every round, so nothing can be decided")
    return result


@pytest.mark.timeout(1800)
def test_a_sleep_and_a_burn_are_found_and_nothing_else(kafka: EmbeddedKafka, tmp_path: Path) -> None:
    before = measured(kafka, tmp_path / "before")
    again = measured(kafka, tmp_path / "again")
    assert compare(before, again).of(Change.SLOWER) == []
    slept = compare(before, measured(kafka, tmp_path / "slept", SLEEP)).of(Change.SLOWER)
    assert "p50 ms" in {one.figure for one in slept}
    usual_s = statistics.median(run.cpu_s_per_million for run in before.runs) / 1e6
    burned = compare(before, measured(kafka, tmp_path / "burned", BURN.format(seconds=0.2 * usual_s))).of(Change.SLOWER)
    assert "CPU s per million" in {one.figure for one in burned}
