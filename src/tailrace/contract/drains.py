"""A request to drain queries through the dashboard's server, and its answers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tailrace.contract.codec import encode


@dataclass(frozen=True)
class Drained:
    """A query that was drained: everything it had read is committed."""

    query: str
    run_id: str
    epoch: int | None
    """The last committed epoch; None if there was none."""
    seconds: float

    def to_dict(self) -> dict[str, Any]:
        """The fields as plain values."""
        encoded: dict[str, Any] = encode(self)
        return encoded

    def __str__(self) -> str:
        committed = "nothing to commit" if self.epoch is None else f"epoch {self.epoch} committed"
        return f"{self.query}: drained in {self.seconds:.1f} s, {committed}"


@dataclass(frozen=True)
class DrainRequest:
    """Drain the query of that name or id, or all of them, within `timeout_s`."""

    query: str | None
    timeout_s: float


@dataclass(frozen=True)
class DrainAnswer:
    drained: tuple[Drained, ...]


@dataclass(frozen=True)
class DrainRefusal:
    """Why a drain failed: the fields of a TailraceError."""

    code: str
    problem: str
    fix: str
