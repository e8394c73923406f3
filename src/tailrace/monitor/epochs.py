"""The epochs of a query, from when its tasks began and ended to read."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from tailrace.monitor.news import ReadNews

KEPT_BOUNDARIES = 60


@dataclass
class _Span:
    began_us: int
    ended_us: int


class Epochs:
    """Which epoch runs, and for how long nothing was read between two of them."""

    def __init__(self) -> None:
        self.duration_s: float | None = None
        self._spans: dict[int, dict[tuple[str, int], _Span]] = {}
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

    def boundaries_since(self, at: float) -> list[dict[str, Any]]:
        return [boundary for boundary in self.boundaries if boundary["at"] >= at]

    def apply(self, reads: Iterable[ReadNews]) -> None:
        touched = set()
        for news in reads:
            place = news.topic, news.partition
            self._spans.setdefault(news.epoch, {})[place] = _Span(news.began_us, news.ended_us)
            touched |= {news.epoch - 1, news.epoch}
        for epoch in touched:
            self._note_boundary(epoch)
        for old in sorted(self._spans)[:-3]:
            del self._spans[old]
        for old in sorted(self._boundaries)[:-KEPT_BOUNDARIES]:
            del self._boundaries[old]

    def _note_boundary(self, epoch: int) -> None:
        """Of an epoch and the one after it, as far as is known: the longest gap of a partition."""
        before, after = self._spans.get(epoch, {}), self._spans.get(epoch + 1, {})
        gaps = {
            span.ended_us: after[place].began_us - span.ended_us
            for place, span in before.items()
            if span.ended_us and place in after
        }
        if gaps:
            self._boundaries[epoch] = {
                "at": min(gaps) / 1e6,
                "epoch": epoch,
                "gap_ms": max(0, *gaps.values()) / 1000,
            }
