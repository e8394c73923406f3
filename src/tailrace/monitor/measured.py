"""The figures of a query, and those of a stretch of its run."""

from __future__ import annotations

from tailrace.monitor.histogram import Histogram
from tailrace.monitor.news import SeriesNews

FIGURES = ("source_queue", "processing", "end_to_end", "sink", "acknowledgement", "python", "shuffle")


class Measured:
    """What was recorded while somebody measured."""

    def __init__(self) -> None:
        self.figures: dict[str, Histogram] = {figure: Histogram() for figure in FIGURES}
        self.rows_in = 0
        self.rows_out = 0

    def add(self, news: SeriesNews) -> None:
        if news.key.figure in self.figures:
            self.figures[news.key.figure].add(news.counts)

    def copy(self) -> Measured:
        copied = Measured()
        copied.rows_in, copied.rows_out = self.rows_in, self.rows_out
        copied.figures = {name: Histogram.merged([histogram]) for name, histogram in self.figures.items()}
        return copied
