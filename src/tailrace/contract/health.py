"""One word on an application's real-time queries, for a load balancer, Kubernetes, `tailrace run` or a person."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

# A query that lags reads rows.
READY = frozenset({"ready", "lagging"})


@dataclass(frozen=True)
class Health:
    """`status` is that of the worst query; `queries` has the names by status, `errors` the failures by name."""

    status: str
    queries: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    errors: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_ready(self) -> bool:
        """True if rows flow in every query. In `status`, a lagging query hides a starting one."""
        return bool(self.queries) and READY.issuperset(self.queries)

    def http_status(self, *, strict: bool) -> int:
        bad = {"failed", "lagging"} if strict else {"failed"}
        return 503 if self.status in bad else 200
