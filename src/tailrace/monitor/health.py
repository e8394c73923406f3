"""The health of the application's real-time queries in one word, for a load balancer, Kubernetes or a person."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

from tailrace.contract.health import Health
from tailrace.contract.run_folder import LastRun
from tailrace.contract.snapshot import ACTIVE, QueryFigures, QueryStatus, Snapshot

LONGEST_ERROR = 300

AnyRun = TypeVar("AnyRun", QueryFigures, LastRun)

# What a query's status means for the application's health. An ended query does not count.
HEALTH_OF_STATUS = {
    QueryStatus.FAILED: "failed",
    QueryStatus.LAGGING: "lagging",
    QueryStatus.STARTING: "starting",
    QueryStatus.RUNNING: "ready",
}
WORST_FIRST = ("failed", "lagging", "starting", "ready")


def health_of(snapshot: Snapshot) -> Health:
    queries: dict[str, list[str]] = {}
    errors: dict[str, str] = {}
    reasons: dict[str, str] = {}
    for name, query in current_runs(snapshot.queries).items():
        status = HEALTH_OF_STATUS.get(query.status)
        if status is not None:
            queries.setdefault(status, []).append(name)
        if status == "failed":
            errors[name] = first_line(query.error or "the cause is unknown")
        if query.starting_reason is not None:
            reasons[name] = query.starting_reason
    worst = next((status for status in WORST_FIRST if status in queries), "idle")
    return Health(worst, {status: tuple(names) for status, names in queries.items()}, errors, reasons)


def current_runs(queries: Iterable[AnyRun]) -> dict[str, AnyRun]:
    """The run of each query (by name or else by id) that counts: an active one, or else the newest."""
    runs: dict[str, AnyRun] = {}
    newest_first = sorted(queries, key=lambda query: -query.started_at)
    for query in sorted(newest_first, key=lambda query: query.status not in ACTIVE):
        runs.setdefault(query.label, query)
    return runs


def first_line(text: str) -> str:
    """The part of an error that a person needs: JVM errors run for pages."""
    line = next((line.strip() for line in text.splitlines() if line.strip()), "")
    return line if len(line) <= LONGEST_ERROR else line[: LONGEST_ERROR - 1] + "…"
