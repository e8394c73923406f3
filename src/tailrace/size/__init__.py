"""How big a real-time query must be: task slots, CPU cores, executors, memory, and how often to commit."""

from tailrace.size.by_hand import parse_stages
from tailrace.size.load import Load, bad_size
from tailrace.size.of_run import load_of_run, shape_of_run
from tailrace.size.of_topic import shape_of_topic
from tailrace.size.sizing import Sizing, size_of

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
