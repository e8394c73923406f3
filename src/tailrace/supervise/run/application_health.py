"""What the supervisor knows of the running application: its queries, as its dashboard tells."""

from __future__ import annotations

import http.client
import json
import time
import urllib.parse
from dataclasses import dataclass
from typing import Any

from tailrace._process.http_client import open_url
from tailrace.monitor.health import current_runs, health_of
from tailrace.supervise import run_folder
from tailrace.supervise.run.process import Application
from tailrace.supervise.run.replay import Offsets, Replay, replay_of
from tailrace.supervise.run.status import READY

ANSWERS_WITHIN_S = 3.0
SILENT_AFTER_S = 10.0


@dataclass(frozen=True)
class FailedQuery:
    name: str
    error: str


class ApplicationHealth:
    """Asks one application how its queries are, and remembers it for when nobody answers any more."""

    def __init__(self, application: Application) -> None:
        self._application = application
        self._snapshot: dict[str, Any] | None = None
        self._heard_at: float | None = None
        self._well_since: float | None = None
        self._failed_since: float | None = None
        self.has_queries = False

    def look(self) -> dict[str, Any] | None:
        """The queries' health as of now; None if nobody answers, unless nobody has for a while."""
        address = self.address
        if address is None:
            return None
        now = time.monotonic()
        try:
            url = urllib.parse.urljoin(address["url"], "/api/snapshot")
            with open_url(url, ANSWERS_WITHIN_S) as answer:
                self._snapshot = json.load(answer)
        except (OSError, ValueError, http.client.HTTPException):
            # A driver that collects garbage may miss an answer.
            self._well_since = None
            return {"status": "no answer"} if now - (self._heard_at or now) > SILENT_AFTER_S else None
        assert self._snapshot is not None
        self._heard_at = now
        health = health_of(self._snapshot)
        self.has_queries = self.has_queries or bool(health.queries)
        self._well_since = (self._well_since or now) if health.status in READY else None
        self._failed_since = (self._failed_since or now) if health.status == "failed" else None
        return {"status": health.status, "queries": health.queries, "errors": health.errors}

    @property
    def address(self) -> dict[str, str] | None:
        """Of the dashboard, with the token; None as long as there is none."""
        note: dict[str, str] | None = self._application.report(run_folder.DASHBOARD)
        return note

    @property
    def well_for_s(self) -> float:
        return 0.0 if self._well_since is None else time.monotonic() - self._well_since

    @property
    def failed_for_s(self) -> float:
        """How long a query is down though the application goes on."""
        return 0.0 if self._failed_since is None else time.monotonic() - self._failed_since

    def failed_query(self) -> FailedQuery | None:
        """One that nobody has started again."""
        last = self._last_of_queries()
        runs = current_runs({"queries": [{"started_at": place, **run} for place, run in enumerate(last)]})
        failed = {name: run["error"] for name, run in runs.items() if run["status"] == "failed" and run["error"]}
        return next((FailedQuery(name, str(error)) for name, error in failed.items()), None)

    def replays(self) -> dict[str, Replay]:
        """From where each query would go on."""
        read_to = {run["run_id"]: _behind(run) for run in self._last_of_queries()}
        started: list[dict[str, Any]] = self._application.report(run_folder.QUERIES) or []
        return {
            str(query["name"] or query["id"]): replay_of(query["checkpoint"], read_to.get(query["run_id"]))
            for query in started
            if query["checkpoint"]
        }

    def _last_of_queries(self) -> list[dict[str, Any]]:
        """As they were at the end, or when somebody last looked."""
        told: list[dict[str, Any]] | None = self._application.report(run_folder.EXIT)
        if told is not None:
            return told
        return self._snapshot["queries"] if self._snapshot is not None else []


def _behind(run: dict[str, Any]) -> Offsets:
    found: Offsets = {}
    for one in run.get("read_to", run.get("partitions", [])):
        if one["offset"] is not None:
            found.setdefault(one["topic"], {})[str(one["partition"])] = one["offset"] + 1
    return found
