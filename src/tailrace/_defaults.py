"""The Spark settings that Tailrace chooses when the user has not, each with its reason."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Default:
    key: str
    value: str
    reason: str


REAL_TIME_DEFAULTS = (
    Default(
        "spark.shuffle.streaming.networkBufferMaxWaitTimeMs",
        "5",
        "How long the streaming shuffle holds a row back to fill a network buffer. Spark's 50 ms is most of the "
        "latency of an aggregation; full buffers leave at once either way.",
    ),
    Default(
        "spark.python.unix.domain.socket.enabled",
        "true",
        "Python workers talk to the executor over Unix sockets. Over TCP small messages wait for an "
        "acknowledgement (Nagle's algorithm), about 50 ms a turn.",
    ),
)
