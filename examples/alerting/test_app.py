"""Alerts by the test's own clock, and on a real broker: each once, and none missing."""

from __future__ import annotations

import os

import pytest
from app import LATE_MS, REQUEST, SILENCE_MS, watch
from load import FAILING, PERIOD, SERVICES, raises_alert
from run import measure, servers

from tailrace.testing import Results, StreamTest, session


def test_silence_is_an_alert_and_so_is_its_end() -> None:
    spark = session()
    with StreamTest(spark) as test:
        requests = test.source(REQUEST)
        alerts = test.start(watch(requests.rows))
        requests.add((1, now_ns(test), "shop", 200), (2, now_ns(test), "search", 200))
        test.advance(milliseconds=SILENCE_MS // 2)
        requests.add((3, now_ns(test), "search", 200))
        test.advance(milliseconds=SILENCE_MS // 2 + LATE_MS)
        assert said(alerts) == [("shop", "silent", 1)]
        requests.add((4, now_ns(test), "shop", 200))
        test.process()
        assert said(alerts)[1:] == [("shop", "back", 4)]
    spark.stop()


def test_requests_that_are_read_late_tell_of_the_same_silence() -> None:
    """As in a replay, timers fire after the rows in micro-batch."""
    spark = session()
    with StreamTest(spark, mode="micro-batch") as test:
        requests = test.source(REQUEST)
        alerts = test.start(watch(requests.rows))
        began_ns = now_ns(test)
        test.advance(milliseconds=10 * SILENCE_MS)
        times_ms = (0, SILENCE_MS - 1, 3 * SILENCE_MS)
        requests.add(*((n, began_ns + at_ms * 1_000_000, "shop", 200) for n, at_ms in enumerate(times_ms)))
        test.process()
        assert said(alerts) == [("shop", "silent", 1), ("shop", "back", 2), ("shop", "silent", 2)]
    spark.stop()


def now_ns(test: StreamTest) -> int:
    return int(test.now.timestamp() * 1000) * 1_000_000


def said(alerts: Results) -> list[tuple[str, str, int]]:
    return [(row.service, row.alert, row.request) for row in alerts.rows()]


def test_each_alert_is_sent_once(monkeypatch: pytest.MonkeyPatch) -> None:
    with servers() as environment:
        for name, value in environment.items():
            monkeypatch.setitem(os.environ, name, value)
        result = measure(seconds=4, rate=200)
    assert (result.at_the_consumer.lost, result.at_the_consumer.duplicates) == (0, 0)
    assert len(set(result.alerts)) == len(result.alerts)
    about_failures = [(request, alert) for _, alert, request in result.alerts if alert in ("failing", "recovered")]
    assert sorted(about_failures) == [
        (number, "failing" if number // SERVICES % PERIOD == FAILING else "recovered")
        for number in filter(raises_alert, range(result.sent))
    ]
