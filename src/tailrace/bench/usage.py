"""What a system used, and what else ran on the machine meanwhile."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterable
from dataclasses import dataclass

import psutil

from tailrace._process.process_table import members_of_session

# Of the whole machine. On a quiet one, both are far below.
MOST_STEAL, MOST_FOREIGN = 0.02, 0.05


@dataclass(frozen=True)
class Disturbance:
    """Processor time that went elsewhere during a run, in per cent of the machine."""

    steal_pct: float
    """Taken by the hypervisor for other machines."""
    foreign_pct: float
    """Used by processes that do not belong to the benchmark."""

    @property
    def is_disturbed(self) -> bool:
        return self.steal_pct > 100 * MOST_STEAL or self.foreign_pct > 100 * MOST_FOREIGN

    def text(self) -> str:
        return f"{self.steal_pct:.1f} % stolen, {self.foreign_pct:.1f} % foreign"


@dataclass(frozen=True)
class MachineClock:
    """The machine's processor time until now, in seconds."""

    at_s: float
    busy_s: float
    steal_s: float
    ours_s: float

    @classmethod
    def now(cls) -> MachineClock:
        times = psutil.cpu_times()
        # Guests are in `user` already.
        busy = times.user + times.nice + times.system + getattr(times, "irq", 0) + getattr(times, "softirq", 0)
        return cls(time.monotonic(), busy, getattr(times, "steal", 0.0), cpu_s(_family()))

    def until(self, end: MachineClock) -> Disturbance:
        capacity = max(1e-9, (end.at_s - self.at_s) * (os.cpu_count() or 1))
        foreign = (end.busy_s - self.busy_s) - (end.ours_s - self.ours_s)
        return Disturbance(
            steal_pct=max(0.0, 100 * (end.steal_s - self.steal_s) / capacity),
            foreign_pct=max(0.0, 100 * foreign / capacity),
        )


def _family() -> list[psutil.Process]:
    """This process and everything below it: broker, load and jobs."""
    this = psutil.Process()
    return [this, *this.children(recursive=True)]


def session_processes(session: int) -> list[psutil.Process]:
    found = []
    for process in members_of_session(session):
        with contextlib.suppress(psutil.NoSuchProcess):
            found.append(psutil.Process(process.pid))
    return found


def cpu_s(processes: Iterable[psutil.Process]) -> float:
    """Their processor time, with that of their children that have ended."""
    total = 0.0
    for process in processes:
        with contextlib.suppress(psutil.Error):
            times = process.cpu_times()
            total += times.user + times.system + times.children_user + times.children_system
    return total


def memory_mb(processes: Iterable[psutil.Process]) -> float:
    """Their memory. Pages that several processes share are counted once, as Linux can tell (PSS)."""
    total = 0
    for process in processes:
        with contextlib.suppress(psutil.Error):
            found = process.memory_full_info()
            total += getattr(found, "pss", found.rss)
    return total / 2**20
