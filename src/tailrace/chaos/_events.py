"""What the driver says of itself: lines of its output that the harness picks from Spark's."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass

MARK = "tailrace-chaos "


@dataclass(frozen=True)
class Event:
    """A step of the driver's: `process`, `session`, `started`, `queries`, or a query that `ended` or was `refused`."""

    name: str
    at: float
    query: str = ""
    reason: str = ""


def tell(name: str, *, query: str = "", reason: str = "") -> None:
    print(MARK + json.dumps({"name": name, "at": time.monotonic(), "query": query, "reason": reason}), flush=True)


def heard(line: str) -> Event | None:
    """The event in a line of output, if it is one."""
    return Event(**json.loads(line[len(MARK) :])) if line.startswith(MARK) else None
