"""A whole benchmark: broker, environments, and one run after the other. A failed run does not stop the rest."""

from __future__ import annotations

import platform
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

from tailrace._kafka.cluster import KafkaCluster, Servers
from tailrace._process.console import working
from tailrace._process.temporary_folders import delete_folder, new_folder
from tailrace._spark import maven
from tailrace._version import __version__
from tailrace.bench import environments
from tailrace.bench.extras import extra_cells, extras, failed
from tailrace.bench.measure import Bed, measure
from tailrace.bench.options import BenchOptions
from tailrace.bench.result import BenchResult, Missing
from tailrace.bench.schedule import Cell, cells, schedule
from tailrace.bench.systems import SYSTEMS
from tailrace.bench.view import BenchView
from tailrace.errors import ConfigurationError, TailraceError
from tailrace.kafka import EmbeddedKafka, require_broker
from tailrace.loadtest.machine import describe_machine

REACH_SECURED = ("spark", "loop")


def run_bench(
    options: BenchOptions,
    view: BenchView,
    *,
    logs: Path,
    command: str,
    bootstrap_servers: Servers | None = None,
    on_progress: Callable[[BenchResult], None] = lambda _: None,
) -> BenchResult:
    """Measure every cell of the options.

    :param logs: the folder for the logs of the systems.
    :param on_progress: called with the result so far after each run, so an interrupted benchmark is not lost.
    """
    began = time.monotonic()
    result = _new_result(options, command)
    refused = tuple(Missing(c.workload, c.system, c.rate, c.refusal, failed=False) for c in cells(options) if c.refusal)
    result = replace(result, missing=refused)
    with ExitStack() as stack:
        servers = _broker(bootstrap_servers, stack)
        folder = new_folder("bench")
        stack.callback(delete_folder, folder)
        logs.mkdir(parents=True, exist_ok=True)
        bed = Bed(options, servers, folder, logs, environments.stage(options.jobs, folder))
        planned = schedule(options)
        unavailable = _prepare({cell.system for _, cell in planned}, servers, view)
        result = replace(result, versions=_versions(options, unavailable))
        with view.runs(len(planned) + len(extra_cells(options))) as progress:
            for number, cell in planned:
                result = _run(result, cell, number, bed, progress, unavailable)
                result = replace(result, took_s=round(time.monotonic() - began, 1))
                on_progress(result)
            for extra in extras(options, bed, unavailable, progress):
                result = replace(extra(result), took_s=round(time.monotonic() - began, 1))
                on_progress(result)
    return result


def _run(
    result: BenchResult, cell: Cell, number: int, bed: Bed, progress: BenchView, unavailable: dict[str, TailraceError]
) -> BenchResult:
    progress.begin(cell, number)
    try:
        if cell.system in unavailable:
            raise unavailable[cell.system]
        run = measure(cell, number, bed, progress.watch)
    except TailraceError as failure:
        progress.failed(cell, failure)
        return replace(result, missing=(*result.missing, failed(cell, failure, number)))
    progress.done(run)
    return replace(result, runs=(*result.runs, run))


def _new_result(options: BenchOptions, command: str) -> BenchResult:
    return BenchResult(
        tailrace=__version__,
        machine=f"{describe_machine()}, kernel {platform.release()}",
        command=command,
        began=time.strftime("%Y-%m-%d %H:%M:%S %Z"),
        took_s=0.0,
        seconds=options.seconds,
        warm_up_s=options.warm_up_s,
        checkpoint_s=options.checkpoint_s,
        rounds=options.rounds,
        partitions=options.partitions,
        record_bytes=options.record_bytes,
        workloads=options.workloads,
        systems=options.systems,
        rates=options.rates,
        versions={},
    )


def _broker(bootstrap_servers: Servers | None, stack: ExitStack) -> Servers:
    if bootstrap_servers is not None:
        require_broker(bootstrap_servers)
        return bootstrap_servers
    maven.resolve(maven.KAFKA_BROKER)
    with working("Starting an embedded Apache Kafka"):
        return stack.enter_context(EmbeddedKafka()).bootstrap_servers


def _prepare(systems: set[str], servers: Servers, view: BenchView) -> dict[str, TailraceError]:
    """Install what is missing. A system that cannot be installed does not stop the others."""
    unavailable = {}
    for name in sorted(systems):
        try:
            if isinstance(servers, KafkaCluster) and SYSTEMS[name].runtime not in REACH_SECURED:
                raise ConfigurationError(
                    "TAILRACE_BAD_ARGUMENT",
                    f"{name} is not measured with --kafka-config.",
                    "measure it on an embedded broker, or on a cluster without passwords.",
                )
            environments.prepare(SYSTEMS[name])
        except TailraceError as failure:
            view.unavailable(name, failure)
            unavailable[name] = failure
    return unavailable


def _versions(options: BenchOptions, unavailable: dict[str, TailraceError]) -> dict[str, str]:
    return {name: environments.version_of(SYSTEMS[name]) for name in options.systems if name not in unavailable}
