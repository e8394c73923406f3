"""How often and how soon an application is restarted."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass


@dataclass
class Restarts:
    """A limit of restarts in a row. A run that stays healthy for long enough resets the counter."""

    limit: int
    first_delay_s: float = 2.0
    longest_delay_s: float = 60.0
    stable_after_s: float = 600.0
    used: int = 0

    def next_delay_s(self, chance: Callable[[], float] = random.random) -> float | None:
        """How long to wait before the next restart; None if none is left."""
        if self.used >= self.limit:
            return None
        self.used += 1
        # Doubled each time, with jitter: the applications of a cluster should not all restart at the same moment.
        full = min(self.longest_delay_s, self.first_delay_s * 2.0 ** min(self.used - 1, 30))
        return full * (0.5 + chance() / 2)

    def healthy_for(self, seconds: float) -> None:
        """Reset the counter if the run has been healthy for long enough."""
        if seconds >= self.stable_after_s:
            self.used = 0
