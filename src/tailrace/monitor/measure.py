"""`latency` and `measure`: the figures of a query in this process."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from pyspark.sql.streaming.query import StreamingQuery

from tailrace.contract.snapshot import QueryFigures
from tailrace.errors import TailraceError
from tailrace.monitor.application import ApplicationMonitor
from tailrace.monitor.live import monitor_of, session_of_this_process
from tailrace.monitor.measured import Measured
from tailrace.monitor.report import Latency
from tailrace.monitor.traffic import query_window

# A query becomes known when its first epoch is planned.
KNOWN_WITHIN_S = 10.0


def latency(query: StreamingQuery, window: str = "10s") -> Latency:
    """Return the latency of a real-time query: by figure, by stage and by source partition.

        print(tailrace.latency(query))

    It also works for a query that has ended.

    :param window: the window that the result's figures are taken from: "10s", "1m" or "run". `to_dict()` has all three.
    """
    monitor = monitor_of(session_of_this_process())
    monitor.refresh()
    found = _figures(monitor, query)
    run_id = str(query.runId)
    return Latency(found, lambda figure, over: monitor.histogram(run_id, figure, over), window)


class Measurement:
    """What was recorded inside a `with tailrace.measure(query)` block."""

    def __init__(self, monitor: ApplicationMonitor, query: StreamingQuery) -> None:
        self._monitor = monitor
        self._query = query
        self._begun = time.monotonic()
        self._ended: float | None = None
        self._measured: Measured = monitor.begin_measuring(str(query.runId))
        self._final: Latency | None = None

    @property
    def latency(self) -> Latency:
        """The figures so far; after the block, those of the whole measurement."""
        if self._final is not None:
            return self._final
        self._monitor.refresh()
        return self._report()

    def _end(self) -> None:
        self._monitor.end_measuring(str(self._query.runId), self._measured)
        self._ended = time.monotonic()
        self._final = self._report()

    def _report(self) -> Latency:
        figures = _figures(self._monitor, self._query)
        measured = self._monitor.measured(self._measured)
        seconds = (self._ended or time.monotonic()) - self._begun
        distributions = {name: histogram.distribution() for name, histogram in measured.figures.items()}
        window = query_window(seconds, measured.rows_in, measured.rows_out, distributions)
        figures = replace(figures, windows={**figures.windows, "measured": window})
        return Latency(figures, lambda figure, _: measured.figures[figure], "measured")


@contextmanager
def measure(query: StreamingQuery) -> Iterator[Measurement]:
    """Measure part of a query's run.

        with tailrace.measure(query) as measurement:
            ...
        print(measurement.latency)

    The figures cover the time inside the block.
    """
    monitor = monitor_of(session_of_this_process())
    monitor.refresh()
    if not query.isActive:
        raise TailraceError(
            "TAILRACE_QUERY_ENDED",
            f"the query {query.name or query.id} has ended, so there is nothing to measure.",
            "start it first; tailrace.latency(query) still has what was recorded before.",
        )
    _figures(monitor, query)
    measurement = Measurement(monitor, query)
    try:
        yield measurement
    finally:
        measurement._end()


def _figures(monitor: ApplicationMonitor, query: StreamingQuery) -> QueryFigures:
    """The figures of a query that may have just been started."""
    deadline = time.monotonic() + KNOWN_WITHIN_S
    while (found := monitor.query(str(query.runId))) is None:
        if time.monotonic() > deadline or not query.isActive:
            raise TailraceError(
                "TAILRACE_NO_FIGURES",
                f"there are no figures of the query {query.name or query.id}.",
                "only queries with .trigger(realTime=…) are timed, and only while spark.tailrace.latency.enabled is "
                "not false; a query that ended long ago is forgotten.",
            )
        time.sleep(0.1)
        monitor.refresh()
    return found
