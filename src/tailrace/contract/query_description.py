"""A query before its start, as the plugin describes it: mirrors `QueryDescription.scala`.

A `line` is the user's own `file:line`, if it is known.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Column:
    name: str
    sql_type: str


@dataclass(frozen=True)
class SourceProblem:
    """Why a source could not be asked: `unreachable`, `no_topic`, `denied`, `refused` or `unknown`."""

    kind: str
    message: str
    code: str | None = None
    """Of a cluster that denies access; so is the fix."""
    fix: str | None = None


@dataclass(frozen=True)
class SourceDescription:
    name: str
    label: str
    options: Mapping[str, str]
    real_time: bool
    topics: tuple[str, ...]
    ages_ms: tuple[int, ...]
    """How old records were when they came in just now."""
    problem: SourceProblem | None
    line: str | None


@dataclass(frozen=True)
class RefusedOperator:
    name: str
    problem: str
    fix: str
    line: str | None
    table_bytes: int | None
    """How large Spark takes the static side of a join to be, where that decided how it is joined."""


@dataclass(frozen=True)
class Operator:
    """One operation of a stage, by the name that users know."""

    name: str
    ours: bool = False
    """Tailrace's own operator, in the place of one of Spark's that would hold rows back."""
    stateful: bool = False
    overlaps: bool = False
    """An epoch with it can begin while the one before still runs."""
    line: str | None = None


@dataclass(frozen=True)
class Stage:
    """A part of the query between two shuffles; all stages of a real-time query run at the same time."""

    number: int
    inputs: tuple[int, ...]
    """The stages whose rows it gets through a streaming shuffle."""
    sources: tuple[str, ...]
    """What it reads by itself, such as `kafka: payments`."""
    operators: tuple[Operator, ...]
    tasks: int | None
    """How many task slots it holds; None if the source's partitions could not be counted."""

    @property
    def stateful(self) -> bool:
        return any(operator.stateful for operator in self.operators)


@dataclass(frozen=True)
class StateDescription:
    """A stateful operator, and whether a watermark lets it forget."""

    name: str
    bounded: bool
    line: str | None


@dataclass(frozen=True)
class StreamJoin:
    kind: str
    outer: bool
    line: str | None


@dataclass(frozen=True)
class PluginRefusal:
    """What the plugin itself would refuse when the query starts."""

    code: str
    title: str
    problem: str
    fix: str
    line: str | None


@dataclass(frozen=True)
class Watermark:
    column: str
    delay_ms: int
    line: str | None


@dataclass(frozen=True)
class TimeWindowDescription:
    length_ms: int
    line: str | None


@dataclass(frozen=True)
class PythonFunction:
    name: str
    pickled: bool
    in_batches: bool
    line: str | None


@dataclass(frozen=True)
class CheckpointDescription:
    location: str
    problem: str | None
    exists: bool
    query_id: str | None
    epoch: int | None
    """The last committed one."""
    offsets: tuple[Any, ...]
    """The position in each source after that epoch, as the source wrote it; None where there is none."""
    commit_version: str | None
    operators: tuple[str, ...]
    """The stateful operators, by the names that Spark gives them."""


@dataclass(frozen=True)
class TriggerDescription:
    """Has `real_time_ms` in Real-Time Mode, `interval_ms` in micro-batch, and neither if the query ends by itself."""

    real_time_ms: int | None
    interval_ms: int | None


@dataclass(frozen=True)
class SinkDescription:
    """`problem` and `fix` are empty for a supported sink."""

    name: str
    supported: bool
    problem: str
    fix: str


@dataclass(frozen=True)
class WriterDescription:
    format: str
    output_mode: str
    trigger: TriggerDescription
    options: Mapping[str, str]
    sink: SinkDescription
    error_policy_problems: tuple[PluginRefusal, ...]
    output_problems: tuple[PluginRefusal, ...]
    """Why the sink could not write to its output, for sinks that look at it before the start."""


@dataclass(frozen=True)
class QueryDescription:
    columns: tuple[Column, ...]
    epoch_ms: int
    shortest_epoch_ms: int
    sources: tuple[SourceDescription, ...]
    same_source_twice: tuple[str, ...]
    refused: tuple[RefusedOperator, ...]
    spark_refuses: str | None
    not_planned: str | None
    stages: tuple[Stage, ...]
    stateful: bool
    state: tuple[StateDescription, ...]
    state_before_union: tuple[PluginRefusal, ...]
    """For each stateful operator whose rows flow into a union."""
    stream_joins: tuple[StreamJoin, ...]
    identity_obstacles: tuple[PluginRefusal, ...]
    """Why the exactly-once sink could not recognize the query's rows after a failure."""
    may_append: bool
    watermarks: tuple[Watermark, ...]
    windows: tuple[TimeWindowDescription, ...]
    python: tuple[PythonFunction, ...]
    checkpoint: CheckpointDescription | None
    state_obstacle: str | None
    writer: WriterDescription | None
    """None for a query whose sink is not known."""
    running: bool
