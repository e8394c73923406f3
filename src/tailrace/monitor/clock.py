"""The monitor's time: that of the wall clock when the monitor began, and never set since.

With the wall clock itself, windows would keep their figures for an hour after the clock was set back by one, and the
figures of a query would vanish when it was set forward.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable

from tailrace.contract.live_figures import (
    EpochCommitted,
    EpochFinished,
    EpochLaunched,
    LiveFiguresMessage,
    QueryEvent,
    QueryStarted,
    ReadProgress,
)

# Below this, the difference is how long the two clocks take to read and how they are kept in step.
SET_BY_S = 1.0


class SteadyClock:
    def __init__(self, wall: Callable[[], float] = time.time, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._wall, self._monotonic = wall, monotonic
        self._ahead = wall() - monotonic()

    def now(self) -> float:
        """Seconds since 1970, unless the wall clock was set: then by how it was before."""
        return self._monotonic() + self._ahead

    def on_this_clock(self, message: LiveFiguresMessage) -> LiveFiguresMessage:
        """The message with the times that the JVMs would have noted by this clock."""
        behind_s = self.now() - self._wall()
        if abs(behind_s) < SET_BY_S:
            return message
        return dataclasses.replace(
            message,
            events=tuple(_moved_event(event, round(behind_s * 1e3)) for event in message.events),
            reads=tuple(_moved_read(read, round(behind_s * 1e6)) for read in message.reads),
        )


def _moved_event(event: QueryEvent, by_ms: int) -> QueryEvent:
    match event:
        case QueryStarted() | EpochLaunched() | EpochFinished() | EpochCommitted():
            return dataclasses.replace(event, at_ms=event.at_ms + by_ms)
    return event


def _moved_read(read: ReadProgress, by_us: int) -> ReadProgress:
    # Zero is no time: the task has not begun, or not ended.
    began, ended = (at and at + by_us for at in (read.began_us, read.ended_us))
    return dataclasses.replace(read, began_us=began, ended_us=ended)
