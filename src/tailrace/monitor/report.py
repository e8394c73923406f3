"""A query's latency at one moment, in the forms that people and programs read."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from hdrh.histogram import HdrHistogram

from tailrace.errors import TailraceError
from tailrace.monitor.epochs import seam_in_words
from tailrace.monitor.histogram import PERCENTILES, Histogram
from tailrace.monitor.measured import FIGURES
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
        query: Mapping[str, Any],
        histogram: Callable[[str, str], Histogram],
        window: str = "10s",
    ) -> None:
        _require(window)
        self._query = query
        self._histogram = histogram
        self.window = window

    @property
    def status(self) -> str:
        """ "starting", "running", "lagging", "ended" or "failed"."""
        return str(self._query["status"])

    @property
    def findings(self) -> list[dict[str, Any]]:
        """What causes the tail. Each finding has a code, a title, its evidence and a remedy."""
        return list(self._query["findings"])

    @property
    def lag_rows(self) -> int | None:
        """How many rows the query is behind the newest offsets; None if unknown."""
        lag: int | None = self._query["lag_rows"]
        return lag

    @property
    def seam_ms(self) -> float | None:
        """How long nothing is read at the end of an epoch: the median of the last boundaries."""
        return self._query["seam"]["median_ms"] if self._query["seam"] else None

    @property
    def rows_in_per_s(self) -> float:
        """Rows read per second."""
        return float(self._query["windows"][self.window]["rows_in_per_s"])

    @property
    def rows_out_per_s(self) -> float:
        """Rows written per second."""
        return float(self._query["windows"][self.window]["rows_out_per_s"])

    @property
    def p50_ms(self) -> float | None:
        """The median of the end-to-end latency; None if nothing was recorded."""
        return self.figure("end_to_end").get("p50_ms")

    @property
    def p99_ms(self) -> float | None:
        """The 99th percentile of the end-to-end latency; None if nothing was recorded."""
        return self.figure("end_to_end").get("p99_ms")

    @property
    def p999_ms(self) -> float | None:
        """The 99.9th percentile of the end-to-end latency; None if nothing was recorded."""
        return self.figure("end_to_end").get("p999_ms")

    @property
    def max_ms(self) -> float | None:
        """The maximum of the end-to-end latency; None if nothing was recorded."""
        return self.figure("end_to_end").get("max_ms")

    def figure(self, name: str, window: str | None = None) -> dict[str, float]:
        """Count, mean and percentiles of one figure; empty if nothing was recorded."""
        _require(window or self.window)
        if name not in FIGURES:
            raise TailraceError(
                "TAILRACE_UNKNOWN_FIGURE", f"there is no figure '{name}'.", f"choose one of {', '.join(FIGURES)}."
            )
        return dict(self._query["windows"][window or self.window][name] or {})

    def histogram(self, name: str = "end_to_end", window: str | None = None) -> HdrHistogram:
        """One figure as an `HdrHistogram` in microseconds."""
        self.figure(name, window)
        return self._histogram(name, window or self.window).to_hdr()

    def to_dict(self) -> dict[str, Any]:
        """Every figure in every window, also by stage and by partition."""
        return dict(self._query)

    def to_json(self, indent: int | None = None) -> str:
        """The same as JSON."""
        return json.dumps(self._query, indent=indent)

    def to_pandas(self, of: str = "figures") -> pd.DataFrame:
        """A data frame with a row per figure; with `of="partitions"` or `of="stages"`, a row per partition or stage."""
        import pandas as pd

        match of:
            case "figures":
                rows = [{"figure": name, **self.figure(name)} for name in FIGURES if self.figure(name)]
            case "partitions":
                rows = [self._flat(one, ("topic", "partition", "lag_rows")) for one in self._query["partitions"]]
            case "stages":
                rows = [self._flat(one, ("stage",)) for one in self._query["stages"]]
            case _:
                raise TailraceError(
                    "TAILRACE_UNKNOWN_FIGURE", f"there are no rows of '{of}'.", "choose figures, partitions or stages."
                )
        return pd.DataFrame(rows)

    def to_text(self) -> str:
        """The table that `print` shows."""
        window = self._query["windows"][self.window]
        lines = [
            f"{self._query['name'] or self._query['id']}: {self.status}{self._epoch()}",
            f"in {window['rows_in_per_s']:,.1f} rows/s, out {window['rows_out_per_s']:,.1f} rows/s, "
            f"lag {'not known' if self.lag_rows is None else f'{self.lag_rows:,} rows'}",
            *self._seam(),
            "",
            f"{'ms, ' + self._window_in_words():<26}" + "".join(f"{label:>9}" for label in COLUMNS.values()),
        ]
        figures = [
            f"  {LABELS[name]:<24}" + "".join(f"{found[key]:>9,.1f}" for key in PERCENTILES)
            for name in FIGURES
            if (found := self.figure(name))
        ]
        lines += figures or ["  nothing was recorded"]
        for finding in self.findings:
            lines += [
                "",
                f"{finding['title']}  [{finding['code']}]",
                f"  {finding['evidence']}",
                f"  → {finding['remedy']}",
            ]
        if self._query["error"]:
            lines += ["", f"failed: {str(self._query['error']).splitlines()[0]}"]
        return "\n".join(lines)

    __str__ = to_text

    def __repr__(self) -> str:
        return f"<Latency of {self._query['name'] or self._query['id']}: {self.status}, p99 {self.p99_ms} ms>"

    def _epoch(self) -> str:
        number = self._query["epoch"]["number"]
        return "" if number is None else f", epoch {number}"

    def _seam(self) -> list[str]:
        seam = self._query["seam"]
        return [f"pause between epochs {seam_in_words(seam)}"] if seam else []

    def _window_in_words(self) -> str:
        return {"10s": "last 10 s", "1m": "last minute", "run": "whole run"}.get(self.window, self.window)

    def _flat(self, part: Mapping[str, Any], keys: tuple[str, ...]) -> dict[str, Any]:
        row = {key: part[key] for key in keys}
        for name, found in part["windows"][self.window].items():
            if isinstance(found, dict):
                row |= {f"{name}_{key}": found[key] for key in PERCENTILES}
            elif found is not None:
                row[name] = found
        return row


def _require(window: str) -> None:
    if window not in (*WINDOWS, "measured"):
        raise TailraceError(
            "TAILRACE_UNKNOWN_WINDOW", f"there is no window '{window}'.", f"choose one of {', '.join(WINDOWS)}."
        )
