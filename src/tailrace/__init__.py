"""Tailrace: Spark's Real-Time Mode, complete for PySpark."""

from tailrace._version import __version__
from tailrace.errors import TailraceError
from tailrace.kafka import EmbeddedKafka
from tailrace.session import configure

__all__ = ["EmbeddedKafka", "TailraceError", "__version__", "configure"]
