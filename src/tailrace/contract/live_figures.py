"""What the plugin has measured since it was last asked: mirrors `LiveFiguresMessage.scala`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tailrace.contract.codec import Tagged

Buckets = Mapping[int, int]
"""How many durations fell into each bucket, see `monitor/histogram.py`."""


@dataclass(frozen=True)
class SeriesKey:
    """What durations are about. With a topic, `partition` is one of the source's, else a task of the stage."""

    run: str
    figure: str
    stage: int
    topic: str
    partition: int


@dataclass(frozen=True)
class SeriesUpdate:
    key: SeriesKey
    counts: Buckets


@dataclass(frozen=True)
class ReadProgress:
    """How far a task has read its partition of a source; `rows` are those since the last message."""

    run: str
    epoch: int
    topic: str
    partition: int
    began_us: int
    ended_us: int
    """0 while the task still reads."""
    offset: int
    rows: int


@dataclass(frozen=True)
class RowsWritten:
    """Rows handed to the sink since the last message."""

    run: str
    rows: int


@dataclass(frozen=True)
class LatestOffset:
    """The newest offset of a partition, as its broker says."""

    run: str
    topic: str
    partition: int
    offset: int


@dataclass(frozen=True)
class ExecutorHealth:
    """How an executor's JVM fares. A CPU load is negative while the JVM does not know it."""

    executor: str
    cpu_load: float
    process_cpu_load: float
    heap_used_bytes: int
    heap_max_bytes: int
    gc_pauses_us: tuple[int, ...]
    hiccups: Buckets


@dataclass(frozen=True)
class StageShape:
    """A stage as it was planned; `tasks` is known if the stage reads a shuffle."""

    stage: int
    inputs: tuple[int, ...]
    sources: tuple[str, ...]
    operators: tuple[str, ...]
    tasks: int | None
    sink: str | None


@dataclass(frozen=True)
class PartitionStart:
    """Where an epoch begins to read a partition."""

    topic: str
    partition: int
    offset: int


@dataclass(frozen=True)
class StateOperator:
    """An operator's state at the end of an epoch."""

    operator: str
    rows: int
    memory_bytes: int
    commit_ms: float


@dataclass(frozen=True)
class QueryStarted(Tagged):
    run: str
    id: str
    name: str | None
    at_ms: int
    real_time: bool


@dataclass(frozen=True)
class QueryPlanned(Tagged):
    """Only real-time queries are planned by the plugin."""

    run: str
    epoch_ms: int | None
    stages: tuple[StageShape, ...]
    timed: bool
    """If not, no task reports what it reads."""


@dataclass(frozen=True)
class ReadingStarted(Tagged):
    run: str
    partitions: tuple[PartitionStart, ...]


@dataclass(frozen=True)
class WarmupChanged(Tagged):
    """The first epochs of a run are short while it warms up; from `epoch` on it does, or no longer does."""

    run: str
    epoch: int
    warming: bool


@dataclass(frozen=True)
class EpochBegun(Tagged):
    """An epoch has begun, while the one before was still running; if not, `reason` says why."""

    run: str
    epoch: int
    reason: str | None


@dataclass(frozen=True)
class EpochLaunched(Tagged):
    run: str
    epoch: int
    at_ms: int


@dataclass(frozen=True)
class EpochFinished(Tagged):
    """All tasks of the epoch have ended."""

    run: str
    epoch: int
    at_ms: int


@dataclass(frozen=True)
class EpochCommitted(Tagged):
    run: str
    epoch: int
    at_ms: int
    state: tuple[StateOperator, ...]


@dataclass(frozen=True)
class BadRecordsSkipped(Tagged):
    """Records that could not be processed, and the error of the last one."""

    run: str
    records: int
    error: str


@dataclass(frozen=True)
class QueryTerminated(Tagged):
    run: str
    error: str | None


QueryEvent = (
    QueryStarted
    | QueryPlanned
    | ReadingStarted
    | WarmupChanged
    | EpochBegun
    | EpochLaunched
    | EpochFinished
    | EpochCommitted
    | BadRecordsSkipped
    | QueryTerminated
)


@dataclass(frozen=True)
class LiveFiguresMessage:
    """Everything since the last message."""

    series: tuple[SeriesUpdate, ...]
    reads: tuple[ReadProgress, ...]
    written: tuple[RowsWritten, ...]
    executors: tuple[ExecutorHealth, ...]
    latest_offsets: tuple[LatestOffset, ...]
    events: tuple[QueryEvent, ...]
