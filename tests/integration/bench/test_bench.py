"""A short benchmark on a real broker: its figures are those of a consumer that knows nothing of the harness."""

from __future__ import annotations

import json
import os
import signal
import statistics
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer
from confluent_kafka.admin import AdminClient

from tailrace import EmbeddedKafka
from tailrace._process.console import console
from tailrace._process.machine_load import stretched
from tailrace.bench.options import BenchOptions
from tailrace.bench.run import run_bench
from tailrace.bench.view import BenchView
from tests.helpers.processes import alive, descendants, tailrace_command
from tests.helpers.waiting import comparing_times, until

SECONDS = 6


class SecondOpinion:
    """Reads every output topic of the benchmark as it appears, and takes its own differences."""

    def __init__(self, servers: str) -> None:
        self.servers = servers
        self.rows: dict[str, list[tuple[int, float]]] = {}
        """By topic: when each record was due, in ns, and its latency in ms."""

    @contextmanager
    def listening(self) -> Iterator[SecondOpinion]:
        stop = threading.Event()
        thread = threading.Thread(target=self._listen, args=(stop,))
        thread.start()
        try:
            yield self
        finally:
            stop.set()
            thread.join()

    def _listen(self, stop: threading.Event) -> None:
        consumer = Consumer(
            {
                "bootstrap.servers": self.servers,
                "group.id": "second-opinion",
                "auto.offset.reset": "earliest",
                "topic.metadata.refresh.interval.ms": 500,
                "fetch.wait.max.ms": 5,
            }
        )
        consumer.subscribe(["^bench-.*-out$"])
        while not stop.is_set():
            message = consumer.poll(0.05)
            if message is None or message.error() is not None:
                continue
            now_ns = time.time_ns()
            row = json.loads(message.value() or b"")
            latency_ms = (now_ns - row["intended_ns"]) / 1e6
            self.rows.setdefault(message.topic() or "", []).append((row["intended_ns"], latency_ms))
        consumer.close()


def test_two_systems_and_a_second_opinion(kafka: EmbeddedKafka, tmp_path: Path) -> None:
    options = BenchOptions(
        ("stateless",),
        ("loop", "tailrace"),
        rates=(100,),
        seconds=SECONDS,
        warm_up_s=1,
        checkpoint_s=5,
        ready_within_s=stretched(120),
        patience_s=stretched(15),
    )
    with SecondOpinion(kafka.bootstrap_servers).listening() as opinion:
        result = run_bench(
            options,
            BenchView(console),
            logs=tmp_path / "logs",
            command="test",
            bootstrap_servers=kafka.bootstrap_servers,
        )
    assert result.failures == []
    assert [run.system for run in result.runs] == ["loop", "tailrace"]
    for run, rows in zip(result.runs, opinion.rows.values(), strict=True):
        assert run.lost == 0
        assert run.duplicates == 0
        # A tenth is filtered out.
        assert run.expected == pytest.approx(100 * SECONDS * 0.9, rel=0.05)
        assert run.cpu_s_per_million > 0
        assert run.memory_mb > 10
        assert run.ready_s > 0
        assert len(run.timeline) in (SECONDS, SECONDS + 1)
        with comparing_times():
            expected = median_of_window(rows)
            assert run.latency.p50_ms == pytest.approx(expected, rel=0.5, abs=3)
            # The broker has the answer before the consumer does, and both saw the same pipeline.
            assert run.broker_latency.p50_ms <= run.latency.p50_ms + 5
    assert result.versions["tailrace"]
    left = AdminClient({"bootstrap.servers": kafka.bootstrap_servers}).list_topics(timeout=60).topics
    assert [name for name in left if name.startswith("bench-")] == []


def median_of_window(rows: list[tuple[int, float]]) -> float:
    """Of the last seconds: the window is at the end of a run, and the load ends soon after it."""
    last_ns = max(due for due, _ in rows)
    return statistics.median(latency for due, latency in rows if due > last_ns - SECONDS * 10**9)


def test_a_job_that_fails_does_not_stop_the_rest(kafka: EmbeddedKafka, tmp_path: Path) -> None:
    jobs = tmp_path / "jobs"
    broken = BenchOptions(("stateless", "vendor-a"), ("loop",)).jobs
    subprocess.run(["cp", "-r", str(broken), str(jobs)], check=True)
    (jobs / "stateless" / "loop.py").write_text("raise RuntimeError('planted')\n")
    options = BenchOptions(
        ("stateless", "vendor-a", "keyed-aggregate"),
        ("loop",),
        rates=(50,),
        seconds=2,
        warm_up_s=0.5,
        ready_within_s=stretched(60),
        patience_s=stretched(15),
        jobs=jobs,
    )
    saved: list[int] = []
    result = run_bench(
        options,
        BenchView(console),
        logs=tmp_path / "logs",
        command="test",
        bootstrap_servers=kafka.bootstrap_servers,
        on_progress=lambda so_far: saved.append(len(so_far.runs) + len(so_far.failures)),
    )
    [failed] = result.failures
    assert failed.workload == "stateless"
    assert "RuntimeError: planted" in failed.reason
    assert [run.workload for run in result.runs] == ["vendor-a"]
    assert {one.workload: one.failed for one in result.missing} == {"stateless": True, "keyed-aggregate": False}
    assert saved == [1, 2], "the result is handed over after each run"


@pytest.mark.parametrize("sign", [signal.SIGINT, pytest.param(signal.SIGKILL, marks=pytest.mark.chaos)])
def test_stopping_it_leaves_nothing_running(sign: signal.Signals, tmp_path: Path) -> None:
    folder = tmp_path / "tmp"
    folder.mkdir()
    command = tailrace_command(
        *("bench", "--workload", "vendor-a", "--system", "loop", "--rate", "20", "--output", str(tmp_path / "out"))
    )
    bench = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env={**os.environ, "TMPDIR": str(folder)})
    # The broker, the guard and its job, the generator and the observer.
    family = until(lambda: found if len(found := descendants(bench.pid)) >= 5 else None, "it measures")
    bench.send_signal(sign)
    code = bench.wait(timeout=stretched(60))
    assert bench.stderr is not None
    printed = bench.stderr.read()
    bench.stderr.close()
    until(lambda: [pid for pid in family if alive(pid)] == [], "no process is left")
    if sign is signal.SIGINT:
        assert code == 130, printed
        assert "Traceback" not in printed
        assert [entry.name for entry in folder.iterdir() if entry.name.startswith("tailrace")] == []


def figures(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "bench.json").read_text())
    return found


def test_the_command_writes_report_pictures_and_figures(kafka: EmbeddedKafka, tmp_path: Path) -> None:
    arguments = ["--workload", "vendor-a", "--system", "loop", "--rate", "50", "--seconds", "2", "--warm-up", "1"]
    arguments += ["--bootstrap-servers", kafka.bootstrap_servers, "--output", str(tmp_path), "--json"]
    done = subprocess.run(
        tailrace_command("bench", *arguments), capture_output=True, text=True, timeout=stretched(120), check=False
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == figures(tmp_path)
    assert (tmp_path / "vendor-a-50.png").read_bytes().startswith(b"\x89PNG")
    assert "vendor-a" in (tmp_path / "report.html").read_text()
    assert (tmp_path / "logs" / "vendor-a-loop-50-1.log").exists()
    again = subprocess.run(
        tailrace_command("bench", "compare", str(tmp_path), str(tmp_path / "bench.json")),
        capture_output=True,
        text=True,
        timeout=stretched(60),
        check=False,
    )
    assert again.returncode == 0, again.stderr
    assert "0 figures got slower" in again.stdout
