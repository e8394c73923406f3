"""Durations counted in the buckets of an HdrHistogram, sparsely: most distributions touch a few hundred of them."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence

from hdrh.histogram import HdrHistogram

from tailrace.contract.snapshot import Distribution

# As in the plugin's `Buckets`: microseconds to two significant digits, up to 19 hours. The same test vector,
# tests/buckets.json, checks both.
SUB_BUCKET_BITS = 7
LONGEST_US = (1 << 36) - 1
DIGITS = 2

PERCENTILES = {"p50_ms": 50.0, "p90_ms": 90.0, "p99_ms": 99.0, "p999_ms": 99.9, "max_ms": 100.0}


class Histogram:
    """Counts by bucket; can be added to, subtracted from, and asked for percentiles."""

    def __init__(self) -> None:
        self._counts: dict[int, int] = {}
        self.count = 0

    @classmethod
    def merged(cls, parts: Iterable[Histogram]) -> Histogram:
        whole = cls()
        for part in parts:
            whole.add(part._counts)
        return whole

    def add(self, counts: Mapping[int, int]) -> None:
        ours = self._counts
        for bucket, count in counts.items():
            ours[bucket] = ours.get(bucket, 0) + count
            self.count += count

    def subtract(self, counts: Mapping[int, int]) -> None:
        """Subtract what was added before."""
        ours = self._counts
        for bucket, count in counts.items():
            left = ours[bucket] - count
            if left:
                ours[bucket] = left
            else:
                del ours[bucket]
            self.count -= count

    def percentile_ms(self, percentile: float) -> float | None:
        """The longest duration in the bucket of this percentile; None if nothing was recorded."""
        return self._percentiles_ms([percentile])[0] if self.count else None

    def distribution(self) -> Distribution | None:
        """Count, mean and percentiles; None if nothing was recorded."""
        if not self.count:
            return None
        total_us = sum(_middle_us(bucket) * count for bucket, count in self._counts.items())
        percentiles = zip(PERCENTILES, self._percentiles_ms(list(PERCENTILES.values())), strict=True)
        return Distribution(self.count, round(total_us / self.count / 1000, 4), **dict(percentiles))

    def counts_below(self, bounds_ms: Sequence[float]) -> list[int]:
        """The number of durations between each bound and the one before, and last the number above all bounds."""
        counts = [0] * (len(bounds_ms) + 1)
        for bucket, count in self._counts.items():
            counts[bisect_left(bounds_ms, _middle_us(bucket) / 1000)] += count
        return counts

    def to_hdr(self) -> HdrHistogram:
        """The same counts as an HdrHistogram of microseconds, for its tools and its file format."""
        histogram = HdrHistogram(1, LONGEST_US, DIGITS)
        for bucket, count in self._counts.items():
            histogram.record_value(max(1, lowest_us(bucket)), count)
        return histogram

    def _percentiles_ms(self, percentiles: list[float]) -> list[float]:
        """The values at these percentiles, which must be in ascending order."""
        found = []
        passed = 0
        buckets = iter(sorted(self._counts.items()))
        bucket = 0
        for percentile in percentiles:
            wanted = max(1, math.ceil(self.count * percentile / 100))
            while passed < wanted:
                bucket, count = next(buckets)
                passed += count
            found.append(highest_us(bucket) / 1000)
        return found


def lowest_us(bucket: int) -> int:
    """Below 256 µs a bucket holds one duration; above, each doubling is divided into 128 buckets."""
    halvings = max(0, (bucket >> SUB_BUCKET_BITS) - 1)
    return (bucket - (halvings << SUB_BUCKET_BITS)) << halvings


def highest_us(bucket: int) -> int:
    return lowest_us(bucket + 1) - 1


def _middle_us(bucket: int) -> float:
    return (lowest_us(bucket) + highest_us(bucket)) / 2
