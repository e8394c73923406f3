"""When the epochs of a query ended, as Spark reports it."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import datetime
from typing import Any

from pyspark.sql.streaming.query import StreamingQuery

from tailrace.errors import TailraceError

# Spark reports an epoch's progress a moment after its end.
TOLD_WITHIN_S = 1.0


def epoch_ends(query: StreamingQuery) -> list[float]:
    """Return when the query's remembered epochs ended, in seconds since 1970."""
    asked = time.time()
    while True:
        ends = [_end(progress) for progress in query.recentProgress]
        if time.time() - asked > TOLD_WITHIN_S or (ends and ends[-1] > asked - TOLD_WITHIN_S):
            return ends
        time.sleep(0.1)


def wait_for_epochs(
    query: StreamingQuery, epochs: int, *, timeout_s: float = 120, check: Callable[[], None] = lambda: None
) -> None:
    """Wait until this many epochs have ended. `check` may raise to give up earlier."""
    deadline = time.monotonic() + timeout_s
    while len(query.recentProgress) < epochs:
        check()
        time.sleep(0.1)
        if time.monotonic() > deadline:
            raise TailraceError(
                "TAILRACE_QUERY_FAILED",
                f"the query did not complete {epochs} epochs in {timeout_s:g} s.",
                "read Spark's log.",
            )


def _end(progress: Any) -> float:
    began = datetime.fromisoformat(progress["timestamp"].replace("Z", "+00:00"))
    return began.timestamp() + float(progress["durationMs"]["triggerExecution"]) / 1000
