"""What a query has to do."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass

from tailrace.errors import TailraceError


@dataclass(frozen=True)
class Load:
    """What a query has to process, as far as known, and the targets it must meet."""

    rows_per_s: float | None = None
    """Rows that arrive per second."""
    row_bytes: float | None = None
    keys: int | None = None
    """How many keys the query keeps state for, over all its stages."""
    state_bytes_per_key: float | None = None
    """Key and value together; by default the bytes of a row."""
    rows_per_s_per_core: float | None = None
    throughput_rows_per_s: float | None = None
    """How many rows the whole query can process, measured with a backlog."""
    throughput_cores: float | None = None
    """The CPU cores that the throughput was measured on."""
    throughput_is_lower_bound: bool = False
    """True if the throughput was seen without a backlog, so the query may be faster."""
    boundary_ms: float | None = None
    """The pause at an epoch boundary; estimated unless given."""
    boundary_parts_ms: Mapping[str, float] | None = None
    """The parts of that pause, named as in `tailrace.monitor.epochs`."""
    utilization: float = 0.5
    """How busy the cores may be."""
    cores_per_executor: int = 4
    """`spark.executor.cores`: the task slots of an executor, which may be more than its CPU cores."""
    max_recovery_s: float = 60.0
    """How long the replay after a failure may take."""

    def __post_init__(self) -> None:
        figures = {
            name: value for name, value in asdict(self).items() if isinstance(value, int | float) and value is not False
        }
        wrong = [
            f"{name} is {value:g}, and must be above 0" for name, value in figures.items() if not 0 < value < math.inf
        ]
        if self.utilization > 1:
            wrong.append(f"utilization is {self.utilization:g}, and must be at most 1")
        if wrong:
            raise bad_size(f"{'; '.join(wrong)}.", "give a figure in that range, or omit it if it is unknown.")

    @property
    def known_rows_per_s_per_core(self) -> float | None:
        if self.rows_per_s_per_core is not None:
            return self.rows_per_s_per_core
        if self.throughput_rows_per_s is None or self.throughput_cores is None or self.throughput_is_lower_bound:
            return None
        return self.throughput_rows_per_s / self.throughput_cores


def bad_size(problem: str, fix: str) -> TailraceError:
    return TailraceError("TAILRACE_BAD_SIZE", problem, fix)
