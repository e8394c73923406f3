"""What a script gets from `start()` when its streams are only looked at."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass
class NeverStarted:
    """Stands for a query that was only looked at: it has ended, without an error and without a row."""

    name: str | None
    id: str = "not-started"
    runId: str = "not-started"
    isActive: bool = False
    lastProgress: None = None
    recentProgress: list[Any] = field(default_factory=list)
    status: dict[str, Any] = field(default_factory=lambda: {"message": "Not started", "isTriggerActive": False})

    def awaitTermination(self, timeout: float | None = None) -> bool:
        return True

    def exception(self) -> None:
        return None

    def stop(self) -> None:
        pass

    def processAllAvailable(self) -> None:
        pass

    def explain(self, extended: bool = False) -> None:
        pass
