"""What an observer remembers: the latency and the number of duplicates of each record."""

from __future__ import annotations

from array import array
from typing import Any

from tailrace.loadtest.records import IsAnswered, answers_all

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

    def complete(self, first: int, end: int, is_answered: IsAnswered = answers_all) -> bool:
        """Whether every record from `first` to before `end` that the pipeline answers has arrived."""
        return all(
            number < len(self.latency_us) and self.latency_us[number] != ABSENT
            # From the last one: it is usually the last to arrive.
            for number in range(end - 1, first - 1, -1)
            if is_answered(number)
        )

    def result(self, first: int, end: int) -> dict[str, Any]:
        latencies = list(self.latency_us[first:end])
        latencies += [ABSENT] * (end - first - len(latencies))
        duplicates = sum(count for number, count in self.repeats.items() if first <= number < end)
        return {"event": "result", "first": first, "latencies_us": latencies, "duplicates": duplicates}
