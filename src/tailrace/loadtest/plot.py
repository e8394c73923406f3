"""Latency curves as a picture: the tail by percentile, and the latency over time."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path

from tailrace.errors import TailraceError
from tailrace.loadtest.report import LatencyReport

COLORS = ("#d9542b", "#0b7a75", "#4a4e8f", "#a06a00")
NINES = (0.0, 50.0, 90.0, 99.0, 99.9, 99.99)


def plot_latency(reports: Mapping[str, LatencyReport], path: Path, *, title: str) -> Path:
    """Plot reports side by side and save the picture to `path`, as PNG or SVG by its suffix."""
    try:
        import matplotlib
    except ImportError:
        raise TailraceError(
            "TAILRACE_EXTRA_MISSING", "drawing the plot needs matplotlib.", 'pip install "tailrace[demo]"'
        ) from None
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, (tail, time) = plt.subplots(1, 2, figsize=(12, 5.2), layout="constrained", sharey=True)
    figure.suptitle(title)
    for color, (name, report) in zip(COLORS, reports.items(), strict=False):
        tail.plot([_nines(p) for p, _ in report.curve], [ms for _, ms in report.curve], color=color, label=name, lw=2)
        seconds = [point.at_s for point in report.timeline]
        time.plot(seconds, [point.p99_ms for point in report.timeline], color=color, lw=1.6, label=f"{name}, p99")
        time.plot(seconds, [point.p50_ms for point in report.timeline], color=color, lw=1, ls=":", label=f"{name}, p50")
        for number, boundary in enumerate(report.epoch_boundaries_s):
            label = f"{name}, epoch boundary" if number == 0 else None
            time.axvline(boundary, color=color, lw=0.8, ls="--", alpha=0.6, label=label)
    tail.set_xticks([_nines(p) for p in NINES], [f"{p:g} %" for p in NINES])
    if any(report.received for report in reports.values()):
        tail.set_yscale("log")
    tail.set(xlabel="records answered within the latency", ylabel="end-to-end latency, ms (log)")
    time.set(xlabel="seconds into the measurement")
    for axes in (tail, time):
        axes.grid(visible=True, which="major", alpha=0.3)
        # Below the axes: inside, it would hide a peak.
        axes.legend(fontsize="small", loc="upper center", bbox_to_anchor=(0.5, -0.14), ncols=3, frameon=False)
    figure.savefig(path, dpi=120)
    plt.close(figure)
    return path


def _nines(percentile: float) -> float:
    """Equal steps for 90, 99, 99.9: how many nines, with the lower half in proportion."""
    return -math.log10(1 - percentile / 100)
