"""What the monitor says of an application, for every view: `tailrace.latency`, the page, `top`, metrics, `run`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from tailrace.contract.findings import Finding


class QueryStatus(StrEnum):
    """What a query is doing."""

    STARTING = "starting"
    RUNNING = "running"
    LAGGING = "lagging"
    ENDED = "ended"
    FAILED = "failed"


ACTIVE = (QueryStatus.STARTING, QueryStatus.RUNNING, QueryStatus.LAGGING)


@dataclass(frozen=True)
class Distribution:
    """Durations of one kind. Where nothing was recorded there is None instead."""

    count: int
    mean_ms: float
    p50_ms: float
    p90_ms: float
    p99_ms: float
    p999_ms: float
    max_ms: float


@dataclass(frozen=True)
class QueryWindow:
    """A query's traffic and latency over one window."""

    seconds: float
    rows_in: int
    rows_out: int
    rows_in_per_s: float
    rows_out_per_s: float
    source_queue: Distribution | None
    """From a record's timestamp until it is read."""
    processing: Distribution | None
    """From there until the row is handed to the sink."""
    end_to_end: Distribution | None
    """From a record's timestamp until the sink has acknowledged the row."""
    sink: Distribution | None
    acknowledgement: Distribution | None
    python: Distribution | None
    shuffle: Distribution | None

    def figure(self, name: str) -> Distribution | None:
        """One of `FIGURES`, by its name."""
        found: Distribution | None = getattr(self, name)
        return found


FIGURES = ("source_queue", "processing", "end_to_end", "sink", "acknowledgement", "python", "shuffle")


@dataclass(frozen=True)
class PartitionWindow:
    rows_in_per_s: float
    source_queue: Distribution | None
    processing: Distribution | None
    end_to_end: Distribution | None


@dataclass(frozen=True)
class PartitionFigures:
    """A partition of the source."""

    topic: str
    partition: int
    offset: int | None
    """Of the last row that was read; None before the first."""
    latest_offset: int | None
    lag_rows: int | None
    windows: Mapping[str, PartitionWindow]

    @property
    def name(self) -> str:
        return f"{self.topic}/{self.partition}"


@dataclass(frozen=True)
class StageWindow:
    """A stage or one of its tasks; `time` is a row's way through it."""

    rows_per_s: float
    time: Distribution | None
    shuffle: Distribution | None
    python: Distribution | None


@dataclass(frozen=True)
class TaskFigures:
    partition: int
    windows: Mapping[str, StageWindow]


@dataclass(frozen=True)
class StageFigures:
    stage: int
    inputs: tuple[int, ...]
    """The stages whose rows it gets through a shuffle."""
    sources: tuple[str, ...]
    operators: tuple[str, ...]
    sink: str | None
    windows: Mapping[str, StageWindow]
    tasks: tuple[TaskFigures, ...]


@dataclass(frozen=True)
class StateFigures:
    """An operator's state at the end of the last epoch."""

    operator: str
    rows: int
    memory_bytes: int
    commit_ms: float


@dataclass(frozen=True)
class EpochFigures:
    """The open epoch. `number` and `began_at` are None before the first row is waited for."""

    number: int | None
    began_at: float | None
    duration_s: float | None


@dataclass(frozen=True)
class PauseParts:
    """What the pause at an epoch boundary is made of, in this order."""

    finish: float
    """Tasks end: rows under way are processed, state is committed, the sink is flushed."""
    log: float
    """The sink commits; the driver writes the epoch's offsets and its commit."""
    plan: float
    """The driver reports progress, asks the source for its offsets, and plans the next epoch."""
    launch: float
    """The next epoch's tasks start and connect to each other, the source and the sink."""


PAUSE_PARTS = ("finish", "log", "plan", "launch")


@dataclass(frozen=True)
class Boundary:
    """The end of one epoch: for how long nothing was read. `parts_ms` is None until the driver's side is known."""

    at: float
    epoch: int
    pause_ms: float
    parts_ms: PauseParts | None
    overlapped: bool
    """The next epoch began while this one was still running."""
    reason: str | None
    """Why it did not; None if it did, or if that is not known."""


@dataclass(frozen=True)
class BoundaryPause:
    """The pause at epoch boundaries over the last `boundaries` of them."""

    boundaries: int
    median_ms: float
    max_ms: float
    last_ms: float
    parts_ms: PauseParts | None
    overlapped: int
    """At how many of these boundaries the next epoch began before the one before it had ended."""
    reason: str | None
    """Why it did not at the last boundary where it did not."""


@dataclass(frozen=True)
class BadRecords:
    """Records that the query could not process and skipped."""

    records: int
    last_at: float | None
    last_error: str | None


@dataclass(frozen=True)
class QueryFigures:
    """One run of a real-time query; `windows` are by name: 10s, 1m and run."""

    id: str | None
    run_id: str
    name: str | None
    status: QueryStatus
    starting_reason: str | None
    """Why the query is still starting; None if it is not."""
    error: str | None
    started_at: float
    ended_at: float | None
    lag_rows: int | None
    epoch: EpochFigures
    boundaries: tuple[Boundary, ...]
    pause: BoundaryPause | None
    windows: Mapping[str, QueryWindow]
    partitions: tuple[PartitionFigures, ...]
    stages: tuple[StageFigures, ...]
    state: tuple[StateFigures, ...]
    bad_records: BadRecords
    findings: tuple[Finding, ...]

    @property
    def label(self) -> str:
        """What users call it."""
        return self.name or self.id or self.run_id


@dataclass(frozen=True)
class ExecutorFigures:
    """How an executor's JVM fared over the last ten seconds. None is not known."""

    id: str
    cpu_load: float | None
    process_cpu_load: float | None
    heap_used_bytes: int | None
    heap_max_bytes: int | None
    gc_pauses: int
    gc_total_ms: float
    gc_max_ms: float
    hiccup_p99_ms: float | None
    hiccup_max_ms: float | None


@dataclass(frozen=True)
class Application:
    id: str
    name: str
    master: str
    spark_version: str
    tailrace_version: str


@dataclass(frozen=True)
class Snapshot:
    """An application and its real-time queries now, without history."""

    at: float
    application: Application
    executors: tuple[ExecutorFigures, ...]
    queries: tuple[QueryFigures, ...]


@dataclass(frozen=True)
class Heatmap:
    """For each second, how many rows took up to each bound and longer than the one before; the last of all longer."""

    bounds_ms: tuple[float, ...]
    counts: tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class History:
    """A query's last ten minutes, second by second."""

    at: tuple[float, ...]
    p50_ms: tuple[float | None, ...]
    p99_ms: tuple[float | None, ...]
    p999_ms: tuple[float | None, ...]
    max_ms: tuple[float | None, ...]
    rows_in: tuple[int, ...]
    rows_out: tuple[int, ...]
    lag_rows: tuple[int | None, ...]
    heatmap: Heatmap
