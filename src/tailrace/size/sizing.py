"""What a query needs for its load."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from tailrace.check.boundary_estimate import estimated_pause_ms
from tailrace.check.description import QueryShape
from tailrace.contract.findings import Finding
from tailrace.size.data import dict_of
from tailrace.size.findings import find
from tailrace.size.interval import INTERVALS_S, Interval
from tailrace.size.load import Load, bad_size
from tailrace.size.memory import (
    STATE_BYTES_PER_KEY,
    STATE_OVERHEAD,
    STATE_TASK_BYTES,
    heap_bytes,
    overhead_bytes,
)
from tailrace.size.notebook import html_of
from tailrace.size.plot import draw_plot
from tailrace.size.reasons import why_this_interval, why_this_many_cores
from tailrace.size.rounding import round_up
from tailrace.size.text import text_of


@dataclass(frozen=True)
class Sizing:
    """What a query needs for its load. `print` it, read a part, or `plot` the cost of the checkpoint interval."""

    shape: QueryShape
    load: Load

    @property
    def arithmetic(self) -> str:
        """How the slots add up, as in `8 + 20 = 28`."""
        return self.shape.arithmetic

    @property
    def slots(self) -> int:
        """Task slots: the tasks of all stages, which run at the same time."""
        assert self.shape.slots is not None
        return self.shape.slots

    @property
    def executors(self) -> int:
        """Executors, at the load's cores per executor."""
        return math.ceil(self.slots / self.load.cores_per_executor)

    @property
    def busy_cores(self) -> float | None:
        """The cores that the load keeps busy; None if no throughput is known."""
        per_core = self.load.known_rows_per_s_per_core
        return None if per_core is None or self.load.rows_per_s is None else self.load.rows_per_s / per_core

    @property
    def wanted_cores(self) -> int | None:
        """Busy cores plus headroom, even if there are fewer tasks to use them."""
        return None if self.busy_cores is None else round_up(self.busy_cores / self.load.utilization)

    @property
    def cores(self) -> int:
        """CPU cores: at most one per slot, fewer if a measured throughput allows it."""
        return self.slots if self.wanted_cores is None else min(self.slots, self.wanted_cores)

    @property
    def cores_rule(self) -> str:
        """Why this many cores, in words."""
        return why_this_many_cores(self)

    @property
    def throughput_rows_per_s(self) -> float | None:
        """The query's throughput on these cores; None if unknown."""
        per_core = self.load.known_rows_per_s_per_core
        return self.load.throughput_rows_per_s if self.busy_cores is None else (per_core or 0) * self.cores

    @property
    def throughput_is_lower_bound(self) -> bool:
        """True if the throughput was seen without a backlog, so the query may be faster."""
        return self.load.throughput_is_lower_bound and self.busy_cores is None

    @property
    def utilization(self) -> float | None:
        """The load as a share of the throughput; None if unknown."""
        if self.load.rows_per_s is None or self.throughput_rows_per_s is None:
            return None
        return self.load.rows_per_s / self.throughput_rows_per_s

    @property
    def keeps_up(self) -> bool:
        """False if more rows arrive than the query can process."""
        return self.utilization is None or self.utilization < 1 or self.throughput_is_lower_bound

    @property
    def state_bytes_per_key(self) -> float:
        """Bytes of state per key, as given or estimated."""
        return self.load.state_bytes_per_key or self.load.row_bytes or STATE_BYTES_PER_KEY

    @property
    def state_bytes(self) -> float:
        """Bytes of state in all."""
        return (self.load.keys or 0) * self.state_bytes_per_key

    @property
    def state_disk_bytes(self) -> float:
        """Bytes that the state takes on the disks of all executors together."""
        return self.state_bytes * STATE_OVERHEAD

    @property
    def state_buffers_bytes(self) -> int:
        """RocksDB's buffers, per executor."""
        tasks = sum(stage.tasks or 0 for stage in self.shape.stages if stage.stateful)
        return math.ceil(tasks / self.executors) * STATE_TASK_BYTES

    @property
    def executor_memory_bytes(self) -> int:
        """The heap, for `spark.executor.memory`."""
        return heap_bytes(tasks=self.load.cores_per_executor)

    @property
    def executor_overhead_bytes(self) -> int:
        """Memory outside the heap, for `spark.executor.memoryOverhead`.

        It includes the state in the system's cache, so no row waits for a disk. State is assumed to be spread evenly.
        """
        state = self.state_buffers_bytes + self.state_disk_bytes / self.executors
        return overhead_bytes(heap=self.executor_memory_bytes, state=state)

    @property
    def boundary_ms(self) -> float:
        """The pause at an epoch boundary, as given or estimated."""
        return self.load.boundary_ms or estimated_pause_ms(stateful=self.shape.stateful)

    @cached_property
    def intervals(self) -> tuple[Interval, ...]:
        """The trade-off: a longer checkpoint interval means fewer pauses and a longer replay."""
        own = set() if self.shape.epoch_ms is None else {self.shape.epoch_ms / 1000}
        return tuple(self._interval(interval_s) for interval_s in sorted({*INTERVALS_S, *own}))

    def _interval(self, interval_s: float) -> Interval:
        rate, throughput = self.load.rows_per_s, self.throughput_rows_per_s
        rows = None if rate is None else rate * interval_s
        spare = throughput - rate if rate and throughput and self.recovery_is_certain else 0
        return Interval(
            interval_s=interval_s,
            boundary_share=min(1.0, self.boundary_ms / 1000 / interval_s),
            rows_to_replay=rows,
            recovery_s=None if rows is None or throughput is None else rows / throughput,
            catch_up_s=rows / spare if rows is not None and spare > 0 else None,
        )

    @property
    def recovery_is_certain(self) -> bool:
        """True if the recovery time can be computed from what is known."""
        return self.utilization is not None and not self.throughput_is_lower_bound

    @cached_property
    def recommended(self) -> Interval | None:
        """The shortest interval that keeps boundaries out of p99.9 (or else p99) and recovers in time."""
        if not self.keeps_up:
            return None
        goals, affordable = ["p99"], list(self.intervals)
        if self.recovery_is_certain:
            goals = ["p99.9", "p99"]
            affordable = [one for one in affordable if (one.recovery_s or 0) <= self.load.max_recovery_s]
        return next((one for goal in goals for one in affordable if one.is_clear(goal)), None)

    @property
    def recommendation(self) -> str:
        """Why this interval, in words."""
        return why_this_interval(self)

    @property
    def findings(self) -> tuple[Finding, ...]:
        """What stands in the way, most serious first."""
        return tuple(find(self))

    def to_dict(self) -> dict[str, Any]:
        """Everything, as plain values."""
        return dict_of(self)

    def to_json(self, indent: int | None = None) -> str:
        """The same as JSON."""
        return json.dumps(self.to_dict(), indent=indent)

    def to_text(self) -> str:
        """The text that `print` shows."""
        return text_of(self)

    __str__ = to_text

    def _repr_html_(self) -> str:
        return html_of(self)

    def plot(self, path: str | Path) -> Path:
        """Plot the cost of the checkpoint interval and save it to `path`, as PNG or SVG by its suffix."""
        return draw_plot(self, Path(path))


def size_of(shape: QueryShape, load: Load | None = None) -> Sizing:
    """What a query of this shape needs for a load."""
    unknown = [stage for stage in shape.stages if stage.tasks is None]
    if unknown or not shape.stages:
        names = [", ".join([f"stage {stage.number}", *stage.sources]) for stage in unknown]
        raise bad_size(
            f"the number of tasks is unknown{' in ' + '; '.join(names) if names else ''}.",
            "give the partitions by hand, stage by stage from the source on: --stages 8,20.",
        )
    return Sizing(shape, load or Load())
