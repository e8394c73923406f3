"""How big a real-time query must be: task slots, CPU cores, executors, memory, and how often to commit."""

from tailrace.preflight.sizing.by_hand import parse_stages
from tailrace.preflight.sizing.load import Load, bad_size
from tailrace.preflight.sizing.of_run import load_of_run, shape_of_run
from tailrace.preflight.sizing.of_topic import shape_of_topic
from tailrace.preflight.sizing.sizing import Sizing, size_of

__all__ = [
    "Load",
    "Sizing",
    "bad_size",
    "load_of_run",
    "parse_stages",
    "shape_of_run",
    "shape_of_topic",
    "size_of",
]
