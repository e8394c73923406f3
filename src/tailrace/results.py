"""The types that the functions of `tailrace` return, for type hints."""

from tailrace.check.verdict import Verdict
from tailrace.contract.drains import Drained
from tailrace.contract.findings import Finding, Severity
from tailrace.contract.snapshot import Distribution, QueryFigures, QueryStatus
from tailrace.explain import Explanation
from tailrace.monitor import Latency, Measurement
from tailrace.size import Sizing

__all__ = [
    "Distribution",
    "Drained",
    "Explanation",
    "Finding",
    "Latency",
    "Measurement",
    "QueryFigures",
    "QueryStatus",
    "Severity",
    "Sizing",
    "Verdict",
]
