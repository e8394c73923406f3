"""A line on standard error for each step of a long measurement. Only the tables go to standard output."""

from __future__ import annotations

import sys
import time


class Progress:
    def __init__(self, what: str, steps: int) -> None:
        self._what = what
        self._steps = steps
        self._step = 0
        self._begun = time.monotonic()

    def step(self, now: str) -> None:
        """Begin one."""
        left = ""
        if self._step:
            minutes = (time.monotonic() - self._begun) / self._step * (self._steps - self._step) / 60
            left = f", about {minutes:.1f} min left"
        self._step += 1
        print(f"{self._what} {self._step}/{self._steps}: {now}{left}", file=sys.stderr, flush=True)
