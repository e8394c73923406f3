"""What a kill costs: the whole system is killed with SIGKILL under load, and started again from its checkpoint."""

from __future__ import annotations

import time

from tailrace.bench.measure import Bed, Started, Watch, started, warm_up
from tailrace.bench.result import Recovery
from tailrace.bench.schedule import Cell
from tailrace.errors import TailraceError
from tailrace.loadtest import LatencyReport

KILL_AFTER_S = 3.0
WINDOW_S = 60.0
PATIENCE_S = 60.0
# After a commit, there is something to go on from.
SETTLED_S = 3.0
LATE_MS = 1000


def recover(cell: Cell, bed: Bed, watch: Watch) -> Recovery:
    with started(cell, 0, bed, watch) as system:
        watch("waiting for a checkpoint", None)
        warm_up(system, bed.options.checkpoint_s + SETTLED_S)
        watch("killed, recovering", None)
        killer = _Killer(system)
        report = system.load.measure(seconds=WINDOW_S, patience_s=PATIENCE_S, check=killer.check)
    assert killer.killed_at is not None
    return recovery_of(cell, report, killer.killed_at - report.started_ns / 1e9)


def recovery_of(cell: Cell, report: LatencyReport, killed_s: float) -> Recovery:
    """:param killed_s: when it was killed, in seconds after the start of the window."""
    # Only first answers count as output here, so the silence ends with the first new one.
    outages = [one for one in report.silences if one.at_s + one.ms / 1000 > killed_s]
    if not outages:
        raise TailraceError("TAILRACE_BENCH_JOB_FAILED", "no new record was answered after the kill.", "read its log.")
    outage = max(outages, key=lambda one: one.ms)
    late = [point for point in report.timeline if point.at_s >= killed_s - 1 and point.p99_ms > LATE_MS]
    caught_up = max((point.at_s + 1 - killed_s for point in late), default=0.0)
    first_row_s = outage.at_s + outage.ms / 1000 - killed_s
    return Recovery(
        workload=cell.workload,
        system=cell.system,
        rate=cell.rate,
        first_row_s=round(first_row_s, 2),
        caught_up_s=round(max(caught_up, first_row_s), 2),
        repeated=report.duplicates,
        lost=report.lost,
    )


class _Killer:
    """Kills the system once, a while after the window began, and starts it again at once."""

    def __init__(self, system: Started) -> None:
        self._system = system
        self._at = time.monotonic() + KILL_AFTER_S
        self.killed_at: float | None = None

    def check(self) -> None:
        self._system.check()
        if self.killed_at is None and time.monotonic() >= self._at:
            self.killed_at = time.time()
            self._system.restart()
