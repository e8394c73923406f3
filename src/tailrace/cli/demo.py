"""`tailrace demo`."""

from __future__ import annotations

import json
import time
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from tailrace._kafka.cluster import cluster_of
from tailrace._process.console import SafeConsole, console
from tailrace._process.paths import cache_folder
from tailrace.cli.kafka_config import KafkaConfig
from tailrace.demo import report
from tailrace.demo.options import DemoOptions, DemoResult, Mode, SinkName
from tailrace.demo.view import DemoView
from tailrace.errors import TailraceError


class Modes(StrEnum):
    both = "both"
    micro_batch = "micro-batch"
    real_time = "real-time"


def demo(
    seconds: Annotated[
        int, typer.Option(min=10, help="Seconds to measure Real-Time Mode. Micro-batch is measured for at most 30.")
    ] = 120,
    rate: Annotated[int, typer.Option(min=1, max=20_000, help="Payments per second.")] = 200,
    mode: Annotated[Modes, typer.Option(help="Which mode to run.")] = Modes.both,
    sink: Annotated[
        SinkName, typer.Option(help="Where decisions go. The stores are embedded servers, in Real-Time Mode only.")
    ] = SinkName.KAFKA,
    bootstrap_servers: Annotated[
        str | None, typer.Option(help="A Kafka cluster to use instead of an embedded broker.")
    ] = None,
    kafka_config: KafkaConfig = None,
    checkpoint_location: Annotated[
        Path | None, typer.Option(help="Folder for checkpoints. Its disk is part of the measurement.")
    ] = None,
    output: Annotated[
        Path | None, typer.Option(help="Folder for the plot and the figures.", show_default="in the cache folder")
    ] = None,
    keep: Annotated[
        bool,
        typer.Option("--keep", help="Keep running in Real-Time Mode until Ctrl-C, to look at the dashboard."),
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the figures as JSON on standard output.")] = False,
) -> None:
    """Score card payments in flight: as micro-batch, then in Real-Time Mode with only the trigger changed."""
    # Only now: it imports pandas, for which every other command would wait as well.
    from tailrace.demo.run import run_demo

    folder = output or cache_folder("demo") / time.strftime("%Y%m%d-%H%M%S")
    _make(folder)
    modes = _modes(mode, sink)
    options = DemoOptions(
        seconds=seconds,
        rate=rate,
        modes=modes,
        sink=sink,
        cluster=cluster_of(bootstrap_servers, kafka_config),
        checkpoint_location=checkpoint_location,
        keep=keep,
    )

    def show(result: DemoResult) -> None:
        plot = _draw(result, folder)
        figures = json.dumps(report.to_dict(result, plot), indent=2)
        (folder / "figures.json").write_text(figures + "\n", encoding="utf-8")
        if as_json:
            print(figures)
        else:
            report.show(result, plot, SafeConsole())

    result = run_demo(options, DemoView(console), show)
    lost = sum(measured.lost for measured in result.reports.values())
    if lost:
        raise TailraceError(
            "TAILRACE_RECORDS_LOST",
            f"{lost} payments got no decision in time.",
            f"choose a lower --rate if this machine is too slow for it; Spark's log is {result.spark_log}",
        )


def _modes(mode: Modes, sink: SinkName) -> tuple[Mode, ...]:
    """Rows carry their origin only in Real-Time Mode, and the sinks of the stores need it."""
    if sink is SinkName.KAFKA:
        return tuple(Mode) if mode is Modes.both else (Mode(mode.value),)
    if mode is Modes.micro_batch:
        raise TailraceError(
            "TAILRACE_BAD_ARGUMENT",
            f"the sink {sink.value} needs Real-Time Mode.",
            "choose --mode real-time, or --sink kafka.",
        )
    return (Mode.REAL_TIME,)


def _make(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        probe = folder / ".tailrace-probe"
        probe.touch()
        probe.unlink()
    except OSError as failure:
        raise TailraceError(
            "TAILRACE_FOLDER_NOT_WRITABLE", f"cannot write to {folder}: {failure.strerror}", "choose another --output."
        ) from None


def _draw(result: DemoResult, folder: Path) -> Path | None:
    try:
        return report.draw(result, folder)
    except TailraceError as missing:
        console.print(f"[yellow]No plot:[/] {missing.problem} {missing.fix}")
        return None
