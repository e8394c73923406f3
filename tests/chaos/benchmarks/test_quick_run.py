"""A short run of the benchmark of stateful operators."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.helpers.tree import ROOT


@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    ("part", "tables"),
    [
        ("latency", ["| 100 | stream-stream join |", "≤ 2.0"]),
        ("throughput", ["micro-batch |", "≥ 10,000"]),
        ("keys", ["Growth from"]),
        ("timers", ["the processor is called"]),
    ],
)
def test_a_quick_run_prints_its_tables(part: str, tables: list[str]) -> None:
    command = [sys.executable, "-m", "benchmarks.stateful", "--quick", "--only", part]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=880)
    assert run.returncode == 0, run.stderr
    for shown in (*tables, "Method: ", "Machine: "):
        assert shown in run.stdout
    assert f"{part} 2/" in run.stderr
    assert "FAIL" not in run.stderr, "clients that outlive their broker complain"
