"""The options of a benchmark."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from tailrace.bench.systems import SYSTEMS
from tailrace.bench.workloads import WORKLOADS
from tailrace.errors import TailraceError

JOBS = Path(__file__).parent / "jobs"
WARM_UP_S, QUICK_WARM_UP_S = 60.0, 8.0
SECONDS, QUICK_SECONDS = 60.0, 20.0
# Spark's Real-Time Mode allows no shorter epoch.
SHORTEST_CHECKPOINT_S = 5


@dataclass(frozen=True)
class BenchOptions:
    workloads: tuple[str, ...]
    systems: tuple[str, ...]
    rates: tuple[int, ...] = (200,)
    record_bytes: int | None = None
    partitions: int = 2
    seconds: float = 60.0
    warm_up_s: float = WARM_UP_S
    checkpoint_s: int = 10
    rounds: int = 1
    ready_within_s: float = 300.0
    patience_s: float = 15.0
    ramp_limit_ms: float | None = None
    """Find the highest rate at which p99 stays below so many milliseconds."""
    recovery: bool = False
    """Kill each system once, and measure how it comes back."""
    jobs: Path = JOBS
    """The folder of the jobs; another one to measure a change of them."""

    def __post_init__(self) -> None:
        _require_known("--workload", self.workloads, WORKLOADS)
        _require_known("--system", self.systems, SYSTEMS)


def _require_known(option: str, names: tuple[str, ...], known: Collection[str]) -> None:
    unknown = [name for name in names if name not in known]
    if unknown or not names:
        raise TailraceError(
            "TAILRACE_BAD_ARGUMENT",
            f"{option} {', '.join(unknown)} is unknown." if unknown else f"{option} is empty.",
            f"choose from {', '.join(known)}.",
        )


def parse_duration(option: str, text: str) -> int:
    """`10s`, `1m` or a plain number of seconds."""
    found = re.fullmatch(r"\s*(\d+)\s*(s|m|)\s*", text)
    seconds = int(found[1]) * (60 if found[2] == "m" else 1) if found else 0
    if not SHORTEST_CHECKPOINT_S <= seconds <= 3600:
        raise TailraceError(
            "TAILRACE_BAD_ARGUMENT",
            f"{option} {text!r} is not a duration from {SHORTEST_CHECKPOINT_S} seconds to an hour.",
            "write it like 10s or 1m.",
        )
    return seconds
