"""The live latency of real-time queries: from the plugin's messages to figures, findings and reports."""

from tailrace.monitor.application import ApplicationMonitor
from tailrace.monitor.live import monitor_of
from tailrace.monitor.measure import Measurement, latency, measure
from tailrace.monitor.report import Latency

__all__ = ["ApplicationMonitor", "Latency", "Measurement", "latency", "measure", "monitor_of"]
