"""One run of one cell: topics, the system's process, the load, and everything that is measured around it."""

from __future__ import annotations

import shutil
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tailrace._kafka.cluster import Servers, as_cluster, client_settings
from tailrace.bench import environments
from tailrace.bench.audit import Audit, audit
from tailrace.bench.job_process import JobProcess, files_written
from tailrace.bench.jobs.job import Job
from tailrace.bench.options import BenchOptions
from tailrace.bench.result import Latencies, Run, Second
from tailrace.bench.schedule import Cell
from tailrace.bench.systems import NEEDS_STATE, SYSTEMS
from tailrace.bench.usage import Disturbance, MachineClock, cpu_s, memory_mb
from tailrace.bench.workloads import WORKLOADS
from tailrace.errors import TailraceError
from tailrace.kafka import create_topics, delete_topics
from tailrace.loadtest import LatencyReport, LoadSnapshot, LoadTest
from tailrace.loadtest.records import new_function

ENCODE = "tailrace.bench.records:Encoder"
# Before the end of the window, so that nothing of what follows is counted.
SAMPLE_BEFORE_END_S = 0.1
# A system that answers this late still works off what arrived before it was ready.
CAUGHT_UP_MS, CAUGHT_UP_WITHIN_S = 2000, 60

Watch = Callable[[str, LoadSnapshot | None], None]
"""Called with the phase of a run, and with what the observer saw in the last second."""


@dataclass(frozen=True)
class Bed:
    """What all runs share."""

    options: BenchOptions
    bootstrap_servers: Servers
    folder: Path
    logs: Path
    staging: Path


@dataclass
class Started:
    """A system that runs its job under load."""

    cell: Cell
    bed: Bed
    job: Job
    process: JobProcess
    load: LoadTest
    ready_s: float = 0.0
    latest_p50_ms: float | None = None
    """Of the last second in which there were answers."""

    def check(self) -> None:
        self.process.check()

    def restart(self) -> None:
        """Kill it, and start it again from its checkpoint."""
        self.process.kill()
        self.process = _launch(self.cell, self.bed, self.job, self.process.log)


def measure(cell: Cell, number: int, bed: Bed, watch: Watch) -> Run:
    """:param number: of the round."""
    options = bed.options
    with started(cell, number, bed, watch) as system:
        watch("warming up", None)
        warm_up(system, options.warm_up_s)
        watch("measuring", None)
        sampler = _Sampler(system, options.seconds)
        report = system.load.measure(seconds=options.seconds, patience_s=options.patience_s, check=sampler.check)
        memory = memory_mb(system.process.processes())
        checkpoints = _checkpoints(system, report)
        system.process.kill()
        watch("reading timestamps", None)
        audited = _audit(cell, bed, system.job, report)
    if not report.received:
        told = (
            f"of {report.expected} records in {options.seconds:g} s, none was answered within {options.patience_s:g} s."
        )
        raise TailraceError("TAILRACE_BENCH_JOB_FAILED", told, f"choose a lower --rate, and read {system.process.log}")
    if WORKLOADS[cell.workload].has_timers and not audited.other_rows:
        raise TailraceError("TAILRACE_BENCH_JOB_FAILED", "no timer fired.", f"read {system.process.log}")
    return Run(
        workload=cell.workload,
        system=cell.system,
        rate=cell.rate,
        round=number,
        seconds=options.seconds,
        latency=Latencies.of(report),
        broker_latency=audited.latency,
        expected=report.expected,
        lost=report.lost,
        duplicates=report.duplicates,
        timer_rows=audited.other_rows,
        cpu_s_per_million=round(sampler.cpu_s / max(1.0, sampler.elapsed_s * cell.rate) * 1e6, 1),
        memory_mb=round(memory, 1),
        ready_s=round(system.ready_s, 2),
        disturbance=sampler.disturbance,
        curve=tuple((round(percentile, 4), round(ms, 3)) for percentile, ms in report.curve),
        timeline=tuple(Second(point.at_s, round(point.p50_ms, 3), round(point.p99_ms, 3)) for point in report.timeline),
        checkpoints_s=checkpoints,
    )


@contextmanager
def started(cell: Cell, number: int, bed: Bed, watch: Watch) -> Iterator[Started]:
    """The system under load, from its first answer on. At the end nothing of it is left."""
    workload = WORKLOADS[cell.workload]
    name = f"bench-{uuid.uuid4().hex[:8]}"
    inputs = tuple(f"{name}-in{stream}" for stream in range(workload.streams))
    output = f"{name}-out"
    with ExitStack() as stack:
        stack.callback(delete_topics, bed.bootstrap_servers, [*inputs, output])
        create_topics(bed.bootstrap_servers, inputs, partitions=bed.options.partitions)
        # The broker stamps the answers, whatever timestamp the system gives them.
        append_time = {"message.timestamp.type": "LogAppendTime"}
        create_topics(bed.bootstrap_servers, [output], partitions=bed.options.partitions, config=append_time)
        folder = bed.folder / name
        folder.mkdir()
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        job = _job(cell, bed, inputs, output, folder)
        log = bed.logs / f"{cell.workload}-{cell.system}-{cell.rate}-{number + 1}.log"
        watch("starting", None)
        process = _launch(cell, bed, job, log)
        load = _load(cell, bed, job)
        system = Started(cell, bed, job, process, load)

        def see(snapshot: LoadSnapshot) -> None:
            if snapshot.records:
                system.latest_p50_ms = snapshot.p50_ms
            watch("", snapshot)

        load.on_snapshot = see
        # Not `process.kill`: a restart replaces the process.
        stack.callback(lambda: system.process.kill())
        stack.enter_context(load)
        load.wait_for_output(timeout_s=bed.options.ready_within_s, check=system.check)
        system.ready_s = time.monotonic() - process.started_at
        yield system


