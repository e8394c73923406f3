"""How the JVMs fare that run the tasks."""

from __future__ import annotations

from collections import deque
from typing import Any

from tailrace.monitor.news import ExecutorNews
from tailrace.monitor.rolling import WINDOWS_S, RollingHistogram

# Executors that have not reported for so long are gone.
GONE_S = 30.0


class ExecutorFigures:
    def __init__(self, id: str) -> None:
        self.id = id
        self._last: ExecutorNews | None = None
        self._heard_at = 0.0
        self._pauses: deque[tuple[float, float]] = deque()
        self._hiccups = RollingHistogram()

    def apply(self, now: float, news: ExecutorNews) -> None:
        self._last = news
        self._heard_at = now
        self._pauses.extend((now, pause / 1000) for pause in news.gc_pauses_us)
        self._hiccups.add(now, news.hiccups)

    def advance(self, now: float) -> None:
        self._hiccups.advance(now)
        while self._pauses and self._pauses[0][0] <= now - max(WINDOWS_S.values()):
            self._pauses.popleft()

    def is_gone(self, now: float) -> bool:
        return now - self._heard_at > GONE_S

    def snapshot(self, now: float, window: str = "10s") -> dict[str, Any]:
        pauses = [pause for at, pause in self._pauses if at > now - WINDOWS_S[window]]
        hiccups = self._hiccups.over(window)
        last = self._last
        return {
            "id": self.id,
            "cpu_load": _known(last.cpu_load) if last else None,
            "process_cpu_load": _known(last.process_cpu_load) if last else None,
            "heap_used_bytes": last.heap_used_bytes if last else None,
            "heap_max_bytes": last.heap_max_bytes if last else None,
            "gc_pauses": len(pauses),
            "gc_total_ms": sum(pauses),
            "gc_max_ms": max(pauses, default=0.0),
            "hiccup_p99_ms": hiccups.percentile_ms(99.0),
            "hiccup_max_ms": hiccups.percentile_ms(100.0),
        }


def _known(load: float) -> float | None:
    """The JVM says -1 when it does not know."""
    return load if load >= 0 else None
