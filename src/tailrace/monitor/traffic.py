"""Rows and durations of a run over each window: as a whole, by partition, by stage and by task."""

from __future__ import annotations

from collections.abc import Iterable

from tailrace.contract.live_figures import ReadProgress, SeriesUpdate, StageShape
from tailrace.contract.snapshot import (
    FIGURES,
    Distribution,
    PartitionWindow,
    QueryWindow,
    StageFigures,
    StageWindow,
    TaskFigures,
)
from tailrace.monitor.histogram import Histogram
from tailrace.monitor.rolling import RUN, STEADY, WINDOWS_S, RollingCount
from tailrace.monitor.series import SeriesTable, SourcePartition
from tailrace.monitor.wording import source_name


class Traffic:
    def __init__(self, now: float) -> None:
        self.started_at = now
        self._steady_since = now
        self._series = SeriesTable()
        self._rows_in: dict[SourcePartition, RollingCount] = {}
        self._rows_out = RollingCount()

    @property
    def partitions(self) -> list[SourcePartition]:
        return sorted(self._rows_in)

    def add_partition(self, partition: SourcePartition) -> None:
        self._rows_in.setdefault(partition, RollingCount())

    def apply(self, now: float, series: Iterable[SeriesUpdate], reads: Iterable[ReadProgress], written: int) -> None:
        for update in series:
            self._series.add(now, update.key, update.counts)
        for read in reads:
            self._rows_in.setdefault((read.topic, read.partition), RollingCount()).add(now, read.rows)
        self._rows_out.add(now, written)
        self._advance(now)

    def begin_steady(self, now: float) -> None:
        """Exclude everything so far from the steady window."""
        self._advance(now, steady=False)
        self._steady_since = now

    def rows_in(self, window: str) -> int:
        return sum(count.over(window) for count in self._rows_in.values())

    def histogram(self, figure: str, window: str) -> Histogram:
        return self._series.of_figure(figure, window)

    def query_window(self, window: str, now: float) -> QueryWindow:
        seconds, rows_in, rows_out = self._seconds(window, now), self.rows_in(window), self._rows_out.over(window)
        return query_window(
            seconds, rows_in, rows_out, {name: self.histogram(name, window).distribution() for name in FIGURES}
        )

    def partition_window(self, partition: SourcePartition, window: str, now: float) -> PartitionWindow:
        def of(figure: str) -> Distribution | None:
            return self._series.of_partition(figure, partition, window).distribution()

        rate = _rate(self._rows_in[partition].over(window), self._seconds(window, now))
        return PartitionWindow(rate, of("source_queue"), of("processing"), of("end_to_end"))

    def stage(self, shape: StageShape, now: float, windows: tuple[str, ...], *, is_only: bool) -> StageFigures:
        # A task without a row sends no figures, but is still a task.
        tasks = sorted({*self._series.tasks_of(shape.stage), *range(shape.tasks or 0)})
        return StageFigures(
            stage=shape.stage,
            inputs=shape.inputs,
            sources=tuple(map(source_name, shape.sources)),
            operators=shape.operators,
            sink=shape.sink,
            windows={window: self._stage_window(window, shape.stage, now, is_only=is_only) for window in windows},
            tasks=tuple(
                TaskFigures(task, {window: self._task_window(window, shape.stage, task, now) for window in windows})
                for task in tasks
            ),
        )

    def _stage_window(self, window: str, stage: int, now: float, *, is_only: bool) -> StageWindow:
        # Without a shuffle, the time in the only stage is the whole processing time.
        time = self.histogram("processing", window) if is_only else self._series.of_stage("stage", stage, window)
        return StageWindow(
            rows_per_s=_rate(time.count, self._seconds(window, now)),
            time=time.distribution(),
            shuffle=self._series.of_stage("shuffle", stage, window).distribution(),
            python=self._series.of_stage("python", stage, window).distribution(),
        )

    def _task_window(self, window: str, stage: int, task: int, now: float) -> StageWindow:
        time = self._series.of_task("stage", stage, task, window)
        rows = time.count or self._series.of_task("sink", stage, task, window).count
        return StageWindow(
            rows_per_s=_rate(rows, self._seconds(window, now)),
            time=time.distribution(),
            shuffle=self._series.of_task("shuffle", stage, task, window).distribution(),
            python=self._series.of_task("python", stage, task, window).distribution(),
        )

    def _advance(self, now: float, *, steady: bool = True) -> None:
        for rolling in (*self._series, *self._rows_in.values(), self._rows_out):
            rolling.advance(now, steady=steady)

    def _seconds(self, window: str, now: float) -> float:
        age = max(0.0, now - self.started_at)
        if window == RUN:
            return age
        if window == STEADY:
            return min(WINDOWS_S["1m"], max(0.0, now - self._steady_since))
        return min(WINDOWS_S[window], age)


def query_window(seconds: float, rows_in: int, rows_out: int, figures: dict[str, Distribution | None]) -> QueryWindow:
    return QueryWindow(
        seconds=seconds,
        rows_in=rows_in,
        rows_out=rows_out,
        rows_in_per_s=_rate(rows_in, seconds),
        rows_out_per_s=_rate(rows_out, seconds),
        **figures,
    )


def _rate(count: int, seconds: float) -> float:
    return round(count / seconds, 3) if seconds > 0 else 0.0
