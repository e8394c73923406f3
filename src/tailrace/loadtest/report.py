"""The result of a load test: percentiles, losses and duplicates, also over time."""

from __future__ import annotations

import dataclasses
import itertools
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from hdrh.histogram import HdrHistogram

from tailrace.contract import notebook

# From a microsecond to an hour, to three digits.
LOWEST_US, HIGHEST_US, DIGITS = 1, 3_600_000_000, 3

PERCENTILES = {"p50_ms": 50.0, "p90_ms": 90.0, "p99_ms": 99.0, "p999_ms": 99.9, "max_ms": 100.0}
# Around the time at which Spark reports the end of an epoch.
PAUSE_WITHIN_S = 0.5
# Longer than the distance of a few records, and than the hiccups of any machine.
SILENCE_RECORDS, SILENCE_S = 4, 0.02
LABELS = {"p50_ms": "p50", "p90_ms": "p90", "p99_ms": "p99", "p999_ms": "p99.9", "max_ms": "max"}


def new_histogram() -> HdrHistogram:
    return HdrHistogram(LOWEST_US, HIGHEST_US, DIGITS)


def record_us(histogram: HdrHistogram, latency_us: int) -> None:
    histogram.record_value(min(max(latency_us, LOWEST_US), HIGHEST_US))


@dataclass(frozen=True)
class TimelinePoint:
    """One second of a measurement, `at_s` after its start: the latencies of the records due in it."""

    at_s: int
    records: int
    p50_ms: float
    p99_ms: float
    max_ms: float

    def ms(self, name: str) -> float:
        """One of "p50", "p99" and "max"."""
        return float(getattr(self, f"{name}_ms"))


@dataclass(frozen=True)
class Silence:
    """A period without output: it begins `at_s` after the start and lasts `ms`."""

    at_s: float
    ms: float

    def distance_s(self, at_s: float) -> float:
        """The distance from a time to this period, in seconds; 0 inside it."""
        return max(self.at_s - at_s, at_s - self.at_s - self.ms / 1000, 0.0)


