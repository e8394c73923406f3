"""Tailrace: Spark's Real-Time Mode, complete for PySpark."""

from tailrace._version import __version__
from tailrace.check.check import check
from tailrace.dashboard.application import dashboard
from tailrace.errors import TailraceError
from tailrace.explain.explain import explain
from tailrace.functions import drop_duplicates, session_status
from tailrace.kafka import EmbeddedKafka
from tailrace.monitor import latency, measure
from tailrace.postgres import EmbeddedPostgres
from tailrace.redis import EmbeddedRedis
from tailrace.session import configure
from tailrace.size.size import size
from tailrace.supervise.drain import drain

__all__ = [
    "EmbeddedKafka",
    "EmbeddedPostgres",
    "EmbeddedRedis",
    "TailraceError",
    "__version__",
    "check",
    "configure",
    "dashboard",
    "drain",
    "drop_duplicates",
    "explain",
    "latency",
    "measure",
    "session_status",
    "size",
]
