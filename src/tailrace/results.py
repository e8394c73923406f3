"""What the functions of `tailrace` return, for type hints."""

from tailrace.lifecycle.drain import Drained
from tailrace.monitor import Latency, Measurement
from tailrace.preflight.picture import Explanation
from tailrace.preflight.sizing import Sizing
from tailrace.preflight.verdict import Verdict

__all__ = ["Drained", "Explanation", "Latency", "Measurement", "Sizing", "Verdict"]
