"""The JVM of `benchmarks.overlap`: measures each query with and without overlapping epochs, in turns."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import tailrace
from benchmarks.one_jvm import Measured, Work, session
from tailrace.loadtest import LatencyReport, epoch_ends
from tailrace.loadtest.report import PAUSE_WITHIN_S, SILENCE_RECORDS, SILENCE_S

OVERLAP_KEY = "spark.tailrace.epochs.overlap"
OFF, ON = "off", "auto"


@dataclass(frozen=True)
class Turns(Work):
    """Each query is measured with and without overlap, this many times."""

    rounds: int = 2


def longest_around(report: LatencyReport, times_s: Iterable[float]) -> list[float]:
    """The longest silence around each of these times. Shorter ones than the report keeps count as the shortest."""
    shortest_ms = max(SILENCE_S, SILENCE_RECORDS / report.rate) * 1000
    return [
        max((one.ms for one in report.silences if one.distance_s(at) <= PAUSE_WITHIN_S), default=shortest_ms)
        for at in times_s
    ]


class Turn(Measured):
    def measure(self, name: str, overlap: str) -> dict[str, Any]:
        self.spark.conf.set(OVERLAP_KEY, overlap)
        with ExitStack() as stack:
            query, load = self._run(name, self.work.epoch_s, stack)
            load.wait_for_output(timeout_s=90, records=2 * self.work.rate)
            report = load.measure(seconds=self.work.seconds).with_epoch_ends(epoch_ends(query))
            overlapped = sum(one.overlapped for one in tailrace.latency(query).figures.boundaries)
        half_s = self.work.epoch_s / 2
        middles = [end - half_s for end in report.epoch_boundaries_s if end > half_s + PAUSE_WITHIN_S]
        return {
            "query": name,
            "overlap": overlap,
            "overlapped": overlapped,
            **report.to_dict(),
            "pauses_ms": longest_around(report, report.epoch_boundaries_s),
            "control_ms": longest_around(report, middles),
        }

    def warm_up(self, name: str) -> None:
        self._warm_up(name)


def main() -> None:
    told = json.load(sys.stdin)
    work = Turns(**{**told, "queries": tuple(told["queries"])})
    spark = session(work)
    try:
        turn = Turn(work, spark)
        for name in work.queries:
            turn.warm_up(name)
            for _ in range(work.rounds):
                for overlap in (OFF, ON):
                    print(json.dumps(turn.measure(name, overlap)), flush=True)
    finally:
        spark.stop()


if __name__ == "__main__":
    main()
