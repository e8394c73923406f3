"""All durations of a run, by what they measure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator

from tailrace.contract.live_figures import Buckets, SeriesKey
from tailrace.monitor.histogram import Histogram
from tailrace.monitor.rolling import RollingHistogram

SourcePartition = tuple[str, int]
"""Topic and partition."""


class SeriesTable:
    """By figure, and then by the source's partition or by the stage and its task."""

    def __init__(self) -> None:
        self._all: dict[SeriesKey, RollingHistogram] = {}
        self._of_figure: dict[str, list[RollingHistogram]] = defaultdict(list)
        self._of_partition: dict[tuple[str, SourcePartition], list[RollingHistogram]] = defaultdict(list)
        self._of_stage: dict[tuple[str, int], dict[int, RollingHistogram]] = defaultdict(dict)

    def __iter__(self) -> Iterator[RollingHistogram]:
        return iter(self._all.values())

    def add(self, now: float, key: SeriesKey, counts: Buckets) -> None:
        if key not in self._all:
            self._register(key, RollingHistogram())
        self._all[key].add(now, counts)

    def of_figure(self, figure: str, window: str) -> Histogram:
        return _merged(self._of_figure.get(figure, ()), window)

    def of_partition(self, figure: str, partition: SourcePartition, window: str) -> Histogram:
        return _merged(self._of_partition.get((figure, partition), ()), window)

    def of_stage(self, figure: str, stage: int, window: str) -> Histogram:
        return _merged(self._of_stage.get((figure, stage), {}).values(), window)

    def of_task(self, figure: str, stage: int, task: int, window: str) -> Histogram:
        found = self._of_stage.get((figure, stage), {}).get(task)
        return _merged([found] if found else [], window)

    def tasks_of(self, stage: int) -> list[int]:
        return sorted({task for (_, at), tasks in self._of_stage.items() if at == stage for task in tasks})

    def _register(self, key: SeriesKey, series: RollingHistogram) -> None:
        self._all[key] = series
        self._of_figure[key.figure].append(series)
        if key.topic:
            self._of_partition[key.figure, (key.topic, key.partition)].append(series)
        else:
            self._of_stage[key.figure, key.stage][key.partition] = series


def _merged(series: Iterable[RollingHistogram], window: str) -> Histogram:
    return Histogram.merged(one.over(window) for one in series)
