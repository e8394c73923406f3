"""The health of the running application's queries, as its dashboard reports it."""

from __future__ import annotations

import http.client
import time
import urllib.parse
from dataclasses import dataclass

from tailrace._process.http_client import read_url
from tailrace.contract.codec import from_json
from tailrace.contract.health import Health
from tailrace.contract.run_folder import DashboardReport, ExitReport, LastRun, StartedQueries
from tailrace.contract.snapshot import QueryStatus, Snapshot
from tailrace.monitor.health import current_runs, health_of
from tailrace.supervise import run_folder
from tailrace.supervise.run.process import ApplicationProcess
from tailrace.supervise.run.replay import Offsets, Replay, replay_of

ANSWERS_WITHIN_S = 3.0
SILENT_AFTER_S = 10.0


@dataclass(frozen=True)
class FailedQuery:
    name: str
    error: str


class ApplicationHealth:
    """Polls one application, and keeps the last answer for when it no longer responds."""

    def __init__(self, application: ApplicationProcess) -> None:
        self._application = application
        self._snapshot: Snapshot | None = None
        self._heard_at: float | None = None
        self._healthy_since: float | None = None
        self._failed_since: float | None = None
        self.has_queries = False

    def poll(self) -> Health | None:
        """The queries' current health. None if there is no answer; "no answer" if there has been none for a while."""
        address = self.address
        if address is None:
            return None
        now = time.monotonic()
        try:
            url = urllib.parse.urljoin(address.url, "/api/snapshot")
            self._snapshot = from_json(Snapshot, read_url(url, ANSWERS_WITHIN_S))
        except (OSError, ValueError, http.client.HTTPException):
            # A driver that collects garbage may miss an answer.
            self._healthy_since = None
            return Health("no answer") if now - (self._heard_at or now) > SILENT_AFTER_S else None
        self._heard_at = now
        health = health_of(self._snapshot)
        self.has_queries = self.has_queries or bool(health.queries)
        self._healthy_since = (self._healthy_since or now) if health.is_ready else None
        self._failed_since = (self._failed_since or now) if health.status == "failed" else None
        return health

    @property
    def address(self) -> DashboardReport | None:
        """Of the dashboard, with the token; None as long as there is none."""
        return self._application.report(DashboardReport, run_folder.DASHBOARD)

    @property
    def healthy_for_s(self) -> float:
        return 0.0 if self._healthy_since is None else time.monotonic() - self._healthy_since

    @property
    def failed_for_s(self) -> float:
        """Seconds since a query failed in a running application."""
        return 0.0 if self._failed_since is None else time.monotonic() - self._failed_since

    def failed_query(self) -> FailedQuery | None:
        """One that has not been started again."""
        runs = current_runs(self._last_runs()).items()
        failed = ((name, run.error) for name, run in runs if run.status is QueryStatus.FAILED)
        return next((FailedQuery(name, error) for name, error in failed if error), None)

    def replays(self) -> dict[str, Replay]:
        """Where each query would resume."""
        read_to = {run.run_id: _behind(run) for run in self._last_runs()}
        started = self._application.report(StartedQueries, run_folder.QUERIES)
        return {
            query.label: replay_of(query.checkpoint, read_to.get(query.run_id))
            for query in (started.queries if started else ())
            if query.checkpoint
        }

    def _last_runs(self) -> list[LastRun]:
        """As they were at the end, or when the supervisor last looked."""
        end = self._application.report(ExitReport, run_folder.EXIT)
        if end is not None:
            return list(end.queries)
        queries = self._snapshot.queries if self._snapshot is not None else ()
        return [run_folder.last_run_of(query) for query in queries]


def _behind(run: LastRun) -> Offsets:
    found: Offsets = {}
    for one in run.partitions:
        if one.offset is not None:
            found.setdefault(one.topic, {})[str(one.partition)] = one.offset + 1
    return found
