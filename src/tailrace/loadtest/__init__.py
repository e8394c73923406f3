"""Load and latency: an open-loop generator, an independent observer, and an honest summary.

The generator sends records at the times of a fixed schedule, whatever the pipeline does, and writes
the *intended* send time into each record. The observer reads the output topic in a process of its
own and takes the difference. A pipeline that stalls therefore shows its stall in every record that
was due meanwhile, instead of slowing the load down and hiding it (coordinated omission).
"""

from tailrace.loadtest.epochs import epoch_ends
from tailrace.loadtest.load_test import LoadTest, Snapshot
from tailrace.loadtest.plot import plot_latency
from tailrace.loadtest.report import LatencyReport, Silence, TimelinePoint

__all__ = ["LatencyReport", "LoadTest", "Silence", "Snapshot", "TimelinePoint", "epoch_ends", "plot_latency"]
