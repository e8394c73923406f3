"""What `start()` returns to a script whose streams are only checked."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any


def _new_id() -> str:
    return str(uuid.uuid4())


@dataclass
class StubQuery:
    """Stands for a query that was only checked: it has ended, without an error and without a row."""

    name: str | None
    on_stop: Callable[[], None]
    """Called when the script stops the query."""
    id: str = field(default_factory=_new_id)
    runId: str = field(default_factory=_new_id)
    isActive: bool = False
    lastProgress: None = None
    recentProgress: list[Any] = field(default_factory=list)
    status: dict[str, Any] = field(default_factory=lambda: {"message": "Not started", "isTriggerActive": False})

    def awaitTermination(self, timeout: float | None = None) -> bool:
        return True

    def exception(self) -> None:
        return None

    def stop(self) -> None:
        self.on_stop()

    def processAllAvailable(self) -> None:
        pass

    def explain(self, extended: bool = False) -> None:
        pass
