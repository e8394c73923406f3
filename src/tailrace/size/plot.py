"""What the checkpoint interval costs, as a plot."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from tailrace.errors import TailraceError
from tailrace.size.interval import BOUNDARY_SHARE_BELOW
from tailrace.size.load import bad_size
from tailrace.size.rounding import short_duration

if TYPE_CHECKING:
    from tailrace.size.sizing import Sizing

RED, GREEN, BLUE = "#d9542b", "#0b7a75", "#4a4e8f"


def draw_plot(size: Sizing, path: Path) -> Path:
    if path.suffix.lower() not in (".png", ".svg"):
        raise bad_size(f"the plot cannot be drawn into '{path}'.", "give a file whose name ends in .png or .svg.")
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise TailraceError(
            "TAILRACE_EXTRA_MISSING", "drawing the plot needs matplotlib.", 'pip install "tailrace[demo]"'
        ) from None
    # Not through pyplot, which would change what a notebook draws with.
    figure = Figure(figsize=(8, 4.8), layout="constrained")
    failure = figure.subplots()
    failure.set(xscale="log", yscale="log", xlabel="checkpoint interval", ylabel="after a failure, s (log)")
    failure.set_title(f"The checkpoint interval: {size.arithmetic} slots, {size.boundary_ms:.0f} ms at a boundary")
    seconds = [one.interval_s for one in size.intervals]
    drawn = []
    for name, label, style in (("recovery_s", "replay", "-"), ("catch_up_s", "until it has caught up", ":")):
        points = [getattr(one, name) for one in size.intervals]
        if None not in points:
            drawn += failure.plot(seconds, points, style, color=RED, marker="o", ms=3, label=label)
    if size.utilization is not None:
        longest = f"longest replay: {short_duration(size.load.max_recovery_s)}"
        drawn.append(failure.axhline(size.load.max_recovery_s, color=RED, lw=0.8, ls="--", label=longest))
    boundary = failure.twinx()
    boundary.set(yscale="log", ylabel="records at a boundary, % (log)")
    shares = [100 * one.boundary_share for one in size.intervals]
    drawn += boundary.plot(seconds, shares, color=GREEN, marker="o", ms=3, label="records at a boundary")
    for percentile, share in BOUNDARY_SHARE_BELOW.items():
        boundary.axhline(100 * share, color=GREEN, lw=0.8, ls="--")
        boundary.annotate(f"{percentile} is clear below", (seconds[0], 100 * share), fontsize="small", va="bottom")
    if size.recommended is not None:
        at = size.recommended.interval_s
        drawn.append(failure.axvline(at, color=BLUE, lw=1.6, alpha=0.7, label=f"recommended: {short_duration(at)}"))
    failure.set_xticks(seconds, [short_duration(one) for one in seconds], fontsize="small", rotation=30)
    failure.minorticks_off()
    failure.grid(visible=True, alpha=0.3)
    figure.legend(handles=drawn, loc="outside lower center", ncols=3, fontsize="small", frameon=False)
    try:
        figure.savefig(path, dpi=120)
    except OSError as refused:
        raise TailraceError(
            "TAILRACE_FOLDER_NOT_WRITABLE", f"cannot write to {path}: {refused.strerror}", "choose another file."
        ) from None
    return path
