"""How busy the machine is. On a busy one everything takes longer, so deadlines that bound a hang grow with the load."""

from __future__ import annotations

import os

LONGEST_STRETCH = 10.0


def load_per_core() -> float:
    """The runnable processes for each core, over the last minute."""
    return os.getloadavg()[0] / (os.cpu_count() or 1)


def stretched(seconds: float) -> float:
    """A deadline for this machine as it is now: longer by the load, at most ten times."""
    return seconds * min(LONGEST_STRETCH, max(1.0, load_per_core()))
