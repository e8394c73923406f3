"""`tailrace bench`."""

from __future__ import annotations

import shlex
import sys
import time
from pathlib import Path
from typing import Annotated

import typer

from tailrace._kafka.cluster import cluster_of
from tailrace._process.arguments import require_seconds
from tailrace._process.console import SafeConsole, console
from tailrace._process.paths import cache_folder
from tailrace.bench import compare as comparison
from tailrace.bench import compare_text, files, html, markdown, pictures, table
from tailrace.bench.options import QUICK_SECONDS, QUICK_WARM_UP_S, SECONDS, WARM_UP_S, BenchOptions, parse_duration
from tailrace.bench.result import BenchResult
from tailrace.bench.run import run_bench
from tailrace.bench.systems import OWN, SYSTEMS
from tailrace.bench.view import BenchView
from tailrace.bench.workloads import QUICK, USUAL, WORKLOADS
from tailrace.cli.interruptible import interruptible
from tailrace.cli.kafka_config import KafkaConfig
from tailrace.contract.codec import to_json
from tailrace.errors import TailraceError

ALL = "all"

bench = typer.Typer(help="Measure Tailrace beside other systems, with the same load on the same broker.")


@bench.callback(invoke_without_command=True)
@interruptible
def measure(
    context: typer.Context,
    quick: Annotated[
        bool, typer.Option("--quick", help="Two workloads, no peers, a short warm-up: less than five minutes.")
    ] = False,
    workload: Annotated[
        list[str] | None,
        typer.Option(
            help=f"What to run: {', '.join(WORKLOADS)}, or all. May be repeated.", show_default=", ".join(USUAL)
        ),
    ] = None,
    system: Annotated[
        list[str] | None,
        typer.Option(help=f"On what: {', '.join(SYSTEMS)}, or all. May be repeated.", show_default=", ".join(OWN)),
    ] = None,
    rate: Annotated[
        list[int] | None,
        typer.Option(min=1, max=100_000, help="Records per second. May be repeated.", show_default="200"),
    ] = None,
    record_bytes: Annotated[
        int | None,
        typer.Option(min=120, max=500_000, help="Size of a record.", show_default="200, the vendor's 1200"),
    ] = None,
    partitions: Annotated[int, typer.Option(min=1, max=64, help="Partitions of each topic.")] = 2,
    seconds: Annotated[
        float | None,
        typer.Option(
            min=1, help="Length of the measurement.", show_default=f"{SECONDS:g}; {QUICK_SECONDS:g} with --quick"
        ),
    ] = None,
    warm_up: Annotated[
        float | None,
        typer.Option(
            min=0,
            help="Seconds between the first answer and the measurement.",
            show_default=f"{WARM_UP_S:g}; {QUICK_WARM_UP_S:g} with --quick",
        ),
    ] = None,
    checkpoint: Annotated[str, typer.Option(help="Interval of checkpoints or commits, for every system.")] = "10s",
    rounds: Annotated[int, typer.Option(min=1, max=100, help="How often to run everything.")] = 1,
    ramp: Annotated[
        float | None,
        typer.Option(
            min=1, metavar="MS", help="Also find the highest rate at which p99 stays below this many milliseconds."
        ),
    ] = None,
    recovery: Annotated[
        bool, typer.Option("--recovery", help="Also kill each system once, and measure how it comes back.")
    ] = False,
    bootstrap_servers: Annotated[
        str | None, typer.Option(help="A Kafka cluster to use instead of an embedded broker.")
    ] = None,
    kafka_config: KafkaConfig = None,
    output: Annotated[
        Path | None, typer.Option(help="Folder for report, figures and logs.", show_default="in the cache folder")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the figures as JSON on standard output.")] = False,
) -> None:
    """Measure Tailrace beside other systems: the same load, broker and checkpoint interval, one after the other.

    Peers are installed into environments of their own, in the cache folder.
    """
    if context.invoked_subcommand is not None:
        return
    require_seconds("--seconds", seconds or 0)
    require_seconds("--warm-up", warm_up or 0)
    options = BenchOptions(
        workloads=_chosen(workload, QUICK if quick else USUAL, tuple(WORKLOADS)),
        systems=_chosen(system, OWN, tuple(SYSTEMS)),
        rates=tuple(dict.fromkeys(rate or [200])),
        record_bytes=record_bytes,
        partitions=partitions,
        seconds=seconds if seconds is not None else QUICK_SECONDS if quick else SECONDS,
        warm_up_s=warm_up if warm_up is not None else QUICK_WARM_UP_S if quick else WARM_UP_S,
        checkpoint_s=parse_duration("--checkpoint", checkpoint),
        rounds=rounds,
        ramp_limit_ms=ramp,
        recovery=recovery,
    )
    folder = _made(output or cache_folder("bench-results") / time.strftime("%Y%m%d-%H%M%S"))
    result = run_bench(
        options,
        BenchView(console),
        logs=folder / "logs",
        command=shlex.join(["tailrace", *sys.argv[1:]]),
        bootstrap_servers=cluster_of(bootstrap_servers, kafka_config),
        on_progress=lambda so_far: _save(so_far, folder),
    )
    _save(result, folder)
    report = _write_report(result, folder)
    if as_json:
        print(to_json(result, indent=1))
    else:
        table.show(result, SafeConsole())
    console.print(f"Report: {report}", soft_wrap=True)
    if result.failures:
        raise TailraceError(
            "TAILRACE_BENCH_INCOMPLETE",
            f"{len(result.failures)} runs failed; the others are in the report.",
            f"read the reasons above and the logs in {folder / 'logs'}",
        )


@bench.command()
@interruptible
def compare(
    old: Annotated[Path, typer.Argument(help="A bench.json, or the folder it is in.")],
    new: Annotated[Path, typer.Argument(help="A later one.")],
    system: Annotated[list[str] | None, typer.Option(help="Only this system. May be repeated.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON on standard output.")] = False,
) -> None:
    """Tell what got slower between two results, beyond the spread of their rounds. Exit code 1 if anything did."""
    compared = comparison.compare(files.read(old), files.read(new), tuple(system or ()))
    if as_json:
        print(to_json(compared, indent=1))
    else:
        compare_text.show(compared, SafeConsole())
    if compared.of(comparison.Change.SLOWER):
        raise typer.Exit(1)


def _save(result: BenchResult, folder: Path) -> None:
    files.write(result, folder)


def _write_report(result: BenchResult, folder: Path) -> Path:
    report = html.write(result, folder)
    markdown.write(result, folder)
    try:
        pictures.write(result, folder)
    except TailraceError as missing:
        console.print(f"[yellow]No pictures:[/] {missing.problem} {missing.fix}")
    return report


def _chosen(names: list[str] | None, usual: tuple[str, ...], everything: tuple[str, ...]) -> tuple[str, ...]:
    if names and ALL in names:
        return everything
    return tuple(dict.fromkeys(names)) if names else usual


def _made(folder: Path) -> Path:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        probe = folder / ".tailrace-probe"
        probe.touch()
        probe.unlink()
    except OSError as failure:
        raise TailraceError(
            "TAILRACE_FOLDER_NOT_WRITABLE", f"cannot write to {folder}: {failure.strerror}", "choose another --output."
        ) from None
    return folder
