"""The demo end to end; it leaves nothing behind, however it ends."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
from pathlib import Path

import pytest

from tests.helpers.processes import alive, descendants, tailrace_command
from tests.helpers.processes import tailrace as tailrace_cli
from tests.helpers.waiting import comparing_times, until


@pytest.fixture
def own_temporary_folder(tmp_path: Path) -> dict[str, str]:
    folder = tmp_path / "tmp"
    folder.mkdir()
    return {"TMPDIR": str(folder)}


def of_tailrace(temporary_folder: dict[str, str]) -> list[str]:
    return [entry.name for entry in Path(temporary_folder["TMPDIR"]).iterdir() if entry.name.startswith("tailrace")]


def test_both_modes_on_an_embedded_broker(tmp_path: Path, own_temporary_folder: dict[str, str]) -> None:
    output = tmp_path / "out"
    result = tailrace_cli(
        *("demo", "--seconds", "12", "--rate", "100", "--json", "--output", str(output)),
        env=own_temporary_folder,
        timeout_s=240,
    )
    assert result.returncode == 0, result.stderr
    answer = json.loads(result.stdout)
    reports = answer["reports"]
    assert set(reports) == {"micro-batch", "real-time"}
    for report in reports.values():
        assert report["lost"] == 0
        assert report["duplicates"] == 0
        assert report["received"] > 0
    with comparing_times():
        # No absolute times: only that rows flowed in one mode and waited for batches in the other.
        assert reports["real-time"]["p50_ms"] < reports["micro-batch"]["p50_ms"] / 4
    assert len(reports["real-time"]["epoch_boundaries_s"]) >= 1
    # Cold and warm apart.
    assert answer["pause"]["boundaries"] >= 1
    assert len(answer["cold_pauses_ms"]) >= 5
    # A machine that does much else may be too late to plan ahead.
    assert re.search(r"The epochs overlapped|Nothing is read between epochs for", answer["method"])
    assert json.loads((output / "figures.json").read_text()) == answer
    assert Path(answer["plot"]).read_bytes().startswith(b"\x89PNG")
    assert "spans" in answer["method"]
    assert "Traceback" not in result.stderr
    assert of_tailrace(own_temporary_folder) == []


@pytest.mark.parametrize(
    ("sign", "phase", "processes"),
    [
        # Spark's JVM and its launcher are coming up; the broker is there.
        pytest.param(signal.SIGINT, "Starting Spark", 2, marks=pytest.mark.chaos),
        # The broker, Spark's JVM, and soon the generator and the observer.
        pytest.param(signal.SIGINT, "Warming up", 4, marks=pytest.mark.chaos),
        (signal.SIGTERM, "Warming up", 4),
        pytest.param(signal.SIGKILL, "Warming up", 4, marks=pytest.mark.chaos),
    ],
)
def test_stopping_it_leaves_nothing_running(
    sign: signal.Signals, phase: str, processes: int, own_temporary_folder: dict[str, str]
) -> None:
    demo = subprocess.Popen(
        tailrace_command("demo", "--mode", "real-time"),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, **own_temporary_folder},
    )
    assert demo.stdout is not None
    printed = []
    for line in demo.stdout:
        printed.append(line)
        if line.startswith(phase):
            break
    family = until(lambda: found if len(found := descendants(demo.pid)) >= processes else None, phase)
    assert len(of_tailrace(own_temporary_folder)) == 2, "the checkpoints' and the broker's folder"
    demo.send_signal(sign)
    printed.append(demo.stdout.read())
    demo.stdout.close()
    code = demo.wait(timeout=300)
    until(lambda: [pid for pid in family if alive(pid)] == [], "no process is left")
    if sign is not signal.SIGKILL:
        assert code == 130, "".join(printed)
        assert "Traceback" not in "".join(printed)
        assert of_tailrace(own_temporary_folder) == []


@pytest.mark.chaos
@pytest.mark.parametrize("sink", ["postgresql", "redis"])
def test_decisions_in_a_store(sink: str, tmp_path: Path) -> None:
    result = tailrace_cli(
        *("demo", "--sink", sink, "--seconds", "12", "--rate", "50", "--json", "--output", str(tmp_path / "out")),
        timeout_s=240,
    )
    assert result.returncode == 0, result.stderr
    answer = json.loads(result.stdout)
    assert answer["sink"] == sink
    assert set(answer["reports"]) == {"real-time"}, "the stores' sinks are for Real-Time Mode"
    report = answer["reports"]["real-time"]
    assert (report["lost"], report["duplicates"]) == (0, 0)
    assert report["received"] > 0


def test_a_store_needs_real_time_mode() -> None:
    result = tailrace_cli("demo", "--sink", "redis", "--mode", "micro-batch", timeout_s=120)
    assert result.returncode == 1
    assert "TAILRACE_BAD_ARGUMENT" in result.stderr


def test_wrong_bootstrap_servers() -> None:
    result = tailrace_cli("demo", "--bootstrap-servers", "127.0.0.1:1", timeout_s=120)
    assert result.returncode == 1
    assert "TAILRACE_BROKER_UNREACHABLE" in result.stderr
    assert "Traceback" not in result.stderr


def test_a_read_only_checkpoint_folder(unwritable_folder: Path) -> None:
    result = tailrace_cli("demo", "--checkpoint-location", str(unwritable_folder), timeout_s=120)
    assert result.returncode == 1
    assert "TAILRACE_FOLDER_NOT_WRITABLE" in result.stderr
    assert "Traceback" not in result.stderr


def test_a_read_only_output_folder(unwritable_folder: Path) -> None:
    result = tailrace_cli("demo", "--output", str(unwritable_folder), timeout_s=120)
    assert result.returncode == 1
    assert "TAILRACE_FOLDER_NOT_WRITABLE" in result.stderr


@pytest.mark.parametrize("java", ["", "/nowhere"])
def test_no_java(java: str, tmp_path: Path) -> None:
    result = tailrace_cli("demo", env={"JAVA_HOME": java, "PATH": str(tmp_path)}, timeout_s=120)
    assert result.returncode == 1
    assert "TAILRACE_JAVA_MISSING" in result.stderr
    assert "Traceback" not in result.stderr
