"""The figures of part of a query's run."""

from __future__ import annotations

from tailrace.contract.live_figures import SeriesUpdate
from tailrace.contract.snapshot import FIGURES
from tailrace.monitor.histogram import Histogram


class Measured:
    """What was recorded during a measurement."""

    def __init__(self) -> None:
        self.figures: dict[str, Histogram] = {figure: Histogram() for figure in FIGURES}
        self.rows_in = 0
        self.rows_out = 0

    def add(self, update: SeriesUpdate) -> None:
        if update.key.figure in self.figures:
            self.figures[update.key.figure].add(update.counts)

    def copy(self) -> Measured:
        copied = Measured()
        copied.rows_in, copied.rows_out = self.rows_in, self.rows_out
        copied.figures = {name: Histogram.merged([histogram]) for name, histogram in self.figures.items()}
        return copied
