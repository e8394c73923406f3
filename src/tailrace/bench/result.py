"""What a benchmark measured: dataclasses that are also the JSON file."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from tailrace.bench.schedule import Cell
from tailrace.bench.usage import Disturbance
from tailrace.loadtest.report import LatencyReport

FORMAT = 1


@dataclass(frozen=True)
class Latencies:
    """Percentiles in milliseconds."""

    p50_ms: float
    p90_ms: float
    p99_ms: float
    p999_ms: float
    max_ms: float

    @classmethod
    def of(cls, report: LatencyReport) -> Latencies:
        return cls(**{name: round(value, 3) for name, value in report.percentiles().items()})


@dataclass(frozen=True)
class Second:
    """The records that were due in one second of the window."""

    at_s: int
    p50_ms: float
    p99_ms: float


@dataclass(frozen=True)
class Recovery:
    """After SIGKILL of the whole system and a restart from its checkpoint."""

    workload: str
    system: str
    rate: int
    first_row_s: float
    """From the kill to the first record that had not been answered before."""
    caught_up_s: float
    """From the kill until records are answered within a second again."""
    repeated: int
    lost: int


@dataclass(frozen=True)
class Run:
    """One run of one cell."""

    workload: str
    system: str
    rate: int
    round: int
    seconds: float
    latency: Latencies
    """From the intended send time to the independent consumer."""
    broker_latency: Latencies
    """From the producer's timestamp to the time at which the broker appended the answer; whole milliseconds."""
    expected: int
    lost: int
    duplicates: int
    timer_rows: int
    cpu_s_per_million: float
    memory_mb: float
    ready_s: float
    disturbance: Disturbance
    curve: tuple[tuple[float, ...], ...] = ()
    """(percentile, latency in ms)."""
    timeline: tuple[Second, ...] = ()
    checkpoints_s: tuple[float, ...] = ()

    @property
    def cell(self) -> Cell:
        return Cell(self.workload, self.system, self.rate)


@dataclass(frozen=True)
class Missing:
    """A cell without figures, and why: it cannot be run, or it failed."""

    workload: str
    system: str
    rate: int
    reason: str
    failed: bool
    round: int | None = None
    log: str | None = None

    @property
    def cell(self) -> Cell:
        return Cell(self.workload, self.system, self.rate)


@dataclass(frozen=True)
class Sustained:
    """The highest rate of a ramp at which p99 stayed below the limit."""

    workload: str
    system: str
    rate: int
    limit_ms: float
    steps: tuple[tuple[float, ...], ...]
    """(rate, p99 in ms) of each step."""


@dataclass(frozen=True)
class BenchResult:
    tailrace: str
    machine: str
    command: str
    began: str
    took_s: float
    seconds: float
    warm_up_s: float
    checkpoint_s: int
    rounds: int
    partitions: int
    record_bytes: int | None
    workloads: tuple[str, ...]
    systems: tuple[str, ...]
    rates: tuple[int, ...]
    versions: Mapping[str, str]
    runs: tuple[Run, ...] = ()
    missing: tuple[Missing, ...] = ()
    sustained: tuple[Sustained, ...] = ()
    recoveries: tuple[Recovery, ...] = ()
    format: int = FORMAT

    def runs_of(self, cell: Cell) -> list[Run]:
        return [run for run in self.runs if run.cell == cell]

    def missing_of(self, cell: Cell) -> Missing | None:
        return next((one for one in self.missing if one.cell == cell), None)

    @property
    def failures(self) -> list[Missing]:
        return [one for one in self.missing if one.failed]

    def cells(self, workload: str, rate: int) -> list[Cell]:
        return [Cell(workload, system, rate) for system in self.systems]


@dataclass(frozen=True)
class Spread:
    """A figure over the rounds."""

    median: float
    least: float
    most: float

    @classmethod
    def over(cls, runs: Iterable[Run], figure: Callable[[Run], float]) -> Spread:
        values = [figure(run) for run in runs]
        return cls(statistics.median(values), min(values), max(values))


def typical(runs: list[Run]) -> Run:
    """The run with the median p99."""
    return sorted(runs, key=lambda run: run.latency.p99_ms)[(len(runs) - 1) // 2]
