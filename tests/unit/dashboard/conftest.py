"""A dashboard over made-up figures."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tailrace.dashboard import Dashboard, serve
from tests.helpers.synthetic_monitor import SyntheticMonitor, make_query


@pytest.fixture(scope="module")
def served() -> Iterator[tuple[SyntheticMonitor, Dashboard]]:
    """One server for all tests that are not about its life."""
    monitor = SyntheticMonitor()
    with serve(monitor) as dashboard:
        yield monitor, dashboard


@pytest.fixture
def monitor(served: tuple[SyntheticMonitor, Dashboard]) -> SyntheticMonitor:
    monitor, _ = served
    monitor.queries = [make_query("fraud")]
    monitor.failure = None
    return monitor


@pytest.fixture
def dashboard(served: tuple[SyntheticMonitor, Dashboard], monitor: SyntheticMonitor) -> Dashboard:
    return served[1]