def _job(cell: Cell, bed: Bed, inputs: tuple[str, ...], output: str, folder: Path) -> Job:
    system = SYSTEMS[cell.system]
    return Job(
        system=system.name,
        runtime=system.runtime,
        workload=cell.workload,
        bootstrap_servers=str(bed.bootstrap_servers),
        input_topics=inputs,
        output_topic=output,
        partitions=bed.options.partitions,
        checkpoint_s=bed.options.checkpoint_s,
        has_state=cell.workload in NEEDS_STATE,
        folder=str(folder),
        jars=tuple(environments.jars_of(system)),
        spark_options=as_cluster(bed.bootstrap_servers).spark_options(),
        client_settings=client_settings(bed.bootstrap_servers),
    )


def _launch(cell: Cell, bed: Bed, job: Job, log: Path) -> JobProcess:
    system = SYSTEMS[cell.system]
    described = Path(job.folder) / "job.json"
    described.write_text(job.to_json(), encoding="utf-8")
    command = [environments.python_of(system), "-m", environments.PACKAGE, str(described)]
    return JobProcess(command, environments.environment_of(system, bed.staging), log, system.checkpoint_line)


def _load(cell: Cell, bed: Bed, job: Job) -> LoadTest:
    workload = WORKLOADS[cell.workload]
    return LoadTest(
        bootstrap_servers=bed.bootstrap_servers,
        input_topic=job.input_topics,
        output_topic=job.output_topic,
        rate=cell.rate,
        encode=ENCODE,
        encode_options=workload.encode_options(bed.options.record_bytes),
        decode=workload.decode,
        decode_options=decode_options(cell),
        is_answered=workload.is_answered,
    )


def decode_options(cell: Cell) -> dict[str, Any]:
    return {"rate": cell.rate, **WORKLOADS[cell.workload].decode_options}


def warm_up(system: Started, seconds: float) -> None:
    """Let it run, and then until it has worked off what arrived while it started."""
    begun = time.monotonic()
    while (elapsed := time.monotonic() - begun) < seconds + CAUGHT_UP_WITHIN_S:
        caught_up = system.latest_p50_ms is not None and system.latest_p50_ms < CAUGHT_UP_MS
        if elapsed >= seconds and (caught_up or not seconds):
            return
        system.check()
        time.sleep(0.05)


class _Sampler:
    """Takes the processor time at both ends of the window."""

    def __init__(self, system: Started, seconds: float) -> None:
        self._system = system
        self._until = time.monotonic() + seconds - SAMPLE_BEFORE_END_S
        self._begun = MachineClock.now()
        self._cpu_s = cpu_s(system.process.processes())
        self._ended: MachineClock | None = None
        self.cpu_s = 0.0

    def check(self) -> None:
        self._system.check()
        if self._ended is None and time.monotonic() >= self._until:
            self.cpu_s = cpu_s(self._system.process.processes()) - self._cpu_s
            self._ended = MachineClock.now()

    @property
    def elapsed_s(self) -> float:
        return self._end.at_s - self._begun.at_s

    @property
    def disturbance(self) -> Disturbance:
        return self._begun.until(self._end)

    @property
    def _end(self) -> MachineClock:
        assert self._ended is not None
        return self._ended


def _checkpoints(system: Started, report: LatencyReport) -> tuple[float, ...]:
    """When checkpoints were made, in seconds after the start of the window."""
    pattern = SYSTEMS[system.cell.system].checkpoints
    made = list(system.process.checkpoints)
    if pattern is not None:
        made += files_written(Path(system.job.folder), pattern)
    since_start = (round(at - report.started_ns / 1e9, 3) for at in made)
    return tuple(sorted(at for at in since_start if 0 <= at <= report.seconds))


def _audit(cell: Cell, bed: Bed, job: Job, report: LatencyReport) -> Audit:
    decode = new_function(WORKLOADS[cell.workload].decode, decode_options(cell))
    end_ns = report.started_ns + int(report.seconds * 1e9)
    return audit(
        bed.bootstrap_servers,
        job.input_topics,
        job.output_topic,
        decode,
        lambda intended_ns: report.started_ns <= intended_ns < end_ns,
    )
