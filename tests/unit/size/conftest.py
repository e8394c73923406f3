"""Estimates that do not change with the benchmarks."""

from __future__ import annotations

import pytest

from tailrace.check import boundary_estimate
from tests.unit.size.figures import STATEFUL_MS, STATELESS_MS


@pytest.fixture(autouse=True)
def fixed_estimates(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(boundary_estimate, "STATELESS_PAUSE_MS", STATELESS_MS)
    monkeypatch.setattr(boundary_estimate, "STATEFUL_PAUSE_MS", STATEFUL_MS)
