"""Windows do not depend on how somebody sets the clock."""

from __future__ import annotations

import pytest

from tailrace.contract.codec import to_json
from tailrace.contract.live_figures import (
    EpochLaunched,
    LiveFiguresMessage,
    QueryEvent,
    QueryPlanned,
    QueryStarted,
    QueryTerminated,
    ReadProgress,
)
from tailrace.contract.snapshot import Application, QueryFigures, QueryStatus
from tailrace.monitor.application import ApplicationMonitor
from tailrace.monitor.clock import SteadyClock
from tailrace.monitor.health import health_of

APPLICATION = Application("a", "payments", "local[8]", "4.3.0", "0.1.0")
HOUR_S = 3600.0
START_S = 1_794_800_000.0


class Times:
    """Time passes on both clocks; only one of them can be set."""

    def __init__(self) -> None:
        self.wall_s = START_S
        self.monotonic_s = 77.0

    def passes(self, seconds: float = 1.0) -> None:
        self.wall_s += seconds
        self.monotonic_s += seconds

    def clock(self) -> SteadyClock:
        return SteadyClock(lambda: self.wall_s, lambda: self.monotonic_s)


class Query:
    """A query that reads ten rows a second, as its JVM tells by the wall clock."""

    def __init__(self, times: Times, *, timed: bool = True) -> None:
        self.times = times
        self.told: list[QueryEvent] = [
            QueryStarted("r", "i", "scores", self._now_ms(), real_time=True),
            QueryPlanned("r", 5000, (), timed=timed),
        ]
        self.read = 0
        self.rows = 10
        self.began_us = self._now_ms() * 1000
        self.monitor = ApplicationMonitor(self._take, APPLICATION, times.clock())

    def run(self, seconds: int) -> QueryFigures:
        for _ in range(seconds):
            self.times.passes()
            self.monitor.fetch()
        [figures] = self.monitor.snapshot().queries
        return figures

    def _take(self) -> str:
        self.read += self.rows
        read = ReadProgress("r", 0, "in", 0, self.began_us, 0, self.read, self.rows)
        events, self.told = tuple(self.told), []
        return to_json(LiveFiguresMessage((), (read,) if self.rows else (), (), (), (), events))

    def _now_ms(self) -> int:
        return int(self.times.wall_s * 1000)


@pytest.mark.parametrize("by_s", [-HOUR_S, HOUR_S, -1e9])
def test_windows_forget_after_the_clock_was_set(by_s: float) -> None:
    times = Times()
    query = Query(times)
    assert query.run(30).windows["10s"].rows_in == 100
    times.wall_s += by_s
    assert query.run(30).windows["10s"].rows_in == 100
    query.rows = 0
    figures = query.run(70)
    assert figures.windows["10s"].rows_in == 0
    assert figures.windows["1m"].rows_in == 0
    assert figures.windows["run"].rows_in == 600
    assert figures.windows["run"].seconds == pytest.approx(130, abs=2)


@pytest.mark.parametrize("by_s", [-HOUR_S, HOUR_S])
def test_a_query_that_starts_after_the_clock_was_set(by_s: float) -> None:
    times = Times()
    clock = times.clock()
    times.wall_s += by_s
    query = Query(times)
    query.monitor = ApplicationMonitor(query._take, APPLICATION, clock)
    figures = query.run(20)
    assert figures.windows["run"].seconds == pytest.approx(20, abs=2)
    assert figures.windows["run"].rows_in_per_s == pytest.approx(10, rel=0.2)
    assert figures.status is QueryStatus.RUNNING


def test_small_differences_are_left_alone() -> None:
    times = Times()
    clock = times.clock()
    times.wall_s += 0.5
    message = LiveFiguresMessage((), (), (), (), (), (QueryStarted("r", "i", None, 5, real_time=True),))
    assert clock.on_this_clock(message) is message


# Readiness


def told(*events: QueryEvent) -> ApplicationMonitor:
    monitor = ApplicationMonitor(lambda: to_json(LiveFiguresMessage((), (), (), (), (), events)), APPLICATION)
    monitor.fetch()
    return monitor


STARTED = QueryStarted("r", "i", "scores", int(START_S * 1000), real_time=True)
UNTIMED = QueryPlanned("r", 5000, (), timed=False)


def test_a_query_that_hangs_in_its_first_planning_is_known_and_not_ready() -> None:
    health = health_of(told(STARTED).snapshot())
    assert health.queries == {"starting": ("scores",)}
    assert not health.is_ready


def test_a_query_whose_rows_are_not_timed_is_ready_when_its_tasks_run() -> None:
    assert not health_of(told(STARTED, UNTIMED).snapshot()).is_ready
    monitor = told(STARTED, UNTIMED, EpochLaunched("r", 0, int(START_S * 1000)))
    assert health_of(monitor.snapshot()).is_ready
    assert monitor.query("r") is None, "there is nothing to show of it"


def test_a_query_that_fails_in_its_first_planning_is_a_failure() -> None:
    assert health_of(told(STARTED, QueryTerminated("r", "boom")).snapshot()).status == "failed"
