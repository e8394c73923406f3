"""The figures that the rules look at, and when they are worth a finding."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tailrace.contract.findings import Severity
from tailrace.contract.snapshot import Distribution, ExecutorFigures, QueryFigures, QueryStatus, QueryWindow
from tailrace.monitor.rolling import STEADY

WINDOW = STEADY

# Anything shorter does not matter.
NOTABLE_MS = 10.0
# A wait that a person would call a stall.
STALL_MS = 100.0
# A part is the cause when it makes up at least this share of the whole.
MAIN_PART = 0.5


@dataclass(frozen=True)
class Evidence:
    query: QueryFigures
    executors: Sequence[ExecutorFigures]
    now: float

    @property
    def window(self) -> QueryWindow:
        return self.query.windows[WINDOW]

    def get(self, figure: str, percentile: str) -> float:
        return value(self.window.figure(figure), percentile)

    @property
    def seconds(self) -> float:
        return self.window.seconds

    @property
    def is_lagging(self) -> bool:
        return self.query.status is QueryStatus.LAGGING

    @property
    def pauses_ms(self) -> list[float]:
        """At the epoch boundaries within the window."""
        return [one.pause_ms for one in self.query.boundaries if one.at >= self.now - self.seconds]

    @property
    def longest_pause_ms(self) -> float:
        """For how long something of ours kept the query from reading; records that wait meanwhile are not late."""
        own = [self.get(figure, "max_ms") for figure in ("processing", "python", "sink")]
        jvms = [max(executor.gc_max_ms, executor.hiccup_max_ms or 0.0) for executor in self.executors]
        return max(*own, *jvms, *self.pauses_ms, 0.0)


def value(distribution: Distribution | None, percentile: str) -> float:
    return float(getattr(distribution, percentile)) if distribution else 0.0


def warning_if(grave: bool) -> Severity:
    return Severity.WARNING if grave else Severity.NOTE
