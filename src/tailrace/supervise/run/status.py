"""The state of a run, as the supervisor's health server reports it."""

from __future__ import annotations

import threading
import time
from dataclasses import replace

from tailrace.contract.health import Health
from tailrace.contract.run_status import IncidentSummary, RestartCounts, RunStatus, State


class Status:
    """Written by the supervisor, read by the health server's threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._current = RunStatus(State.STARTING, time.time(), Health("unknown"), RestartCounts(0, 0, 0), None)

    @property
    def current(self) -> RunStatus:
        with self._lock:
            return self._current

    def enter(self, state: State) -> None:
        with self._lock:
            if state is not self._current.state:
                self._current = replace(self._current, state=state, since=time.time())
            if state is not State.RUNNING:
                self._current = replace(self._current, application=Health("unknown"))

    def set_queries(self, health: Health) -> None:
        with self._lock:
            self._current = replace(self._current, application=health)

    def set_restarts(self, restarts: RestartCounts) -> None:
        with self._lock:
            self._current = replace(self._current, restarts=restarts)

    def set_incident(self, incident: IncidentSummary) -> None:
        with self._lock:
            self._current = replace(self._current, last_incident=incident)
