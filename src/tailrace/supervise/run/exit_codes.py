"""The exit codes of `tailrace run`. 1 and 2 are those of every command: an error before the start, wrong usage."""

from __future__ import annotations

from enum import IntEnum


class ExitCode(IntEnum):
    OK = 0
    """Drained, or the application ended by itself without an error."""
    NOT_CURABLE = 3
    """It failed in a way that a restart cannot fix."""
    RESTART_LIMIT = 4
    """It failed more often in a row than --restarts allows."""
    NOT_DRAINED = 5
    """Its epoch could not be committed in time: the next run replays it."""


def after_signal(number: int) -> int:
    """As in a shell, for a run that was stopped at once: 130 for Ctrl-C, 143 for SIGTERM."""
    return 128 + number
