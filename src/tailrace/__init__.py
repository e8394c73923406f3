"""Tailrace: Spark's Real-Time Mode, complete for PySpark."""

from tailrace._version import __version__
from tailrace.errors import TailraceError
from tailrace.kafka import EmbeddedKafka
from tailrace.monitor import Latency, latency, measure
from tailrace.session import configure
from tailrace.web.application import dashboard

__all__ = [
    "EmbeddedKafka",
    "Latency",
    "TailraceError",
    "__version__",
    "configure",
    "dashboard",
    "latency",
    "measure",
]
