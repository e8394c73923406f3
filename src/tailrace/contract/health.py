"""One word on an application's real-time queries, for a load balancer, Kubernetes, `tailrace run` or a person."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

# A query that lags reads rows.
READY = frozenset({"ready", "lagging"})


@dataclass(frozen=True)
class Health:
    """`status` is that of the worst query, or "idle" without any. A supervisor also says "unknown" while no application
    runs, and "no answer" if it has not answered for a while."""

    status: str
    queries: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """The names by status."""
    errors: Mapping[str, str] = field(default_factory=dict)
    """Why a query failed, by name."""
    reasons: Mapping[str, str] = field(default_factory=dict)
    """Why a query is still starting, by name."""

    @property
    def is_ready(self) -> bool:
        """True if rows flow in every query. In `status`, a lagging query hides a starting one."""
        return bool(self.queries) and READY.issuperset(self.queries)

    def http_status(self, *, strict: bool) -> int:
        bad = {"failed", "lagging"} if strict else {"failed"}
        return 503 if self.status in bad else 200
