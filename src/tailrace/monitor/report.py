"""A query's latency at one moment, in the forms that people and programs read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from typing import TYPE_CHECKING, Any

from hdrh.histogram import HdrHistogram

from tailrace.contract import notebook
from tailrace.contract.codec import encode, to_json
from tailrace.contract.findings import Finding
from tailrace.contract.snapshot import (
    FIGURES,
    Distribution,
    PartitionFigures,
    PartitionWindow,
    QueryFigures,
    QueryStatus,
    QueryWindow,
    StageFigures,
    StageWindow,
)
from tailrace.errors import TailraceError
from tailrace.monitor.epochs import pause_in_words
from tailrace.monitor.histogram import PERCENTILES, Histogram
from tailrace.monitor.rolling import WINDOWS

if TYPE_CHECKING:
    import pandas as pd

LABELS = {
    "source_queue": "source queue",
    "processing": "processing",
    "end_to_end": "end to end",
    "sink": "sink call",
    "acknowledgement": "acknowledgement",
    "python": "Python worker",
    "shuffle": "shuffle",
}
COLUMNS = {"p50_ms": "p50", "p90_ms": "p90", "p99_ms": "p99", "p999_ms": "p99.9", "max_ms": "max"}


class Latency:
    """How long records take through a query, and what slows them down.

    `print` it, or read a part: `latency.p99_ms`, `latency.findings`, `latency.to_dict()`, `latency.to_pandas()`.
    Figures cover the last ten seconds unless another window is named: "10s", "1m" or "run".
    """

    def __init__(
        self,
        query: QueryFigures,
        histogram: Callable[[str, str], Histogram],
        window: str = "10s",
    ) -> None:
        _require(window)
        self._query = query
        self._histogram = histogram
        self.window = window

    @property
    def status(self) -> QueryStatus:
        """ "starting", "running", "lagging", "ended" or "failed"."""
        return self._query.status

    @property
    def findings(self) -> list[Finding]:
        """What causes the tail. Each finding has a code, a title, its evidence (`detail`) and a fix."""
        return list(self._query.findings)

    @property
    def lag_rows(self) -> int | None:
        """How many rows the query is behind the latest offsets; None if unknown."""
        return self._query.lag_rows

    @property
    def pause_ms(self) -> float | None:
        """How long nothing is read at an epoch boundary: the median of the last ones."""
        return self._query.pause.median_ms if self._query.pause else None

    @property
    def rows_in_per_s(self) -> float:
        """Rows read per second."""
        return self._window().rows_in_per_s

    @property
    def rows_out_per_s(self) -> float:
        """Rows written per second."""
        return self._window().rows_out_per_s

    @property
    def p50_ms(self) -> float | None:
        """The median of the end-to-end latency; None if nothing was recorded."""
        return self._end_to_end.p50_ms if self._end_to_end else None

    @property
    def p99_ms(self) -> float | None:
        """The 99th percentile of the end-to-end latency; None if nothing was recorded."""
        return self._end_to_end.p99_ms if self._end_to_end else None

    @property
    def p999_ms(self) -> float | None:
        """The 99.9th percentile of the end-to-end latency; None if nothing was recorded."""
        return self._end_to_end.p999_ms if self._end_to_end else None

    @property
    def max_ms(self) -> float | None:
        """The maximum of the end-to-end latency; None if nothing was recorded."""
        return self._end_to_end.max_ms if self._end_to_end else None

    def figure(self, name: str, window: str | None = None) -> Distribution | None:
        """Count, mean and percentiles of one figure; None if nothing was recorded."""
        _require(window or self.window)
        if name not in FIGURES:
            raise TailraceError(
                "TAILRACE_UNKNOWN_FIGURE", f"there is no figure '{name}'.", f"choose one of {', '.join(FIGURES)}."
            )
        return self._window(window).figure(name)

    def histogram(self, name: str = "end_to_end", window: str | None = None) -> HdrHistogram:
        """One figure as an `HdrHistogram` in microseconds."""
        self.figure(name, window)
        return self._histogram(name, window or self.window).to_hdr()

    @property
    def figures(self) -> QueryFigures:
        """Every figure in every window, also by stage and by partition."""
        return self._query

    def to_dict(self) -> dict[str, Any]:
        """The same as plain values."""
        encoded: dict[str, Any] = encode(self._query)
        return encoded

    def to_json(self, indent: int | None = None) -> str:
        """The same as JSON."""
        return to_json(self._query, indent)

    def to_pandas(self, of: str = "figures") -> pd.DataFrame:
        """A data frame with a row per figure; with `of="partitions"` or `of="stages"`, a row per partition or stage."""
        import pandas as pd

        match of:
            case "figures":
                rows = [{"figure": name, **encode(found)} for name in FIGURES if (found := self.figure(name))]
            case "partitions":
                rows = [self._flat(one, ("topic", "partition", "lag_rows")) for one in self._query.partitions]
            case "stages":
                rows = [self._flat(one, ("stage",)) for one in self._query.stages]
            case _:
                raise TailraceError(
                    "TAILRACE_UNKNOWN_FIGURE", f"there are no rows of '{of}'.", "choose figures, partitions or stages."
                )
        return pd.DataFrame(rows)

    def to_text(self) -> str:
        """The table that `print` shows."""
        lines = [
            self._title(),
            self._traffic(),
            *self._pause(),
            "",
            f"{'ms, ' + self._window_in_words():<26}" + "".join(f"{label:>9}" for label in COLUMNS.values()),
        ]
        figures = [
            f"  {LABELS[name]:<24}" + "".join(f"{getattr(found, key):>9,.1f}" for key in PERCENTILES)
            for name in FIGURES
            if (found := self.figure(name))
        ]
        lines += figures or ["  nothing was recorded"]
        for finding in self.findings:
            lines += ["", f"{finding.title}  [{finding.code}]", f"  {finding.detail}", f"  → {finding.fix}"]
        if self._query.error:
            lines += ["", f"failed: {self._query.error.splitlines()[0]}"]
        return "\n".join(lines)

    __str__ = to_text

    def _repr_html_(self) -> str:
        rows = [
            (LABELS[name], *(f"{getattr(found, key):,.1f}" for key in PERCENTILES))
            for name in FIGURES
            if (found := self.figure(name))
        ]
        figures = notebook.table((f"ms, {self._window_in_words()}", *COLUMNS.values()), rows)
        error = self._query.error
        return notebook.card(
            self._title(),
            *map(notebook.paragraph, (self._traffic(), *self._pause())),
            figures if rows else notebook.paragraph("nothing was recorded"),
            notebook.findings(self.findings),
            notebook.paragraph(f"failed: {error.splitlines()[0]}" if error else ""),
        )

    def __repr__(self) -> str:
        return f"<Latency of {self._query.label}: {self.status}, p99 {self.p99_ms} ms>"

    @property
    def _end_to_end(self) -> Distribution | None:
        return self._window().end_to_end

    def _window(self, name: str | None = None) -> QueryWindow:
        return self._query.windows[name or self.window]

    def _title(self) -> str:
        number = self._query.epoch.number
        return f"{self._query.label}: {self.status}" + ("" if number is None else f", epoch {number}")

    def _traffic(self) -> str:
        lag = "unknown" if self.lag_rows is None else f"{self.lag_rows:,} rows"
        return f"in {self.rows_in_per_s:,.1f} rows/s, out {self.rows_out_per_s:,.1f} rows/s, lag {lag}"

    def _pause(self) -> list[str]:
        pause = self._query.pause
        return [f"pause between epochs {pause_in_words(pause)}"] if pause else []

    def _window_in_words(self) -> str:
        return {"10s": "last 10 s", "1m": "last minute", "run": "whole run"}.get(self.window, self.window)

    def _flat(self, part: PartitionFigures | StageFigures, keys: tuple[str, ...]) -> dict[str, Any]:
        row = {key: getattr(part, key) for key in keys}
        window: PartitionWindow | StageWindow = part.windows[self.window]
        for field in fields(window):
            found = getattr(window, field.name)
            if isinstance(found, Distribution):
                row |= {f"{field.name}_{key}": getattr(found, key) for key in PERCENTILES}
            elif found is not None:
                row[field.name] = found
        return row


def _require(window: str) -> None:
    if window not in (*WINDOWS, "measured"):
        raise TailraceError(
            "TAILRACE_UNKNOWN_WINDOW", f"there is no window '{window}'.", f"choose one of {', '.join(WINDOWS)}."
        )
