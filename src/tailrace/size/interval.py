"""A checkpoint interval: what it costs at epoch boundaries and after a failure."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

# Spark refuses shorter intervals; longer ones than an hour gain nothing measurable.
INTERVALS_S = (5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0, 900.0, 1800.0, 3600.0)

# Boundaries do not show in a percentile if they delay fewer records than the percentile ignores.
BOUNDARY_SHARE_BELOW = {"p99.9": 0.001, "p99": 0.01}


@dataclass(frozen=True)
class Interval:
    """A checkpoint interval and its cost."""

    interval_s: float
    boundary_share: float
    """The share of records that arrive while nothing is read."""
    rows_to_replay: float | None
    """The rows to replay after a failure just before a commit."""
    recovery_s: float | None
    """How long the replay of these rows takes, without the restart itself."""
    catch_up_s: float | None
    """How long until the rows that arrived meanwhile are processed too; None if unknown or never."""

    @property
    def clear(self) -> str | None:
        """The highest percentile that boundaries do not reach."""
        return next((name for name, share in BOUNDARY_SHARE_BELOW.items() if self.boundary_share < share), None)

    def is_clear(self, percentile: str) -> bool:
        return self.boundary_share < BOUNDARY_SHARE_BELOW[percentile]

    def to_dict(self) -> dict[str, Any]:
        return {**asdict(self), "clear": self.clear}
