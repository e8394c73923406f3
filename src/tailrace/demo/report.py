"""The demo's result: one table, one plot, one JSON."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from tailrace._version import __version__
from tailrace.contract.codec import encode
from tailrace.demo.options import DemoResult, Mode, SinkName
from tailrace.loadtest import plot_latency
from tailrace.loadtest.machine import describe_machine
from tailrace.loadtest.report import LABELS
from tailrace.monitor.epochs import pause_in_words

READERS = {
    SinkName.KAFKA: "consumer",
    SinkName.POSTGRESQL: "reader of the table in PostgreSQL",
    SinkName.REDIS: "reader of the stream in Redis",
}


def method(result: DemoResult) -> str:
    options = result.options
    boundaries = {mode: len(report.epoch_boundaries_s) for mode, report in result.reports.items()}
    spans = ""
    if Mode.REAL_TIME in boundaries:
        count = boundaries[Mode.REAL_TIME]
        spans = f" Real-time epochs of {options.epoch_s} s; the window spans {count} epoch boundaries."
        if count < 2:
            spans += " That is fewer than two, so these figures do not show the tail of the boundaries."
    measured = " and ".join(f"{report.seconds:.0f} s ({mode.value})" for mode, report in result.reports.items())
    return (
        f"{options.rate} payments/s, open loop, measured for {measured} after a warm-up; latency from the "
        f"intended send time to an independent {READERS[options.sink]}, broker and all on one machine."
        f"{spans}{_pause(result)}"
    )


def _pause(result: DemoResult) -> str:
    """Warm and cold pauses separately: a JVM's first boundaries are not typical."""
    if result.pause is None:
        return ""
    if result.pause.overlapped == result.pause.boundaries:
        return " The epochs overlapped: no partition waited for a boundary."
    warm = f" Nothing is read between epochs for {pause_in_words(result.pause)}."
    if not result.cold_pauses_ms:
        return warm
    return f"{warm} It was {result.cold_pauses_ms[0]:,.0f} ms at the very first of a cold JVM."


def table(result: DemoResult) -> Table:
    drawn = Table(title="End-to-end latency of a decision, ms", title_justify="left")
    drawn.add_column("mode", no_wrap=True)
    for label in (*LABELS.values(), "lost", "duplicates"):
        drawn.add_column(label, justify="right", no_wrap=True)
    for mode, report in result.reports.items():
        figures = [_brief(value) for value in report.percentiles().values()]
        drawn.add_row(mode.value, *figures, str(report.lost), str(report.duplicates))
    ratios = speed_up(result)
    if ratios:
        drawn.add_section()
        drawn.add_row("improvement", *[f"{ratios[name]:.0f}×" if name in ratios else "" for name in LABELS])
    return drawn


def _brief(milliseconds: float) -> str:
    return f"{milliseconds:.1f}" if milliseconds < 100 else f"{milliseconds:.0f}"


def speed_up(result: DemoResult) -> dict[str, float]:
    """Micro-batch's latency divided by real-time's, for each percentile, if both were run."""
    if set(result.reports) != set(Mode):
        return {}
    slow, fast = (result.reports[mode].percentiles() for mode in (Mode.MICRO_BATCH, Mode.REAL_TIME))
    return {name: slow[name] / fast[name] for name in slow if fast[name]}


def to_dict(result: DemoResult, plot: Path | None) -> dict[str, Any]:
    return {
        "tailrace": __version__,
        "machine": describe_machine(),
        "method": method(result),
        "sink": result.options.sink.value,
        "rate": result.options.rate,
        "seconds": result.options.seconds,
        "epoch_seconds": result.options.epoch_s,
        "reports": {mode.value: report.to_dict() for mode, report in result.reports.items()},
        "pause": encode(result.pause),
        "cold_pauses_ms": [round(pause, 1) for pause in result.cold_pauses_ms],
        "improvement": {name: round(ratio, 2) for name, ratio in speed_up(result).items()},
        "plot": str(plot) if plot else None,
        "spark_log": str(result.spark_log),
    }


def draw(result: DemoResult, folder: Path) -> Path:
    title = f"The same query, only the trigger changed ({result.options.rate} payments/s)"
    reports = {mode.value: report for mode, report in result.reports.items()}
    return plot_latency(reports, folder / "latency.png", title=title)


def show(result: DemoResult, plot: Path | None, console: Console) -> None:
    console.print()
    console.print(table(result))
    console.print(f"[dim]{method(result)}[/]")
    console.print(f"[dim]{describe_machine()}[/]")
    if plot is not None:
        console.print(f"Plot: {plot}", soft_wrap=True)
