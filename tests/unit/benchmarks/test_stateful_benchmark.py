"""The benchmark of the stateful operators counts what it claims to count."""

from __future__ import annotations

import json
from collections import defaultdict

import pytest

from benchmarks.stateful_latency import Figures, Pass
from benchmarks.stateful_latency import Plan as LatencyPlan
from benchmarks.stateful_records import encode_in_bursts, encode_over
from tailrace.loadtest import LatencyReport

GAP_S = 2


@pytest.mark.parametrize("rate", LatencyPlan().rates)
def test_keys_have_sessions_of_ten_rows_that_end(rate: int) -> None:
    times_s: dict[bytes, list[float]] = defaultdict(list)
    for number in range(12_000):
        times_s[encode_in_bursts(number, 0)[0]].append(number / rate)
    assert len(times_s) == 1000
    for times in times_s.values():
        ends = [at for at, one in enumerate(times[1:], start=1) if one - times[at - 1] > GAP_S]
        assert ends == list(range(10, len(times), 10))


def test_keys_take_turns() -> None:
    encode = encode_over(3)
    assert [encode(number, 7)[0] for number in range(4)] == [b"0", b"1", b"2", b"0"]
    assert json.loads(encode(5, 7)[1]) == {"number": 5, "intended_ns": 7}


def one_pass(latencies_ms: list[int], *, expected: int, epoch_end_s: float) -> Pass:
    """A record each second."""
    pairs = [(float(second), latency * 1000) for second, latency in enumerate(latencies_ms)]
    report = LatencyReport.from_latencies(
        pairs, expected=expected, duplicates=0, started_ns=0, seconds=len(latencies_ms)
    )
    return Pass(report, pairs, [epoch_end_s], level=True)


def test_passes_are_taken_together_and_boundaries_apart() -> None:
    slow_at_3 = one_pass([10, 10, 10, 900, 10, 10], expected=6, epoch_end_s=3.2)
    slow_at_1 = one_pass([30, 800, 30, 30, 30], expected=6, epoch_end_s=0.9)
    figures = Figures.of([slow_at_3, slow_at_1])
    assert (figures.whole.received, figures.whole.expected, figures.whole.lost) == (11, 12, 1)
    assert figures.whole.max_ms == pytest.approx(900, rel=0.01)
    # Of the first pass what was due at 3 and 4 s is left out, of the second at 0 and 1 s.
    assert figures.between.received == 7
    assert figures.between.max_ms == pytest.approx(30, rel=0.01)
