"""What the driver reports: marked lines of its output that the harness picks out of Spark's."""

from __future__ import annotations

import json
import sys
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
    event = json.dumps({"name": name, "at": time.monotonic(), "query": query, "reason": reason})
    # In one write: several threads report, and their lines must not mix.
    sys.stdout.write(f"{MARK}{event}\n")
    sys.stdout.flush()


def heard(line: str) -> Event | None:
    """The event in a line of output, if it is one; what the JVM may have written behind it is not of it."""
    return Event(**json.JSONDecoder().raw_decode(line[len(MARK) :])[0]) if line.startswith(MARK) else None
