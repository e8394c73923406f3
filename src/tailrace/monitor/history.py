"""The last ten minutes of a run, second by second."""

from __future__ import annotations

from collections import deque
from functools import cached_property

from tailrace.contract.snapshot import Distribution, Heatmap, History
from tailrace.monitor.histogram import Histogram

HISTORY_S = 600
HEATMAP_BOUNDS_MS = tuple(0.5 * 2 ** (step / 2) for step in range(35))


class Second:
    """What was recorded within a second. Results are cached, because pages ask for every second once a second."""

    def __init__(self, at: float) -> None:
        self.at = at
        self.end_to_end = Histogram()
        self.rows_in = 0
        self.rows_out = 0
        self.lag_rows: int | None = None

    @cached_property
    def distribution(self) -> Distribution | None:
        return self.end_to_end.distribution()

    @cached_property
    def heat(self) -> tuple[int, ...]:
        return tuple(self.end_to_end.counts_below(HEATMAP_BOUNDS_MS))


class Seconds:
    def __init__(self) -> None:
        self._seconds: deque[Second] = deque(maxlen=HISTORY_S)

    def add(self, second: Second) -> None:
        self._seconds.append(second)

    def history(self) -> History:
        found = [second.distribution for second in self._seconds]
        return History(
            at=tuple(second.at for second in self._seconds),
            p50_ms=tuple(one.p50_ms if one else None for one in found),
            p99_ms=tuple(one.p99_ms if one else None for one in found),
            p999_ms=tuple(one.p999_ms if one else None for one in found),
            max_ms=tuple(one.max_ms if one else None for one in found),
            rows_in=tuple(second.rows_in for second in self._seconds),
            rows_out=tuple(second.rows_out for second in self._seconds),
            lag_rows=tuple(second.lag_rows for second in self._seconds),
            heatmap=Heatmap(HEATMAP_BOUNDS_MS, tuple(second.heat for second in self._seconds)),
        )
