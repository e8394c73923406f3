"""All figures of a Spark application: fetches the plugin's message every second and serves snapshots of them."""

from __future__ import annotations

import logging
import threading
from collections import defaultdict
from collections.abc import Callable

from tailrace.contract.codec import from_json
from tailrace.contract.live_figures import LiveFiguresMessage, QueryTerminated
from tailrace.contract.snapshot import Application, History, QueryFigures, Snapshot
from tailrace.monitor.clock import SteadyClock
from tailrace.monitor.executors import ExecutorMonitor
from tailrace.monitor.findings import find
from tailrace.monitor.histogram import Histogram
from tailrace.monitor.measured import Measured
from tailrace.monitor.query import QueryMonitor
from tailrace.monitor.rolling import STEADY

PERIOD_S = 1.0
FRESH_WITHIN_S = 5.0
KEPT_ENDED_QUERIES = 20

logger = logging.getLogger(__name__)


class SessionEndedError(Exception):
    """The Spark session that sent the messages has ended."""


class ApplicationMonitor:
    """Fetches and merges messages on its own thread. Any thread may ask for figures.

    Only that thread fetches: a fetched message is gone from the JVM, and a Ctrl-C on a user's thread must not lose it.
    """

    def __init__(self, take: Callable[[], str], application: Application, clock: SteadyClock | None = None) -> None:
        self._take = take
        self._clock = clock or SteadyClock()
        self._application = application
        self._queries: dict[str, QueryMonitor] = {}
        self._executors: dict[str, ExecutorMonitor] = {}
        self._snapshot: Snapshot | None = None
        self._lock = threading.Lock()
        self._fetched = threading.Condition()
        self._rounds = 0
        self._wanted = threading.Event()
        self._stopped = False
        self._thread = threading.Thread(target=self._run, name="tailrace-monitor", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopped = True
        self._wanted.set()

    def refresh(self) -> None:
        """Wait until everything up to now has been fetched, if the session still runs."""
        with self._fetched:
            # A round in progress may already have fetched.
            wanted = self._rounds + 2
            self._wanted.set()
            self._fetched.wait_for(self._has_done(wanted - 1), FRESH_WITHIN_S)
            self._wanted.set()
            self._fetched.wait_for(self._has_done(wanted), FRESH_WITHIN_S)

    def fetch(self) -> None:
        """One round, on the calling thread."""
        now = self._clock.now()
        try:
            message = self._clock.on_this_clock(from_json(LiveFiguresMessage, self._take()))
        except SessionEndedError:
            self._stopped = True
            with self._lock:
                self._snapshot = None
                for query in self._queries.values():
                    query.end(now)
        except Exception:
            # The next round may succeed; monitoring must never disturb the application.
            logger.debug("The latency figures of the last second could not be fetched", exc_info=True)
        else:
            with self._lock:
                self._snapshot = None
                self._apply(now, message)
        with self._fetched:
            self._rounds += 1
            self._fetched.notify_all()

    def snapshot(self) -> Snapshot:
        """The application: figures of all queries, without history."""
        with self._lock:
            if self._snapshot is None:
                now = self._clock.now()
                self._snapshot = Snapshot(
                    at=now,
                    application=self._application,
                    executors=tuple(one.figures(now) for one in self._executors.values()),
                    queries=tuple(self._with_findings(one, now) for one in self._queries.values() if one.is_real_time),
                )
            return self._snapshot

    def latest(self) -> Snapshot:
        """A snapshot that includes everything up to now."""
        self.refresh()
        return self.snapshot()

    def history(self, run_id: str) -> History | None:
        """One query's curves; None if there is no such query."""
        with self._lock:
            query = self._queries.get(run_id)
            return query.history() if query is not None else None

    def query(self, run_id: str) -> QueryFigures | None:
        """One query's figures; None if there is no such real-time query, or if its rows are not timed."""
        with self._lock:
            found = self._queries.get(run_id)
            return self._with_findings(found, self._clock.now()) if found is not None and found.is_timed else None

    def histogram(self, run_id: str, figure: str, window: str) -> Histogram:
        with self._lock:
            return Histogram.merged([self._queries[run_id].histogram(figure, window)])

    def begin_measuring(self, run_id: str) -> Measured:
        self.refresh()
        with self._lock:
            return self._queries[run_id].begin_measuring()

    def end_measuring(self, run_id: str, measured: Measured) -> None:
        self.refresh()
        with self._lock:
            if run_id in self._queries:
                self._queries[run_id].end_measuring(measured)

    def measured(self, measured: Measured) -> Measured:
        """A copy of a measurement's figures so far."""
        with self._lock:
            return measured.copy()

    def _with_findings(self, query: QueryMonitor, now: float) -> QueryFigures:
        over_a_minute = [one.figures(now, "1m") for one in self._executors.values()]
        findings = find(query.figures(now, ("10s", STEADY)), over_a_minute, now)
        return query.figures(now, findings=tuple(findings))

    def _has_done(self, rounds: int) -> Callable[[], bool]:
        return lambda: self._rounds >= rounds or not self._thread.is_alive()

    def _run(self) -> None:
        while not self._stopped:
            self._wanted.clear()
            self.fetch()
            if not self._stopped:
                self._wanted.wait(PERIOD_S)
        with self._fetched:
            self._fetched.notify_all()

    def _apply(self, now: float, message: LiveFiguresMessage) -> None:
        series, reads, latest = defaultdict(list), defaultdict(list), defaultdict(list)
        for update in message.series:
            series[update.key.run].append(update)
        for read in message.reads:
            reads[read.run].append(read)
        for offset in message.latest_offsets:
            latest[offset.run].append(offset)
        written = {one.run: one.rows for one in message.written}
        for event in message.events:
            self._query(event.run, now).apply_event(event)
        for run in {*series, *reads} - set(self._queries):
            self._query(run, now)
        for run, query in self._queries.items():
            # The last figures of a query may arrive after its end was reported.
            if query.ended_at is None or series[run]:
                query.apply(now, series[run], reads[run], latest[run], written.get(run, 0))
        for event in message.events:
            if isinstance(event, QueryTerminated):
                self._queries[event.run].end(now)
        self._forget_old_queries()
        self._apply_executors(now, message)

    def _apply_executors(self, now: float, message: LiveFiguresMessage) -> None:
        for health in message.executors:
            self._executors.setdefault(health.executor, ExecutorMonitor(health.executor)).apply(now, health)
        for executor in self._executors.values():
            executor.advance(now)
        for gone in [id for id, executor in self._executors.items() if executor.is_gone(now)]:
            del self._executors[gone]

    def _query(self, run_id: str, now: float) -> QueryMonitor:
        return self._queries.setdefault(run_id, QueryMonitor(run_id, now))

    def _forget_old_queries(self) -> None:
        ended = [(query.ended_at, run) for run, query in self._queries.items() if query.ended_at is not None]
        real_time = sorted(entry for entry in ended if self._queries[entry[1]].is_real_time)
        others = [entry for entry in ended if not self._queries[entry[1]].is_real_time]
        for _, run in [*real_time[:-KEPT_ENDED_QUERIES], *others]:
            del self._queries[run]
