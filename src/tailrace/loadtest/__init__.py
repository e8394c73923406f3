"""Load tests: an open-loop generator and an independent observer.

The generator sends records on a fixed schedule, whatever the pipeline does, and writes the *intended* send time into
each record. The observer reads the output topic or the store in its own process and takes the difference. A stall
therefore shows in every record that was due during it. A closed loop would slow the load down and hide it
(coordinated omission).
"""

from tailrace.loadtest.epochs import epoch_ends
from tailrace.loadtest.load_test import LoadSnapshot, LoadTest
from tailrace.loadtest.plot import plot_latency
from tailrace.loadtest.query import raise_if_ended
from tailrace.loadtest.rehearsal import measure_query, rehearse
from tailrace.loadtest.report import LatencyReport, Silence, TimelinePoint
from tailrace.loadtest.topic import read_topic

__all__ = [
    "LatencyReport",
    "LoadSnapshot",
    "LoadTest",
    "Silence",
    "TimelinePoint",
    "epoch_ends",
    "measure_query",
    "plot_latency",
    "raise_if_ended",
    "read_topic",
    "rehearse",
]
