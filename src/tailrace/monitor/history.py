"""The last ten minutes of a run, second by second."""

from __future__ import annotations

from collections import deque
from functools import cached_property
from typing import Any

from tailrace.monitor.histogram import Histogram

HISTORY_S = 600
HEATMAP_BOUNDS_MS = [0.5 * 2 ** (step / 2) for step in range(35)]
CURVES = ("p50_ms", "p99_ms", "p999_ms", "max_ms")


class Second:
    """What came within a second; what is worked out of it is kept, because pages ask for all of them every second."""

    def __init__(self, at: float) -> None:
        self.at = at
        self.end_to_end = Histogram()
        self.rows_in = 0
        self.rows_out = 0
        self.lag_rows: int | None = None

    @cached_property
    def summary(self) -> dict[str, Any]:
        return self.end_to_end.summary() or {}

    @cached_property
    def heat(self) -> list[int]:
        return self.end_to_end.counts_below(HEATMAP_BOUNDS_MS)


class History:
    def __init__(self) -> None:
        self._seconds: deque[Second] = deque(maxlen=HISTORY_S)

    def add(self, second: Second) -> None:
        self._seconds.append(second)

    def to_dict(self) -> dict[str, Any]:
        return {
            "at": [second.at for second in self._seconds],
            **{key: [second.summary.get(key) for second in self._seconds] for key in CURVES},
            "rows_in": [second.rows_in for second in self._seconds],
            "rows_out": [second.rows_out for second in self._seconds],
            "lag_rows": [second.lag_rows for second in self._seconds],
            "heatmap": {"bounds_ms": HEATMAP_BOUNDS_MS, "counts": [second.heat for second in self._seconds]},
        }
