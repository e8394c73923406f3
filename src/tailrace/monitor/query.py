"""One run of a query: takes the plugin's updates and reports how the run is doing."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tailrace._process.redaction import hide_in_text
from tailrace.contract.findings import Finding
from tailrace.contract.live_figures import (
    BadRecordsSkipped,
    EpochBegun,
    EpochCommitted,
    EpochFinished,
    EpochLaunched,
    LatestOffset,
    QueryEvent,
    QueryPlanned,
    QueryStarted,
    QueryTerminated,
    ReadingStarted,
    ReadProgress,
    SeriesUpdate,
    StageShape,
    WarmupChanged,
)
from tailrace.contract.snapshot import (
    BadRecords,
    Boundary,
    History,
    PartitionFigures,
    QueryFigures,
    QueryStatus,
    StateFigures,
)
from tailrace.monitor.epochs import Epochs, pause_of
from tailrace.monitor.histogram import Histogram
from tailrace.monitor.history import Second, Seconds
from tailrace.monitor.lag import LAGGING_ROWS, LAGGING_S, Lag
from tailrace.monitor.measured import Measured
from tailrace.monitor.rolling import WINDOWS, WINDOWS_S
from tailrace.monitor.series import SourcePartition
from tailrace.monitor.traffic import Traffic

# The first seconds after a start or a backlog are not typical.
SETTLES_WITHIN_S = 3.0


class QueryMonitor:
    def __init__(self, run_id: str, now: float) -> None:
        self.run_id = run_id
        self.id: str | None = None
        self.name: str | None = None
        self.ended_at: float | None = None
        self.error: str | None = None
        self.is_real_time = False
        self.is_timed = False
        self.epochs = Epochs()
        self._traffic = Traffic(now)
        self._lag = Lag()
        self._is_warming = False
        self._is_planned = False
        self._launched_epoch: int | None = None
        self._warm_from = 0
        self._stages: tuple[StageShape, ...] = ()
        self._state: tuple[StateFigures, ...] = ()
        self._bad_records = BadRecords(0, None, None)
        self._first_read_at: float | None = None
        self._unsteady_at = now
        self._now = now
        self._history = Seconds()
        self._measured: list[Measured] = []

    def apply_event(self, event: QueryEvent) -> None:
        match event:
            case QueryStarted():
                self.id, self.name = event.id, event.name
                self.is_real_time = self.is_real_time or event.real_time
                self._traffic.started_at = event.at_ms / 1000
            case QueryPlanned():
                self.is_real_time, self.is_timed = True, event.timed
                self._is_planned = True
                self._stages = event.stages
                if event.epoch_ms is not None:
                    self.epochs.duration_s = event.epoch_ms / 1000
            case ReadingStarted():
                for start in event.partitions:
                    # Include partitions that no task ever gets to: those are exactly the ones a user wants to see.
                    self._traffic.add_partition((start.topic, start.partition))
                    self._lag.begins_at(start)
            case WarmupChanged():
                self._is_warming, self._warm_from = event.warming, event.epoch
            case EpochBegun():
                self.epochs.begun(event.epoch, event.reason)
            case EpochLaunched():
                self._launched_epoch = event.epoch
                self.epochs.launched(event.epoch, event.at_ms * 1000)
            case EpochFinished():
                self.epochs.finished(event.epoch, event.at_ms * 1000)
            case EpochCommitted():
                self.epochs.committed(event.epoch, event.at_ms * 1000)
                self._state = tuple(
                    StateFigures(one.operator, one.rows, one.memory_bytes, one.commit_ms) for one in event.state
                )
            case BadRecordsSkipped():
                records = self._bad_records.records + event.records
                self._bad_records = BadRecords(records, self._now, hide_in_text(event.error))
            case QueryTerminated():
                self.error = hide_in_text(event.error) if event.error is not None else None

    def apply(
        self,
        now: float,
        series: Sequence[SeriesUpdate] = (),
        reads: Sequence[ReadProgress] = (),
        latest: Iterable[LatestOffset] = (),
        written: int = 0,
    ) -> None:
        """Take one second's updates, even if there are none."""
        self._now = now
        self.epochs.apply(reads)
        self._lag.apply(now, reads, latest)
        self._traffic.apply(now, series, reads, written)
        second = Second(now)
        for update in series:
            if update.key.figure == "end_to_end":
                second.end_to_end.add(update.counts)
        for read in reads:
            self._first_read_at = self._first_read_at or read.began_us / 1e6
            second.rows_in += read.rows
        second.rows_out = written
        for measured in self._measured:
            for update in series:
                measured.add(update)
            measured.rows_in += second.rows_in
            measured.rows_out += written
        self._note_whether_steady(now)
        second.lag_rows = self.lag_rows
        self._history.add(second)

    def _note_whether_steady(self, now: float) -> None:
        if self.status in (QueryStatus.STARTING, QueryStatus.LAGGING):
            self._unsteady_at = now
        if now - self._unsteady_at < SETTLES_WITHIN_S:
            self._traffic.begin_steady(now)

    def end(self, now: float) -> None:
        self.ended_at = self.ended_at or now

    def begin_measuring(self) -> Measured:
        measured = Measured()
        self._measured.append(measured)
        return measured

    def end_measuring(self, measured: Measured) -> None:
        self._measured.remove(measured)

    @property
    def status(self) -> QueryStatus:
        if self.ended_at is not None:
            return QueryStatus.FAILED if self.error else QueryStatus.ENDED
        if self.starting_reason is not None:
            return QueryStatus.STARTING
        return QueryStatus.LAGGING if self.is_lagging else QueryStatus.RUNNING

    @property
    def lag_rows(self) -> int | None:
        return self._lag.rows

    @property
    def is_lagging(self) -> bool:
        lag = self.lag_rows or 0
        return lag >= LAGGING_ROWS and lag > LAGGING_S * self._traffic.rows_in("10s") / WINDOWS_S["10s"]

    @property
    def starting_reason(self) -> str | None:
        """Why the query is still starting; None if rows flow, or if it has ended."""
        if self.ended_at is not None:
            return None
        if self._is_warming:
            # Reported before its first short epoch is launched.
            number = max(0, (self._launched_epoch or 0) - self._warm_from) + 1
            return f"in short epoch {number} of its warm-up"
        if self._is_planned and not self.is_timed:
            # Reads are not reported for untimed queries; the launch of an epoch is the last event we see.
            return "its first epoch is being launched" if self._launched_epoch is None else None
        if self._first_read_at is None:
            return "nothing has been read yet" if self._is_planned else "its first epoch is being planned"
        if self._now - self._first_read_at < WINDOWS_S["10s"] and not self._traffic.rows_in("10s"):
            return "no row has arrived yet"
        return None

    def histogram(self, figure: str, window: str) -> Histogram:
        return self._traffic.histogram(figure, window)

    def figures(
        self, now: float, windows: tuple[str, ...] = WINDOWS, findings: tuple[Finding, ...] = ()
    ) -> QueryFigures:
        end = self.ended_at or now
        return QueryFigures(
            id=self.id,
            run_id=self.run_id,
            name=self.name,
            status=self.status,
            starting_reason=self.starting_reason,
            error=self.error,
            started_at=self._traffic.started_at,
            ended_at=self.ended_at,
            lag_rows=self.lag_rows,
            epoch=self.epochs.current,
            boundaries=self.epochs.boundaries,
            pause=pause_of(self._warm_boundaries()),
            windows={window: self._traffic.query_window(window, end) for window in windows},
            partitions=tuple(self._partition(one, end, windows) for one in self._traffic.partitions),
            stages=tuple(
                self._traffic.stage(stage, end, windows, is_only=len(self._stages) == 1) for stage in self._stages
            ),
            state=self._state,
            bad_records=self._bad_records,
            findings=findings,
        )

    def history(self) -> History:
        return self._history.history()

    def _warm_boundaries(self) -> Sequence[Boundary]:
        """The boundaries without those of the first, short epochs, whose pauses are longer than later ones."""
        warm = [one for one in self.epochs.boundaries if one.epoch >= self._warm_from]
        return warm or self.epochs.boundaries

    def _partition(self, partition: SourcePartition, now: float, windows: tuple[str, ...]) -> PartitionFigures:
        topic, number = partition
        return PartitionFigures(
            topic=topic,
            partition=number,
            offset=self._lag.offset_of(partition),
            latest_offset=self._lag.latest_offset_of(partition),
            lag_rows=self._lag.rows_of(partition),
            windows={window: self._traffic.partition_window(partition, window, now) for window in windows},
        )
