"""One word on an application's real-time queries, for a load balancer, Kubernetes, `tailrace run` or a person."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Health:
    """`status` is that of the worst query; `queries` has the names by status, `errors` the failures by name."""

    status: str
    queries: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    errors: Mapping[str, str] = field(default_factory=dict)

    def http_status(self, *, strict: bool) -> int:
        bad = {"failed", "lagging"} if strict else {"failed"}
        return 503 if self.status in bad else 200
