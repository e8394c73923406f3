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
        "1",
        "How long the streaming shuffle holds a row back to fill a network buffer. Spark's 50 ms is most of the "
        "latency of an aggregation. Full buffers leave at once either way.",
    ),
    Default(
        "spark.python.unix.domain.socket.enabled",
        "true",
        "Python workers talk to the executor over Unix sockets. Over TCP, a small message can wait for the "
        "acknowledgement of the previous one (Nagle's algorithm).",
    ),
    Default(
        "spark.sql.streaming.checkpointFileManagerClass",
        "org.apache.spark.sql.tailrace.checkpoint.CheckpointFiles",
        "How checkpoints are written. On a local or mounted disk, Hadoop starts about ten processes for each file, "
        "which is most of the pause at an epoch boundary of a stateful query. This class writes the same files "
        "without starting any. Other file systems get Spark's own.",
    ),
    Default(
        "spark.scheduler.minRegisteredResourcesRatio",
        "1.0",
        "Spark waits for all requested executors before it starts work. A stateful real-time query needs all its "
        "task slots at once and fails if it starts a moment too early. On a standalone cluster, set the number with "
        "spark.cores.max.",
    ),
)

# Spark hides the options and settings whose names or values this matches. Its own pattern finds passwords, and misses
# private keys (kafka.ssl.keystore.key) and JAAS configurations that take a password from somewhere else.
REDACTION = {"spark.redaction.regex": "(?i)secret|password|token|access[.]?key|jaas|keystore[.]key|PRIVATE.KEY"}
