"""The figures of one run of a query."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from tailrace.monitor.epochs import Epochs, seam_of
from tailrace.monitor.histogram import Histogram
from tailrace.monitor.history import History, Second
from tailrace.monitor.measured import FIGURES, Measured
from tailrace.monitor.news import NewestOffset, ReadNews, SeriesNews
from tailrace.monitor.rolling import RUN, STEADY, WINDOWS, WINDOWS_S, RollingCount
from tailrace.monitor.series import Place, SeriesTable

STAGE_FIGURES = {"time": "stage", "shuffle": "shuffle", "python": "python"}
PARTITION_FIGURES = ("source_queue", "processing", "end_to_end")

# Behind by more than it reads in so many seconds, and by more than a handful of rows.
LAGGING_S = 2.0
LAGGING_ROWS = 10
NEWEST_HOLDS_S = 5.0
# The first seconds after a start or a backlog are not like those that follow.
SETTLES_WITHIN_S = 3.0


class QueryFigures:
    """Takes the news of a run and says how it fares."""

    def __init__(self, run_id: str, now: float) -> None:
        self.run_id = run_id
        self.id: str | None = None
        self.name: str | None = None
        self.started_at = now
        self.ended_at: float | None = None
        self.error: str | None = None
        self.is_real_time = False
        self._is_warming = False
        self._warm_from = 0
        self.epochs = Epochs()
        self._stages: list[dict[str, Any]] = []
        self._state: list[dict[str, Any]] = []
        self._left_out = 0
        self._left_out_error: str | None = None
        self._left_out_at: float | None = None
        self._series = SeriesTable()
        self._rows_in: dict[Place, RollingCount] = {}
        self._rows_out = RollingCount()
        self._offsets: dict[Place, int] = {}
        self._newest: dict[Place, _Newest] = {}
        self._first_read_at: float | None = None
        self._unsteady_at = now
        self._steady_since = now
        self._now = now
        self._history = History()
        self._measured: list[Measured] = []

    # The news.

    def apply_event(self, event: dict[str, Any]) -> None:
        match event["event"]:
            case "started":
                self.id, self.name = event["id"], event.get("name")
                self.started_at = _seconds(event["at"])
            case "planned":
                self.is_real_time = True
                self._stages = event["stages"]
                if event.get("epoch_ms") is not None:
                    self.epochs.duration_s = event["epoch_ms"] / 1000
            case "reading":
                for one in event["partitions"]:
                    place = one["topic"], one["partition"]
                    # Also those that no task ever gets to: that is just what somebody wants to know.
                    self._rows_in.setdefault(place, RollingCount())
                    self._offsets.setdefault(place, one["from"] - 1)
            case "warming":
                self._is_warming, self._warm_from = event["warming"], event["epoch"]
            case "launched":
                self.epochs.launched(event["epoch"], event["at_ms"] * 1000)
            case "finished":
                self.epochs.finished(event["epoch"], event["at_ms"] * 1000)
            case "progress":
                self.epochs.committed(event["progress"]["batchId"], _end_us(event["progress"]))
                self._state = [_state_of(operator) for operator in event["progress"].get("stateOperators", [])]
            case "left out":
                self._left_out += event["records"]
                self._left_out_error = event["error"]
                self._left_out_at = self._now
            case "terminated":
                self.error = event.get("error")

    def apply(
        self,
        now: float,
        series: Iterable[SeriesNews] = (),
        reads: Iterable[ReadNews] = (),
        newest: Iterable[NewestOffset] = (),
        written: int = 0,
    ) -> None:
        """One second's news, also when there is none."""
        self._now = now
        second = Second(now)
        for news in series:
            self._series.add(now, news.key, news.counts)
            for measured in self._measured:
                measured.add(news)
            if news.key.figure == "end_to_end":
                second.end_to_end.add(news.counts)
        reads = list(reads)
        self.epochs.apply(reads)
        for read in reads:
            self._first_read_at = self._first_read_at or read.began_us / 1e6
            place = read.topic, read.partition
            self._rows_in.setdefault(place, RollingCount()).add(now, read.rows)
            self._offsets[place] = max(read.offset, self._offsets.get(place, -1))
            second.rows_in += read.rows
        self._rows_out.add(now, written)
        second.rows_out = written
        for measured in self._measured:
            measured.rows_in += second.rows_in
            measured.rows_out += written
        for offset in newest:
            place = offset.topic, offset.partition
            before = self._newest.get(place)
            self._newest[place] = _Newest(now, offset.offset, before.offset if before else None)
        for rolling in (*self._series, *self._rows_in.values(), self._rows_out):
            rolling.advance(now)
        self._note_whether_steady(now)
        second.lag_rows = self.lag_rows
        self._history.add(second)

    def _note_whether_steady(self, now: float) -> None:
        if self.status in ("starting", "lagging"):
            self._unsteady_at = now
        if now - self._unsteady_at < SETTLES_WITHIN_S:
            for rolling in (*self._series, *self._rows_in.values(), self._rows_out):
                rolling.advance(now, steady=False)
            self._steady_since = now

    def end(self, now: float) -> None:
        self.ended_at = self.ended_at or now

    def begin_measuring(self) -> Measured:
        measured = Measured()
        self._measured.append(measured)
        return measured

    def end_measuring(self, measured: Measured) -> None:
        self._measured.remove(measured)

    # What they say.

    @property
    def status(self) -> str:
        if self.ended_at is not None:
            return "failed" if self.error else "ended"
        if self._is_young:
            return "starting"
        return "lagging" if self.is_lagging else "running"

    @property
    def lag_rows(self) -> int | None:
        known = [lag for place in self._offsets if (lag := self._lag_of(place)) is not None]
        return sum(known) if known else None

    @property
    def is_lagging(self) -> bool:
        lag = self.lag_rows or 0
        return lag >= LAGGING_ROWS and lag > LAGGING_S * self._rows_in_over("10s") / WINDOWS_S["10s"]

    @property
    def _is_young(self) -> bool:
        """Is in its first, short epochs, or has begun to read and may well not have seen a row for that reason."""
        began = self._first_read_at
        return (
            self._is_warming
            or began is None
            or (self._now - began < WINDOWS_S["10s"] and not self._rows_in_over("10s"))
        )

    def histogram(self, figure: str, window: str) -> Histogram:
        return self._series.of_figure(figure, window)

    def snapshot(self, now: float, windows: tuple[str, ...] = WINDOWS) -> dict[str, Any]:
        end = self.ended_at or now
        return {
            "id": self.id,
            "run_id": self.run_id,
            "name": self.name,
            "status": self.status,
            "error": self.error,
            "started_at": self.started_at,
            "ended_at": self.ended_at,
            "lag_rows": self.lag_rows,
            "epoch": {
                "number": self.epochs.number,
                "began_at": self.epochs.began_at,
                "duration_s": self.epochs.duration_s,
            },
            "boundaries": self.epochs.boundaries,
            "seam": seam_of(self._warm_boundaries()),
            "windows": {window: self._window(window, end) for window in windows},
            "partitions": [self._partition(place, end, windows) for place in sorted(self._rows_in)],
            "stages": [self._stage(stage, end, windows) for stage in self._stages],
            "state": self._state,
            "left_out": {
                "records": self._left_out,
                "last_at": self._left_out_at,
                "last_error": self._left_out_error,
            },
        }

    def history(self) -> dict[str, Any]:
        return self._history.to_dict()

    def _warm_boundaries(self) -> list[dict[str, Any]]:
        """Those of the first, short epochs are slow, and few will follow like them."""
        warm = [one for one in self.epochs.boundaries if one["epoch"] >= self._warm_from]
        return warm or self.epochs.boundaries

    def _window(self, window: str, now: float) -> dict[str, Any]:
        seconds = self._seconds_of(window, now)
        rows_in, rows_out = self._rows_in_over(window), self._rows_out.over(window)
        return {
            "seconds": seconds,
            "rows_in": rows_in,
            "rows_out": rows_out,
            "rows_in_per_s": _rate(rows_in, seconds),
            "rows_out_per_s": _rate(rows_out, seconds),
            **{figure: self.histogram(figure, window).summary() for figure in FIGURES},
        }

    def _partition(self, place: Place, now: float, windows: tuple[str, ...]) -> dict[str, Any]:
        topic, partition = place
        return {
            "topic": topic,
            "partition": partition,
            "offset": self._offsets.get(place),
            "latest_offset": newest.offset if (newest := self._newest_of(place)) else None,
            "lag_rows": self._lag_of(place),
            "windows": {
                window: {
                    "rows_in_per_s": _rate(self._rows_in[place].over(window), self._seconds_of(window, now)),
                    **{figure: self._series.of_place(figure, place, window).summary() for figure in PARTITION_FIGURES},
                }
                for window in windows
            },
        }

    def _stage(self, shape: dict[str, Any], now: float, windows: tuple[str, ...]) -> dict[str, Any]:
        stage: int = shape["stage"]
        # A task that has got no row has sent no figures, and is a task all the same.
        tasks = sorted({*self._series.tasks_of(stage), *range(shape.get("tasks") or 0)})
        return {
            "stage": stage,
            "inputs": shape["inputs"],
            "sources": [source_name(source) for source in shape["sources"]],
            "operators": shape["operators"],
            "sink": shape.get("sink"),
            "windows": {window: self._stage_over(window, stage, now) for window in windows},
            "tasks": [
                {
                    "partition": task,
                    "windows": {window: self._task_over(window, stage, task, now) for window in windows},
                }
                for task in tasks
            ],
        }

    def _stage_over(self, window: str, stage: int, now: float) -> dict[str, Any]:
        histograms = {name: self._series.of_stage(figure, stage, window) for name, figure in STAGE_FIGURES.items()}
        if len(self._stages) == 1:
            # Without a shuffle, a row's way through its only stage is the whole processing.
            histograms["time"] = self._series.of_figure("processing", window)
        rate = _rate(histograms["time"].count, self._seconds_of(window, now))
        return {"rows_per_s": rate} | {name: histogram.summary() for name, histogram in histograms.items()}

    def _task_over(self, window: str, stage: int, task: int, now: float) -> dict[str, Any]:
        histograms = {name: self._series.of_task(figure, stage, task, window) for name, figure in STAGE_FIGURES.items()}
        rows = histograms["time"].count or self._series.of_task("sink", stage, task, window).count
        rate = _rate(rows, self._seconds_of(window, now))
        return {"rows_per_s": rate} | {name: histogram.summary() for name, histogram in histograms.items()}

    def _rows_in_over(self, window: str) -> int:
        return sum(count.over(window) for count in self._rows_in.values())

    def _lag_of(self, place: Place) -> int | None:
        newest = self._newest_of(place)
        if newest is None or newest.before is None or place not in self._offsets:
            return None
        # Not the newest of all: the position that a task has told is up to a second old as well.
        return max(0, newest.before - self._offsets[place] - 1)

    def _newest_of(self, place: Place) -> _Newest | None:
        """None when the broker has not said it for a while."""
        newest = self._newest.get(place)
        return newest if newest and self._now - newest.heard_at <= NEWEST_HOLDS_S else None

    def _seconds_of(self, window: str, now: float) -> float:
        age = max(0.0, now - self.started_at)
        if window == RUN:
            return age
        if window == STEADY:
            return min(WINDOWS_S["1m"], max(0.0, now - self._steady_since))
        return min(WINDOWS_S[window], age)


@dataclass(frozen=True)
class _Newest:
    """The newest offset of a partition, and the one before that."""

    heard_at: float
    offset: int
    before: int | None


def source_name(source: str) -> str:
    """What Spark calls `KafkaV2[Subscribe[payments]]`, in the user's terms."""
    found = re.fullmatch(r"KafkaV2\[\w+\[(.*)\]\]", source)
    return found[1] if found else source


def _end_us(progress: dict[str, Any]) -> int:
    """When an epoch's progress was all written, from Spark's own account of it."""
    began_us = int(_seconds(progress["timestamp"]) * 1e6)
    return began_us + int(progress["durationMs"]["triggerExecution"]) * 1000


def _state_of(operator: dict[str, Any]) -> dict[str, Any]:
    return {
        "operator": operator.get("operatorName", ""),
        "rows": operator.get("numRowsTotal", 0),
        "memory_bytes": operator.get("memoryUsedBytes", 0),
        "commit_ms": float(operator.get("commitTimeMs", 0)),
    }


def _rate(count: int, seconds: float) -> float:
    return round(count / seconds, 3) if seconds > 0 else 0.0


def _seconds(iso: str) -> float:
    return datetime.fromisoformat(iso).timestamp()
