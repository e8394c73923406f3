"""Tailrace: Spark's Real-Time Mode, complete for PySpark."""

from tailrace._version import __version__
from tailrace.deduplication import drop_duplicates
from tailrace.errors import TailraceError
from tailrace.functions import session_status
from tailrace.kafka import EmbeddedKafka
from tailrace.lifecycle.drain import drain
from tailrace.monitor import latency, measure
from tailrace.preflight.check import check
from tailrace.preflight.explain import explain
from tailrace.preflight.size import size
from tailrace.session import configure
from tailrace.web.application import dashboard

__all__ = [
    "EmbeddedKafka",
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
