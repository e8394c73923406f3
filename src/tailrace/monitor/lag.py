"""How far a run is behind its source, partition by partition."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from tailrace.contract.live_figures import LatestOffset, PartitionStart, ReadProgress
from tailrace.monitor.series import SourcePartition

LATEST_HOLDS_S = 5.0
# A query lags if it is behind by more than it reads in this many seconds, and by more than a handful of rows.
LAGGING_S = 2.0
LAGGING_ROWS = 10


@dataclass(frozen=True)
class _Latest:
    """The latest offset of a partition, and the one reported before it."""

    heard_at: float
    offset: int
    before: int | None


class Lag:
    """The last offset read from each partition, and the latest one on the brokers."""

    def __init__(self) -> None:
        self._now = 0.0
        self._read: dict[SourcePartition, int] = {}
        self._latest: dict[SourcePartition, _Latest] = {}

    def begins_at(self, start: PartitionStart) -> None:
        self._read.setdefault((start.topic, start.partition), start.offset - 1)

    def apply(self, now: float, reads: Iterable[ReadProgress], latest: Iterable[LatestOffset]) -> None:
        self._now = now
        for read in reads:
            partition = read.topic, read.partition
            self._read[partition] = max(read.offset, self._read.get(partition, -1))
        for one in latest:
            partition = one.topic, one.partition
            before = self._latest.get(partition)
            self._latest[partition] = _Latest(now, one.offset, before.offset if before else None)

    @property
    def rows(self) -> int | None:
        """The lag over all partitions; None if it is unknown for every one."""
        known = [lag for partition in self._read if (lag := self.rows_of(partition)) is not None]
        return sum(known) if known else None

    def rows_of(self, partition: SourcePartition) -> int | None:
        latest = self._recent(partition)
        if latest is None or latest.before is None or partition not in self._read:
            return None
        # Not the latest offset itself: the position that a task reports is also up to a second old.
        return max(0, latest.before - self._read[partition] - 1)

    def offset_of(self, partition: SourcePartition) -> int | None:
        """The last offset read."""
        return self._read.get(partition)

    def latest_offset_of(self, partition: SourcePartition) -> int | None:
        latest = self._recent(partition)
        return latest.offset if latest else None

    def _recent(self, partition: SourcePartition) -> _Latest | None:
        """None if the broker has not answered for a while."""
        latest = self._latest.get(partition)
        return latest if latest and self._now - latest.heard_at <= LATEST_HOLDS_S else None
