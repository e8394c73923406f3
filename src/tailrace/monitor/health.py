"""One word on the application's real-time queries, for a load balancer, Kubernetes or a person."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

LONGEST_ERROR = 300

# What a query's status means for whoever asks about health. An ended query is nobody's concern any more.
HEALTH_OF_STATUS = {"failed": "failed", "lagging": "lagging", "starting": "starting", "running": "ready"}
WORST_FIRST = ("failed", "lagging", "starting", "ready")
ACTIVE = ("starting", "running", "lagging")


@dataclass(frozen=True)
class Health:
    """`status` is that of the worst query; `queries` has the names by status, `errors` the failures by name."""

    status: str
    queries: dict[str, list[str]]
    errors: dict[str, str]

    def http_status(self, *, strict: bool) -> int:
        bad = {"failed", "lagging"} if strict else {"failed"}
        return 503 if self.status in bad else 200


def health_of(snapshot: dict[str, Any]) -> Health:
    queries: dict[str, list[str]] = {}
    errors: dict[str, str] = {}
    for name, query in current_runs(snapshot).items():
        status = HEALTH_OF_STATUS.get(query["status"])
        if status is not None:
            queries.setdefault(status, []).append(name)
        if status == "failed":
            errors[name] = first_line(query["error"] or "the cause is not known")
    worst = next((status for status in WORST_FIRST if status in queries), "idle")
    return Health(worst, queries, errors)


def current_runs(snapshot: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """The run that counts of each query, by its name or else its id: a restart makes up for the failure before it."""
    runs: dict[str, dict[str, Any]] = {}
    newest_first = sorted(snapshot["queries"], key=lambda query: -query["started_at"])
    for query in sorted(newest_first, key=lambda query: query["status"] not in ACTIVE):
        runs.setdefault(query["name"] or query["id"], query)
    return runs


def first_line(text: str) -> str:
    """What a person needs of an error; a JVM's go on for pages."""
    line = next((line.strip() for line in text.splitlines() if line.strip()), "")
    return line if len(line) <= LONGEST_ERROR else line[: LONGEST_ERROR - 1] + "…"
