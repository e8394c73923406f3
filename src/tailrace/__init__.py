"""Tailrace: Spark's Real-Time Mode, complete for PySpark."""

from tailrace._version import __version__
from tailrace.errors import TailraceError
from tailrace.kafka import EmbeddedKafka
from tailrace.monitor import Latency, latency, measure
from tailrace.preflight.check import check
from tailrace.preflight.explain import explain
from tailrace.preflight.picture import Explanation
from tailrace.preflight.size import size
from tailrace.preflight.sizing import Sizing
from tailrace.preflight.verdict import Verdict
from tailrace.session import configure
from tailrace.web.application import dashboard

__all__ = [
    "EmbeddedKafka",
    "Explanation",
    "Latency",
    "Sizing",
    "TailraceError",
    "Verdict",
    "__version__",
    "check",
    "configure",
    "dashboard",
    "explain",
    "latency",
    "measure",
    "size",
]
