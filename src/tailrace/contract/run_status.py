"""What a supervised run reports: its state, its restarts and its last incident."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from tailrace.contract.health import Health


class State(StrEnum):
    STARTING = "starting"
    RUNNING = "running"
    WAITING = "waiting to restart"
    DRAINING = "draining"
    ENDED = "ended"


@dataclass(frozen=True)
class RecordRange:
    """Records of one partition, one of which was being worked on."""

    topic: str
    partition: int
    first: int
    last: int

    def overlaps(self, other: RecordRange) -> bool:
        same = (self.topic, self.partition) == (other.topic, other.partition)
        return same and self.first <= other.last and other.first <= self.last

    def __str__(self) -> str:
        offsets = f"offset {self.first}" if self.first == self.last else f"offsets {self.first} to {self.last}"
        return f"topic {self.topic}, partition {self.partition}, {offsets}"


@dataclass(frozen=True)
class RestartCounts:
    used: int
    """In a row; a run that stays healthy for long enough resets it."""
    limit: int
    total: int


@dataclass(frozen=True)
class IncidentSummary:
    """The part of an incident report that probes show."""

    ended_at: str
    query: str | None
    code: str
    problem: str
    fix: str
    records: tuple[RecordRange, ...]
    next_step: str


@dataclass(frozen=True)
class RunStatus:
    """The answer of `/health` and `/ready`."""

    state: State
    since: float
    application: Health
    restarts: RestartCounts
    last_incident: IncidentSummary | None

    @property
    def is_ready(self) -> bool:
        """True if rows flow in every query, according to the application."""
        return self.state is State.RUNNING and self.application.is_ready
