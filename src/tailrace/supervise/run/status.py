"""The state of a run, as the supervisor's health server reports it."""

from __future__ import annotations

import threading
import time
from enum import StrEnum
from typing import Any

from tailrace.contract.codec import encode
from tailrace.contract.health import Health


class State(StrEnum):
    STARTING = "starting"
    RUNNING = "running"
    WAITING = "waiting to restart"
    DRAINING = "draining"
    ENDED = "ended"


class Status:
    """Written by the supervisor, read by the health server's threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._state = State.STARTING
        self._since = time.time()
        self._queries = Health("unknown")
        self._restarts: dict[str, int] = {"used": 0, "limit": 0, "total": 0}
        self._incident: dict[str, Any] | None = None

    def enter(self, state: State) -> None:
        with self._lock:
            if state != self._state:
                self._state, self._since = state, time.time()
            if state != State.RUNNING:
                self._queries = Health("unknown")

    def tell(
        self,
        *,
        queries: Health | None = None,
        restarts: dict[str, int] | None = None,
        incident: dict[str, Any] | None = None,
    ) -> None:
        with self._lock:
            self._queries = queries or self._queries
            self._restarts = restarts or self._restarts
            self._incident = incident or self._incident

    @property
    def is_ready(self) -> bool:
        """True if rows flow in every query, according to the application."""
        with self._lock:
            return self._state == State.RUNNING and self._queries.is_ready

    def to_dict(self) -> dict[str, Any]:
        with self._lock:
            return {
                "state": self._state.value,
                "since": self._since,
                "application": encode(self._queries),
                "restarts": self._restarts,
                "last_incident": self._incident,
            }
