"""The highest rate that a system sustains: p99 below a limit, and nothing lost."""

from __future__ import annotations

from collections.abc import Callable

from tailrace.bench.result import Run, Sustained
from tailrace.errors import TailraceError

FACTOR, REFINED = 2.0, 1.5
HIGHEST = 100_000


def climb(workload: str, system: str, first_rate: int, limit_ms: float, measure: Callable[[int], Run]) -> Sustained:
    """Double the rate until it is too high, then try halfway back once.

    :param measure: runs the system at a rate. A failure, such as a generator that cannot send so fast, ends the climb.
    """
    steps: list[tuple[float, float]] = []

    def holds(rate: int) -> bool:
        try:
            run = measure(rate)
        except TailraceError:
            return False
        steps.append((float(rate), run.latency.p99_ms))
        return run.lost == 0 and run.latency.p99_ms <= limit_ms

    best, rate = 0, first_rate
    while rate <= HIGHEST and holds(rate):
        best, rate = rate, int(rate * FACTOR)
    if best and holds(int(best * REFINED)):
        best = int(best * REFINED)
    return Sustained(workload, system, best, limit_ms, tuple(steps))
