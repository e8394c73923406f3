"""All figures of a Spark application: fetches the plugin's news every second and answers what they come to."""

from __future__ import annotations

import logging
import threading
import time
from collections import defaultdict
from collections.abc import Callable
from typing import Any

from tailrace.monitor.executors import ExecutorFigures
from tailrace.monitor.findings import find
from tailrace.monitor.histogram import Histogram
from tailrace.monitor.measured import Measured
from tailrace.monitor.news import News
from tailrace.monitor.query import QueryFigures
from tailrace.monitor.rolling import STEADY

PERIOD_S = 1.0
FRESH_WITHIN_S = 5.0
KEPT_ENDED_QUERIES = 20

logger = logging.getLogger(__name__)


class SessionEndedError(Exception):
    """There is nobody any more to tell the news."""


class ApplicationMonitor:
    """Fetches and merges news on a thread of its own; may be asked from any thread.

    Only that thread fetches: what is fetched is gone from the JVM, and must not be lost to a Ctrl-C on a user's thread.
    """

    def __init__(self, take: Callable[[], str], application: dict[str, Any]) -> None:
        self._take = take
        self._application = application
        self._queries: dict[str, QueryFigures] = {}
        self._executors: dict[str, ExecutorFigures] = {}
        self._snapshot: dict[str, Any] | None = None
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
        """Wait for news that are fetched from now on, if there is still somebody to give them."""
        with self._fetched:
            # A round that is under way may have fetched already.
            wanted = self._rounds + 2
            self._wanted.set()
            self._fetched.wait_for(self._has_done(wanted - 1), FRESH_WITHIN_S)
            self._wanted.set()
            self._fetched.wait_for(self._has_done(wanted), FRESH_WITHIN_S)

    def fetch(self) -> None:
        """One round, on the thread that calls."""
        now = time.time()
        try:
            news = News.parse(self._take())
        except SessionEndedError:
            self._stopped = True
            with self._lock:
                self._snapshot = None
                for query in self._queries.values():
                    query.end(now)
        except Exception:
            # The next round may succeed; nothing that only watches may disturb the application.
            logger.debug("The latency figures of the last second could not be fetched", exc_info=True)
        else:
            with self._lock:
                self._snapshot = None
                self._apply(now, news)
        with self._fetched:
            self._rounds += 1
            self._fetched.notify_all()

    def snapshot(self) -> dict[str, Any]:
        """The application: figures of all queries, without history."""
        with self._lock:
            if self._snapshot is None:
                now = time.time()
                self._snapshot = {
                    "at": now,
                    "application": self._application,
                    "executors": [one.snapshot(now) for one in self._executors.values()],
                    "queries": [self._with_findings(one, now) for one in self._queries.values() if one.is_real_time],
                }
            return self._snapshot

    def latest(self) -> dict[str, Any]:
        """A snapshot that knows what has happened until now."""
        self.refresh()
        return self.snapshot()

    def history(self, run_id: str) -> dict[str, Any] | None:
        """One query's curves; None if there is no such query."""
        with self._lock:
            query = self._queries.get(run_id)
            return query.history() if query is not None else None

    def query(self, run_id: str) -> dict[str, Any] | None:
        """One query's figures; None if there is no such real-time query."""
        with self._lock:
            found = self._queries.get(run_id)
            return self._with_findings(found, time.time()) if found is not None and found.is_real_time else None

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
        """A copy of what a measurement has so far."""
        with self._lock:
            return measured.copy()

    def _with_findings(self, query: QueryFigures, now: float) -> dict[str, Any]:
        over_a_minute = [one.snapshot(now, "1m") for one in self._executors.values()]
        findings = find(query.snapshot(now, ("10s", STEADY)), over_a_minute, now)
        return query.snapshot(now) | {"findings": [finding.to_dict() for finding in findings]}

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

    def _apply(self, now: float, news: News) -> None:
        series, reads, newest = defaultdict(list), defaultdict(list), defaultdict(list)
        for one in news.series:
            series[one.run].append(one)
        for read in news.reads:
            reads[read.run].append(read)
        for offset in news.newest:
            newest[offset.run].append(offset)
        for event in news.events:
            self._query(event["run"], now).apply_event(event)
        for run in {*series, *reads} - set(self._queries):
            self._query(run, now)
        for run, query in self._queries.items():
            # The last figures of a query that has ended may come after the news of its end.
            if query.ended_at is None or series[run]:
                query.apply(now, series[run], reads[run], newest[run], news.written.get(run, 0))
        for event in news.events:
            if event["event"] == "terminated":
                self._queries[event["run"]].end(now)
        self._forget_old_queries()
        self._apply_executors(now, news)

    def _apply_executors(self, now: float, news: News) -> None:
        for one in news.executors:
            self._executors.setdefault(one.id, ExecutorFigures(one.id)).apply(now, one)
        for executor in self._executors.values():
            executor.advance(now)
        for gone in [id for id, executor in self._executors.items() if executor.is_gone(now)]:
            del self._executors[gone]

    def _query(self, run_id: str, now: float) -> QueryFigures:
        return self._queries.setdefault(run_id, QueryFigures(run_id, now))

    def _forget_old_queries(self) -> None:
        ended = [(query.ended_at, run) for run, query in self._queries.items() if query.ended_at is not None]
        real_time = sorted(entry for entry in ended if self._queries[entry[1]].is_real_time)
        others = [entry for entry in ended if not self._queries[entry[1]].is_real_time]
        for _, run in [*real_time[:-KEPT_ENDED_QUERIES], *others]:
            del self._queries[run]
