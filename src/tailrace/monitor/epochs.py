"""A query's epochs and the pauses between them, from when its tasks read and what the driver did meanwhile."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from tailrace.contract.live_figures import ReadProgress
from tailrace.contract.snapshot import PAUSE_PARTS, Boundary, BoundaryPause, EpochFigures, PauseParts

KEPT_BOUNDARIES = 60
KEPT_EPOCHS = 3


@dataclass
class _Span:
    began_us: int
    ended_us: int


@dataclass
class _Driver:
    """When the driver reached each step of an epoch; None until known."""

    launched_us: int | None = None
    finished_us: int | None = None
    committed_us: int | None = None


class Epochs:
    """The open epoch, and the pauses at the boundaries before it."""

    def __init__(self) -> None:
        self.duration_s: float | None = None
        self._spans: dict[int, dict[tuple[str, int], _Span]] = {}
        self._driver: dict[int, _Driver] = {}
        self._boundaries: dict[int, Boundary] = {}
        self._reasons: dict[int, str | None] = {}

    @property
    def number(self) -> int | None:
        return max(self._spans, default=None)

    @property
    def began_at(self) -> float | None:
        return (
            min(span.began_us for span in self._spans[self.number].values()) / 1e6 if self.number is not None else None
        )

    @property
    def boundaries(self) -> tuple[Boundary, ...]:
        return tuple(self._boundaries[epoch] for epoch in sorted(self._boundaries))

    @property
    def current(self) -> EpochFigures:
        return EpochFigures(self.number, self.began_at, self.duration_s)

    def apply(self, reads: Iterable[ReadProgress]) -> None:
        touched = set()
        for read in reads:
            partition = read.topic, read.partition
            self._spans.setdefault(read.epoch, {})[partition] = _Span(read.began_us, read.ended_us)
            touched |= {read.epoch - 1, read.epoch}
        for epoch in touched:
            self._note_boundary(epoch)
        self._forget()

    def begun(self, epoch: int, reason: str | None) -> None:
        """An epoch overlaps with the one before or, for this reason, does not."""
        self._reasons[epoch] = reason
        self._note_boundary(epoch - 1)

    def launched(self, epoch: int, at_us: int) -> None:
        # An epoch's own job is its last one. Jobs for broadcasts come before it.
        self._driver_of(epoch).launched_us = at_us
        self._note_boundary(epoch - 1)

    def finished(self, epoch: int, at_us: int) -> None:
        self._driver_of(epoch).finished_us = at_us
        self._note_boundary(epoch)

    def committed(self, epoch: int, at_us: int) -> None:
        self._driver_of(epoch).committed_us = at_us
        self._note_boundary(epoch)

    def _driver_of(self, epoch: int) -> _Driver:
        return self._driver.setdefault(epoch, _Driver())

    def _note_boundary(self, epoch: int) -> None:
        """Record the pause between an epoch and the next one: the longest of the partitions known so far."""
        before, after = self._spans.get(epoch, {}), self._spans.get(epoch + 1, {})
        pauses = [
            (after[partition].began_us - span.ended_us, span.ended_us, after[partition].began_us)
            for partition, span in before.items()
            if span.ended_us and partition in after
        ]
        if pauses:
            pause_us, ended_us, began_us = max(pauses)
            self._boundaries[epoch] = Boundary(
                at=min(ended for _, ended, _ in pauses) / 1e6,
                epoch=epoch,
                pause_ms=max(0, pause_us) / 1000,
                parts_ms=self._parts(epoch, ended_us, began_us),
                overlapped=self._reasons.get(epoch + 1, "unknown") is None,
                reason=self._reasons.get(epoch + 1),
            )

    def _parts(self, epoch: int, ended_us: int, began_us: int) -> PauseParts | None:
        """The parts of the pause; None until the driver's part is known."""
        old, new = self._driver.get(epoch, _Driver()), self._driver.get(epoch + 1, _Driver())
        if old.finished_us is None or old.committed_us is None or new.launched_us is None:
            return None
        moments = [ended_us, old.finished_us, old.committed_us, new.launched_us, began_us]
        # The driver's times are whole milliseconds, from another machine's clock.
        for position in range(1, len(moments)):
            moments[position] = min(max(moments[position], moments[position - 1]), max(began_us, ended_us))
        return PauseParts(*((after - before) / 1000 for before, after in pairwise(moments)))

    def _forget(self) -> None:
        for old in sorted(self._spans)[:-KEPT_EPOCHS]:
            del self._spans[old]
        for old in [epoch for epoch in self._driver if epoch < (self.number or 0) - KEPT_EPOCHS]:
            del self._driver[old]
        for old in [epoch for epoch in self._reasons if epoch < (self.number or 0) - KEPT_EPOCHS]:
            del self._reasons[old]
        for old in sorted(self._boundaries)[:-KEPT_BOUNDARIES]:
            del self._boundaries[old]


def pause_of(boundaries: Sequence[Boundary]) -> BoundaryPause | None:
    """The pause over some boundaries: median, longest, and the median of each part."""
    if not boundaries:
        return None
    pauses = [one.pause_ms for one in boundaries]
    known = [one.parts_ms for one in boundaries if one.parts_ms]
    parts = [statistics.median(getattr(one, name) for one in known) for name in PAUSE_PARTS] if known else None
    return BoundaryPause(
        boundaries=len(pauses),
        median_ms=statistics.median(pauses),
        max_ms=max(pauses),
        last_ms=pauses[-1],
        parts_ms=PauseParts(*parts) if parts else None,
        overlapped=sum(one.overlapped for one in boundaries),
        reason=next((one.reason for one in reversed(boundaries) if one.reason), None),
    )


def pause_in_words(pause: BoundaryPause) -> str:
    parts = pause.parts_ms
    made_of = ": " + ", ".join(f"{name} {getattr(parts, name):,.0f}" for name in PAUSE_PARTS) if parts else ""
    of = f" (median of {pause.boundaries}, longest {pause.max_ms:,.0f})" if pause.boundaries > 1 else ""
    return f"{pause.median_ms:,.0f} ms{of}{made_of}{_overlap_in_words(pause)}"


def _overlap_in_words(pause: BoundaryPause) -> str:
    if pause.overlapped == pause.boundaries:
        return "; overlapped"
    if not pause.overlapped:
        return f"; not overlapped: {pause.reason}" if pause.reason else ""
    return f"; {pause.overlapped} of {pause.boundaries} overlapped" + (f": {pause.reason}" if pause.reason else "")
