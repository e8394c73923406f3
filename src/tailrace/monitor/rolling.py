"""Figures over the last seconds, the last minute and the whole run."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping

from tailrace.monitor.histogram import Histogram

WINDOWS_S = {"10s": 10.0, "1m": 60.0}
RUN = "run"
WINDOWS = (*WINDOWS_S, RUN)
# At most a minute in which the query neither started nor caught up; findings are based on it.
STEADY = "steady"


class _Recent:
    """What was added within the last seconds."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._parts: deque[tuple[float, Mapping[int, int]]] = deque()
        self.total = Histogram()

    def add(self, now: float, counts: Mapping[int, int]) -> None:
        self._parts.append((now, counts))
        self.total.add(counts)

    def clear(self) -> None:
        self._parts.clear()
        self.total = Histogram()

    def forget_before(self, now: float) -> None:
        while self._parts and self._parts[0][0] <= now - self._seconds:
            self.total.subtract(self._parts.popleft()[1])


class RollingHistogram:
    """Durations of one kind."""

    def __init__(self) -> None:
        self._run = Histogram()
        self._recent = {name: _Recent(seconds) for name, seconds in {**WINDOWS_S, STEADY: 60.0}.items()}

    def add(self, now: float, counts: Mapping[int, int]) -> None:
        self._run.add(counts)
        for recent in self._recent.values():
            recent.add(now, counts)

    def advance(self, now: float, *, steady: bool = True) -> None:
        for recent in self._recent.values():
            recent.forget_before(now)
        if not steady:
            self._recent[STEADY].clear()

    def over(self, window: str) -> Histogram:
        return self._run if window == RUN else self._recent[window].total


class RollingCount:
    """A count of events."""

    # Stored as durations that all fall into one bucket.
    _BUCKET = 0

    def __init__(self) -> None:
        self._counts = RollingHistogram()

    def add(self, now: float, count: int) -> None:
        if count:
            self._counts.add(now, {self._BUCKET: count})

    def advance(self, now: float, *, steady: bool = True) -> None:
        self._counts.advance(now, steady=steady)

    def over(self, window: str) -> int:
        return self._counts.over(window).count
