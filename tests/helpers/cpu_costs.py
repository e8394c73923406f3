"""`make test ARGS=--cpu-costs` ends with the CPU time of each test, its processes included.

The cores limit the suite, so this says what to leave to `make thorough`. The first test of a process pays for its JVM
and its broker.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Generator
from typing import Any

import psutil
import pytest

MOST = 40
PROPERTY = "cpu_s"
_begun = pytest.StashKey[float]()


def cpu_s() -> float:
    """Of this process, and of all that descend from it, also of those that have ended."""
    me = psutil.Process()
    total = sum(os.times()[:4])
    for process in me.children(recursive=True):
        try:
            total += sum(process.cpu_times()[:4])
        except psutil.Error:
            continue  # it has just ended
    return total


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    item.stash[_begun] = cpu_s()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if call.when == "teardown" and _begun in item.stash:
        report.user_properties.append((PROPERTY, cpu_s() - item.stash[_begun]))
    return report


def pytest_terminal_summary(terminalreporter: Any) -> None:
    tests = {
        report.nodeid: max(0.0, float(value))  # less than before if a process with children of its own has ended
        for reports in terminalreporter.stats.values()
        for report in reports
        for name, value in getattr(report, "user_properties", ())
        if name == PROPERTY
    }
    files: dict[str, float] = defaultdict(float)
    for test, seconds in tests.items():
        files[test.split("::")[0]] += seconds
    terminalreporter.section(f"CPU seconds: {sum(files.values()):.0f}")
    for costs in (files, tests):
        for name, seconds in sorted(costs.items(), key=lambda cost: -cost[1])[:MOST]:
            terminalreporter.line(f"{seconds:7.1f} {name}")
        terminalreporter.line("")
