"""A checkpoint interval: what it costs at epoch boundaries and after a failure."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

# Spark refuses shorter ones; beyond an hour nothing is gained that anybody could measure.
INTERVALS_S = (5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0, 900.0, 1800.0, 3600.0)

# Boundaries do not show in a percentile when they hold up fewer records than it leaves out.
LEFT_OUT = {"p99.9": 0.001, "p99": 0.01}


@dataclass(frozen=True)
class Interval:
    """A checkpoint interval and its price."""

    interval_s: float
    boundary_share: float
    """Of the records: they arrive while nothing is read."""
    rows_to_replay: float | None
    """After a failure just before a commit."""
    recovery_s: float | None
    """The replay of these rows, without the time that the restart itself takes."""
    catch_up_s: float | None
    """Until also those are done that arrived meanwhile; none if that is not known, or never."""

    @property
    def clear(self) -> str | None:
        """The highest percentile that boundaries do not reach."""
        return next((name for name, share in LEFT_OUT.items() if self.boundary_share < share), None)

    def is_clear(self, percentile: str) -> bool:
        return self.boundary_share < LEFT_OUT[percentile]

    def to_dict(self) -> dict[str, Any]:
        return {**asdict(self), "clear": self.clear}
