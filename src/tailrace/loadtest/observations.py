"""What an observer remembers: the latency and the number of duplicates of each record."""

from __future__ import annotations

from array import array
from typing import Any

ABSENT = -1


class Observations:
    """By record number, the latency of the first arrival and the number of duplicates."""

    def __init__(self) -> None:
        self.latency_us = array("q")
        self.repeats: dict[int, int] = {}
        self.seen = 0

    def add(self, number: int, latency_us: int) -> None:
        if number >= len(self.latency_us):
            self.latency_us.extend([ABSENT] * (number + 1 - len(self.latency_us)))
        if self.latency_us[number] == ABSENT:
            self.latency_us[number] = max(latency_us, 0)
            self.seen += 1
        else:
            self.repeats[number] = self.repeats.get(number, 0) + 1

    def complete(self, first: int, end: int) -> bool:
        return end <= len(self.latency_us) and ABSENT not in self.latency_us[first:end]

    def result(self, first: int, end: int) -> dict[str, Any]:
        latencies = list(self.latency_us[first:end])
        latencies += [ABSENT] * (end - first - len(latencies))
        duplicates = sum(count for number, count in self.repeats.items() if first <= number < end)
        return {"event": "result", "first": first, "latencies_us": latencies, "duplicates": duplicates}
