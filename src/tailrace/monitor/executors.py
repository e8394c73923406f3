"""The health of the JVMs that run the tasks."""

from __future__ import annotations

from collections import deque

from tailrace.contract.live_figures import ExecutorHealth
from tailrace.contract.snapshot import ExecutorFigures
from tailrace.monitor.rolling import WINDOWS_S, RollingHistogram

# An executor that has not reported for this long is gone.
GONE_S = 30.0


class ExecutorMonitor:
    def __init__(self, id: str) -> None:
        self.id = id
        self._last: ExecutorHealth | None = None
        self._heard_at = 0.0
        self._pauses: deque[tuple[float, float]] = deque()
        self._hiccups = RollingHistogram()

    def apply(self, now: float, health: ExecutorHealth) -> None:
        self._last = health
        self._heard_at = now
        self._pauses.extend((now, pause / 1000) for pause in health.gc_pauses_us)
        self._hiccups.add(now, health.hiccups)

    def advance(self, now: float) -> None:
        self._hiccups.advance(now)
        while self._pauses and self._pauses[0][0] <= now - max(WINDOWS_S.values()):
            self._pauses.popleft()

    def is_gone(self, now: float) -> bool:
        return now - self._heard_at > GONE_S

    def figures(self, now: float, window: str = "10s") -> ExecutorFigures:
        pauses = [pause for at, pause in self._pauses if at > now - WINDOWS_S[window]]
        hiccups = self._hiccups.over(window)
        last = self._last
        return ExecutorFigures(
            id=self.id,
            cpu_load=_known(last.cpu_load) if last else None,
            process_cpu_load=_known(last.process_cpu_load) if last else None,
            heap_used_bytes=last.heap_used_bytes if last else None,
            heap_max_bytes=last.heap_max_bytes if last else None,
            gc_pauses=len(pauses),
            gc_total_ms=sum(pauses),
            gc_max_ms=max(pauses, default=0.0),
            hiccup_p99_ms=hiccups.percentile_ms(99.0),
            hiccup_max_ms=hiccups.percentile_ms(100.0),
        )


def _known(load: float) -> float | None:
    """The JVM reports -1 for an unknown value."""
    return load if load >= 0 else None
