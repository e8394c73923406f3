"""What a query needs for its load."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from tailrace.check.boundary import estimated_gap_ms
from tailrace.check.description import QueryShape
from tailrace.monitor.findings import Finding
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
from tailrace.size.plot import draw_plot
from tailrace.size.reasons import why_this_interval, why_this_many_cores
from tailrace.size.rounding import round_up
from tailrace.size.text import text_of


@dataclass(frozen=True)
class Sizing:
    """What a query needs. `print` it, or ask for a part; `plot` draws what the checkpoint interval costs."""

    shape: QueryShape
    load: Load

    @property
    def arithmetic(self) -> str:
        return self.shape.arithmetic

    @property
    def slots(self) -> int:
        """All stages run at the same time, so their tasks add up."""
        assert self.shape.slots is not None
        return self.shape.slots

    @property
    def executors(self) -> int:
        return math.ceil(self.slots / self.load.cores_per_executor)

    @property
    def busy_cores(self) -> float | None:
        """How many cores the load alone keeps busy."""
        per_core = self.load.known_rows_per_s_per_core
        return None if per_core is None or self.load.rows_per_s is None else self.load.rows_per_s / per_core

    @property
    def wanted_cores(self) -> int | None:
        """Busy cores with headroom, whether or not there are tasks to use them."""
        return None if self.busy_cores is None else round_up(self.busy_cores / self.load.utilisation)

    @property
    def cores(self) -> int:
        """CPU cores: one for each slot at most, fewer if it was measured that fewer do."""
        return self.slots if self.wanted_cores is None else min(self.slots, self.wanted_cores)

    @property
    def cores_rule(self) -> str:
        return why_this_many_cores(self)

    @property
    def throughput_rows_per_s(self) -> float | None:
        """Of the query on these cores."""
        per_core = self.load.known_rows_per_s_per_core
        return self.load.throughput_rows_per_s if self.busy_cores is None else (per_core or 0) * self.cores

    @property
    def throughput_is_lower_bound(self) -> bool:
        return self.load.throughput_is_lower_bound and self.busy_cores is None

    @property
    def utilisation(self) -> float | None:
        if self.load.rows_per_s is None or self.throughput_rows_per_s is None:
            return None
        return self.load.rows_per_s / self.throughput_rows_per_s

    @property
    def keeps_up(self) -> bool:
        """As far as it is known."""
        return self.utilisation is None or self.utilisation < 1 or self.throughput_is_lower_bound

    @property
    def state_bytes_per_key(self) -> float:
        return self.load.state_bytes_per_key or self.load.row_bytes or STATE_BYTES_PER_KEY

    @property
    def state_bytes(self) -> float:
        return (self.load.keys or 0) * self.state_bytes_per_key

    @property
    def state_disk_bytes(self) -> float:
        """Of all executors together."""
        return self.state_bytes * STATE_OVERHEAD

    @property
    def state_buffers_bytes(self) -> int:
        """Of an executor."""
        tasks = sum(stage.tasks or 0 for stage in self.shape.stages if stage.stateful)
        return math.ceil(tasks / self.executors) * STATE_TASK_BYTES

    @property
    def executor_memory_bytes(self) -> int:
        """`spark.executor.memory`, the heap."""
        return heap_bytes(tasks=self.load.cores_per_executor)

    @property
    def executor_overhead_bytes(self) -> int:
        """`spark.executor.memoryOverhead`: beside the heap, with the state in the system's cache, so that no row waits
        for a disk; state is taken to be spread evenly."""
        state = self.state_buffers_bytes + self.state_disk_bytes / self.executors
        return overhead_bytes(heap=self.executor_memory_bytes, state=state)

    @property
    def boundary_ms(self) -> float:
        return self.load.boundary_ms or estimated_gap_ms(stateful=self.shape.stateful)

    @cached_property
    def intervals(self) -> tuple[Interval, ...]:
        """The trade-off: the longer the interval, the rarer the pauses and the longer the replay."""
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
        return self.utilisation is not None and not self.throughput_is_lower_bound

    @cached_property
    def recommended(self) -> Interval | None:
        """The shortest that keeps boundaries out of p99.9, or else out of p99, and recovers in time."""
        if not self.keeps_up:
            return None
        goals, affordable = ["p99"], list(self.intervals)
        if self.recovery_is_certain:
            goals = ["p99.9", "p99"]
            affordable = [one for one in affordable if (one.recovery_s or 0) <= self.load.max_recovery_s]
        return next((one for goal in goals for one in affordable if one.is_clear(goal)), None)

    @property
    def recommendation(self) -> str:
        return why_this_interval(self)

    @property
    def findings(self) -> tuple[Finding, ...]:
        """What stands in the way, the gravest first."""
        return tuple(find(self))

    def to_dict(self) -> dict[str, Any]:
        return dict_of(self)

    def to_json(self, indent: int | None = None) -> str:
        return json.dumps(self.to_dict(), indent=indent)

    def to_text(self) -> str:
        return text_of(self)

    __str__ = to_text

    def plot(self, path: str | Path) -> Path:
        """Draw what the checkpoint interval costs into `path` (PNG or SVG by its suffix)."""
        return draw_plot(self, Path(path))


def size_of(shape: QueryShape, load: Load | None = None) -> Sizing:
    """What a query of this shape needs for a load."""
    unknown = [stage for stage in shape.stages if stage.tasks is None]
    if unknown or not shape.stages:
        names = [", ".join([f"stage {stage.number}", *stage.sources]) for stage in unknown]
        raise bad_size(
            f"it is not known how many tasks there are{' in ' + '; '.join(names) if names else ''}.",
            "give the partitions by hand, stage by stage from the source on: --stages 8,20.",
        )
    return Sizing(shape, load or Load())
