"""The epochs of a query, from when its tasks began and ended to read and when the driver did what is between."""

from __future__ import annotations

import statistics
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from tailrace.monitor.news import ReadNews

KEPT_BOUNDARIES = 60
KEPT_EPOCHS = 3

# What happens between the last row of an epoch and the first of the next, in this order.
PARTS = {
    "finish": "tasks end: what is on its way is worked on, state is committed, the sink is flushed",
    "log": "the sink commits, the driver writes the epoch's offsets and its commit",
    "plan": "the driver reports the progress, asks the source how far it is, and plans the next epoch",
    "launch": "its tasks start and find each other, the source and the sink",
}


@dataclass
class _Span:
    began_us: int
    ended_us: int


@dataclass
class _Driver:
    """When the driver was how far with an epoch; None until it is known."""

    launched_us: int | None = None
    finished_us: int | None = None
    committed_us: int | None = None


class Epochs:
    """Which epoch runs, and for how long nothing was read between two of them."""

    def __init__(self) -> None:
        self.duration_s: float | None = None
        self._spans: dict[int, dict[tuple[str, int], _Span]] = {}
        self._driver: dict[int, _Driver] = {}
        self._boundaries: dict[int, dict[str, Any]] = {}

    @property
    def number(self) -> int | None:
        return max(self._spans, default=None)

    @property
    def began_at(self) -> float | None:
        return (
            min(span.began_us for span in self._spans[self.number].values()) / 1e6 if self.number is not None else None
        )

    @property
    def boundaries(self) -> list[dict[str, Any]]:
        return [self._boundaries[epoch] for epoch in sorted(self._boundaries)]

    def apply(self, reads: Iterable[ReadNews]) -> None:
        touched = set()
        for news in reads:
            place = news.topic, news.partition
            self._spans.setdefault(news.epoch, {})[place] = _Span(news.began_us, news.ended_us)
            touched |= {news.epoch - 1, news.epoch}
        for epoch in touched:
            self._note_boundary(epoch)
        self._forget()

    def launched(self, epoch: int, at_us: int) -> None:
        # An epoch's own job is its last: those that fetch what is broadcast come before.
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
        """Of an epoch and the one after it, as far as is known: the longest gap of a partition."""
        before, after = self._spans.get(epoch, {}), self._spans.get(epoch + 1, {})
        gaps = [
            (after[place].began_us - span.ended_us, span.ended_us, after[place].began_us)
            for place, span in before.items()
            if span.ended_us and place in after
        ]
        if gaps:
            gap_us, ended_us, began_us = max(gaps)
            self._boundaries[epoch] = {
                "at": min(ended for _, ended, _ in gaps) / 1e6,
                "epoch": epoch,
                "gap_ms": max(0, gap_us) / 1000,
                "parts_ms": self._parts(epoch, ended_us, began_us),
            }

    def _parts(self, epoch: int, ended_us: int, began_us: int) -> dict[str, float] | None:
        """What the gap was made of; None until the driver's side is known."""
        old, new = self._driver.get(epoch, _Driver()), self._driver.get(epoch + 1, _Driver())
        if old.finished_us is None or old.committed_us is None or new.launched_us is None:
            return None
        moments = [ended_us, old.finished_us, old.committed_us, new.launched_us, began_us]
        # The driver's times are whole milliseconds, and another machine's clock.
        for position in range(1, len(moments)):
            moments[position] = min(max(moments[position], moments[position - 1]), max(began_us, ended_us))
        return {name: (moments[position + 1] - moments[position]) / 1000 for position, name in enumerate(PARTS)}

    def _forget(self) -> None:
        for old in sorted(self._spans)[:-KEPT_EPOCHS]:
            del self._spans[old]
        for old in [epoch for epoch in self._driver if epoch < (self.number or 0) - KEPT_EPOCHS]:
            del self._driver[old]
        for old in sorted(self._boundaries)[:-KEPT_BOUNDARIES]:
            del self._boundaries[old]


def seam_of(boundaries: list[dict[str, Any]]) -> dict[str, Any] | None:
    """The pause at an epoch's end over some boundaries: median, longest, and the median of each part."""
    if not boundaries:
        return None
    gaps = [one["gap_ms"] for one in boundaries]
    known = [one["parts_ms"] for one in boundaries if one["parts_ms"]]
    return {
        "boundaries": len(gaps),
        "median_ms": statistics.median(gaps),
        "max_ms": max(gaps),
        "last_ms": gaps[-1],
        "parts_ms": {name: statistics.median(one[name] for one in known) for name in PARTS} if known else None,
    }


def seam_in_words(seam: dict[str, Any]) -> str:
    parts = seam["parts_ms"]
    made_of = ": " + ", ".join(f"{name} {parts[name]:,.0f}" for name in PARTS) if parts else ""
    of = f" (median of {seam['boundaries']}, longest {seam['max_ms']:,.0f})" if seam["boundaries"] > 1 else ""
    return f"{seam['median_ms']:,.0f} ms{of}{made_of}"