@dataclass(frozen=True)
class LatencyReport:
    """The result of a load test: latencies from a record's intended send time to its arrival at the observer."""

    expected: int
    received: int
    lost: int
    duplicates: int
    seconds: float
    p50_ms: float
    p90_ms: float
    p99_ms: float
    p999_ms: float
    max_ms: float
    timeline: tuple[TimelinePoint, ...] = ()
    curve: tuple[tuple[float, float], ...] = ()
    """(percentile, latency in ms), for the plot of the tail."""
    started_ns: int = 0
    epoch_boundaries_s: tuple[float, ...] = ()
    """When epochs ended inside the window, in seconds after its start; empty if none or unknown."""
    silences: tuple[Silence, ...] = ()

    @classmethod
    def from_latencies(
        cls,
        latencies_us: Iterable[tuple[float, int]],
        *,
        expected: int,
        duplicates: int,
        started_ns: int,
        seconds: float,
    ) -> LatencyReport:
        """Build a report from pairs: when the record was due, in seconds after the start, and its latency in µs."""
        whole = new_histogram()
        by_second: dict[int, HdrHistogram] = {}
        arrivals_s = []
        for due_s, latency in latencies_us:
            record_us(whole, latency)
            record_us(by_second.setdefault(int(due_s), new_histogram()), latency)
            arrivals_s.append(due_s + latency / 1e6)
        received = whole.get_total_count()
        return cls(
            expected=expected,
            received=received,
            lost=expected - received,
            duplicates=duplicates,
            seconds=seconds,
            timeline=tuple(_point(second, by_second[second]) for second in sorted(by_second)),
            curve=_curve(whole),
            started_ns=started_ns,
            silences=_silences(sorted(arrivals_s), expected / seconds if seconds else 0.0),
            **{name: _at_ms(whole, percentile) for name, percentile in PERCENTILES.items()},  # type: ignore[arg-type]
        )

    def with_epoch_ends(self, ends: Iterable[float]) -> LatencyReport:
        """Return the report with the epoch boundaries at these times, in seconds since 1970."""
        offsets = (end - self.started_ns / 1e9 for end in ends)
        # At the edges of the window, only part of a pause would be seen.
        inside = tuple(offset for offset in offsets if PAUSE_WITHIN_S <= offset <= self.seconds - PAUSE_WITHIN_S)
        return dataclasses.replace(self, epoch_boundaries_s=inside)

    @property
    def pauses_ms(self) -> tuple[float, ...]:
        """The pause at each epoch boundary in the window: the longest silence of the output around it."""
        return tuple(
            max((one.ms for one in self.silences if one.distance_s(end) <= PAUSE_WITHIN_S), default=0.0)
            for end in self.epoch_boundaries_s
        )

    @property
    def rate(self) -> float:
        """Records received per second."""
        return self.received / self.seconds if self.seconds else 0.0

    def percentiles(self) -> dict[str, float]:
        """The percentiles in milliseconds, by field name: `p50_ms` to `max_ms`."""
        return {name: getattr(self, name) for name in PERCENTILES}

    def text(self) -> str:
        """The report as text."""
        figures = "  ".join(f"{LABELS[name]} {value:.1f}" for name, value in self.percentiles().items())
        return (
            f"{figures} ms  ({self.received} of {self.expected} records in {self.seconds:.0f} s, "
            f"{self.lost} lost, {self.duplicates} duplicates)"
        )

    def __str__(self) -> str:
        return self.text()

    def _repr_html_(self) -> str:
        counts = ("received", "expected", "lost", "duplicates")
        columns = ("ms", *LABELS.values(), *counts)
        row = ("latency", *(f"{value:,.1f}" for value in self.percentiles().values()))
        lines = {name: [(point.at_s, point.ms(name)) for point in self.timeline] for name in ("p50", "p99", "max")}
        return notebook.card(
            f"Load test of {self.seconds:.0f} s, {self.rate:,.0f} records/s",
            notebook.table(columns, [(*row, *(f"{getattr(self, name):,}" for name in counts))]),
            notebook.chart(lines, x_label="seconds", y_label="latency in ms, second by second"),
        )

    def to_dict(self) -> dict[str, Any]:
        """Everything in the report, as plain values."""
        counts = {name: getattr(self, name) for name in ("expected", "received", "lost", "duplicates")}
        return {
            **counts,
            "seconds": round(self.seconds, 3),
            **{name: round(value, 3) for name, value in self.percentiles().items()},
            "epoch_boundaries_s": [round(at, 3) for at in self.epoch_boundaries_s],
            "pauses_ms": [round(pause, 1) for pause in self.pauses_ms],
            "timeline": [vars(point) for point in self.timeline],
        }

    def to_json(self) -> str:
        """The same as JSON."""
        return json.dumps(self.to_dict())


def _at_ms(histogram: HdrHistogram, percentile: float) -> float:
    return float(histogram.get_value_at_percentile(percentile)) / 1000


def _point(second: int, histogram: HdrHistogram) -> TimelinePoint:
    figures = [_at_ms(histogram, percentile) for percentile in (50.0, 99.0, 100.0)]
    return TimelinePoint(second, histogram.get_total_count(), *figures)


def _silences(arrivals_s: Sequence[float], rate: float) -> tuple[Silence, ...]:
    longer_than = max(SILENCE_S, SILENCE_RECORDS / rate if rate else 0.0)
    pairs = itertools.pairwise(arrivals_s)
    return tuple(Silence(one, (next_one - one) * 1000) for one, next_one in pairs if next_one - one > longer_than)


def _curve(histogram: HdrHistogram) -> tuple[tuple[float, float], ...]:
    # As far into the tail as there are enough records.
    count = histogram.get_total_count()
    nines = [100 * (1 - 10 ** (-exponent / 20)) for exponent in range(1, 121)]
    return tuple((p, _at_ms(histogram, p)) for p in [0.0, *nines] if count * (1 - p / 100) >= 1)
