"""What the functions of `tailrace` return, for type hints."""

from tailrace.monitor import Latency, Measurement
from tailrace.preflight.picture import Explanation
from tailrace.preflight.sizing import Sizing
from tailrace.preflight.verdict import Verdict

__all__ = ["Explanation", "Latency", "Measurement", "Sizing", "Verdict"]
