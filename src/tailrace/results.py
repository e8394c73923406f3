"""The types that the functions of `tailrace` return, for type hints."""

from tailrace.check.verdict import Verdict
from tailrace.explain import Explanation
from tailrace.monitor import Latency, Measurement
from tailrace.size import Sizing
from tailrace.supervise.drain import Drained

__all__ = ["Drained", "Explanation", "Latency", "Measurement", "Sizing", "Verdict"]
