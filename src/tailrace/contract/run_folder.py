"""The files that an application under `tailrace run` leaves for its supervisor."""

from __future__ import annotations

from dataclasses import dataclass, field

from tailrace.contract.snapshot import QueryStatus


@dataclass(frozen=True)
class DashboardReport:
    """Where the supervisor asks for the queries' health, and the token to drain them."""

    url: str
    token: str = field(repr=False)


@dataclass(frozen=True)
class StartedQuery:
    name: str | None
    id: str
    run_id: str
    checkpoint: str
    """Empty if it is not known."""

    @property
    def label(self) -> str:
        return self.name or self.id


@dataclass(frozen=True)
class StartedQueries:
    queries: tuple[StartedQuery, ...]


@dataclass(frozen=True)
class FailureReport:
    """The exception that ended the script."""

    type: str
    message: str


@dataclass(frozen=True)
class PartitionOffset:
    """The last offset that was read of a partition; None if none was."""

    topic: str
    partition: int
    offset: int | None


@dataclass(frozen=True)
class LastRun:
    """A query's run when the process ended, or when the supervisor last looked."""

    name: str | None
    id: str | None
    run_id: str
    status: QueryStatus
    error: str | None
    started_at: float
    partitions: tuple[PartitionOffset, ...]

    @property
    def label(self) -> str:
        return self.name or self.id or self.run_id


@dataclass(frozen=True)
class ExitReport:
    queries: tuple[LastRun, ...]
