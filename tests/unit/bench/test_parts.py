"""The parts of a benchmark that need no broker: options, schedule, disturbance, the process of a job, its files."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tailrace._process.owner_pipe import environment_of_child
from tailrace.bench import environments, files
from tailrace.bench.job_process import JobProcess, files_written
from tailrace.bench.options import JOBS, BenchOptions, parse_duration
from tailrace.bench.ramp import climb
from tailrace.bench.recovery import recovery_of
from tailrace.bench.result import Run
from tailrace.bench.schedule import Cell, cells, schedule
from tailrace.bench.systems import SYSTEMS, System
from tailrace.bench.usage import Disturbance, MachineClock
from tailrace.bench.workloads import WORKLOADS
from tailrace.cli.main import app
from tailrace.errors import TailraceError
from tailrace.loadtest import LatencyReport
from tests.helpers.bench_results import make_result, make_run
from tests.helpers.processes import alive, descendants
from tests.helpers.waiting import until


class TestOptions:
    @pytest.mark.parametrize(("text", "seconds"), [("10s", 10), ("1m", 60), ("5", 5), (" 90 s ", 90)])
    def test_durations(self, text: str, seconds: int) -> None:
        assert parse_duration("--checkpoint", text) == seconds

    @pytest.mark.parametrize("text", ["", "soon", "-5s", "4s", "10h", "1e3", "2m30s", "61m"])
    def test_a_bad_duration(self, text: str) -> None:
        with pytest.raises(TailraceError) as failure:
            parse_duration("--checkpoint", text)
        assert failure.value.code == "TAILRACE_BAD_ARGUMENT"

    @pytest.mark.parametrize(
        ("arguments", "code"),
        [
            (("--workload", "fast"), "TAILRACE_BAD_ARGUMENT"),
            (("--system", "kafka-streams"), "TAILRACE_BAD_ARGUMENT"),
            (("--checkpoint", "1s"), "TAILRACE_BAD_ARGUMENT"),
            (("--seconds", "inf"), "TAILRACE_BAD_ARGUMENT"),
            (("--bootstrap-servers", "127.0.0.1:1"), "TAILRACE_BROKER_UNREACHABLE"),
            (("--output", "/proc/tailrace-cannot-write-here"), "TAILRACE_FOLDER_NOT_WRITABLE"),
        ],
    )
    def test_bad_arguments_are_coded_errors(self, arguments: tuple[str, str], code: str, tmp_path: Path) -> None:
        failed = CliRunner().invoke(app, ["bench", "--output", str(tmp_path / "out"), *arguments]).exception
        assert isinstance(failed, TailraceError)
        assert failed.code == code


class TestSchedule:
    def test_rounds_are_interleaved_and_begin_with_different_systems(self) -> None:
        options = BenchOptions(("stateless", "vendor-a"), ("tailrace", "real-time", "loop"), rounds=3)
        runs = schedule(options)
        firsts = [next(cell.system for number, cell in runs if number == one) for one in range(3)]
        assert firsts == ["tailrace", "real-time", "loop"]
        for number in range(3):
            of_round = [cell for one, cell in runs if one == number]
            assert len(of_round) == len(set(of_round)) == 6
            # All systems of a workload before the next workload.
            assert [cell.workload for cell in of_round] == ["stateless"] * 3 + ["vendor-a"] * 3

    def test_what_cannot_be_run_is_not_run_and_has_a_reason(self) -> None:
        options = BenchOptions(("python-per-record",), ("real-time", "loop"), rounds=2)
        assert {cell.system for _, cell in schedule(options)} == {"loop"}
        [refused] = [cell for cell in cells(options) if cell.refusal]
        assert refused.system == "real-time"

    def test_every_cell_has_a_job_or_a_reason(self) -> None:
        for system in SYSTEMS.values():
            for workload in WORKLOADS:
                job = JOBS / workload.replace("-", "_") / f"{system.runtime}.py"
                refused = workload in system.cannot
                # Spark's three share their files.
                assert job.exists() or refused, f"{workload} on {system.name} has neither a job nor a reason"

    def test_every_job_can_be_imported_where_tailrace_is_not(self) -> None:
        """Peers have environments of their own: at its top, a job imports nothing of Tailrace."""
        importing = [path for path in JOBS.rglob("*.py") if "\nfrom tailrace" in path.read_text(encoding="utf-8")]
        assert importing == []


class TestDisturbance:
    def test_foreign_and_stolen_time(self) -> None:
        begun = MachineClock(at_s=100, busy_s=1000, steal_s=5, ours_s=400)
        cores = os.cpu_count() or 1
        capacity = 10 * cores
        end = MachineClock(110, 1000 + 0.5 * capacity, 5 + 0.01 * capacity, 400 + 0.3 * capacity)
        found = begun.until(end)
        assert found.steal_pct == pytest.approx(1)
        assert found.foreign_pct == pytest.approx(20)
        assert found.is_disturbed

    def test_a_quiet_run_is_not_disturbed(self) -> None:
        assert not Disturbance(steal_pct=0.5, foreign_pct=3).is_disturbed
        assert Disturbance(steal_pct=5, foreign_pct=0).is_disturbed

    def test_a_foreign_process_is_seen(self) -> None:
        """A child that is busy is ours; one that this process did not start would be foreign."""
        begun = MachineClock.now()
        code = "import time\nend = time.process_time() + 0.3\nwhile time.process_time() < end: pass"
        child = subprocess.Popen([sys.executable, "-c", code])
        child.wait()
        end = MachineClock.now()
        # A child that has ended is counted with its parent.
        assert end.ours_s - begun.ours_s >= 0.29


class TestJobProcess:
    def run(self, code: str, tmp_path: Path, checkpoint_line: str | None = None) -> JobProcess:
        return JobProcess([sys.executable, "-c", code], environment_of_child(), tmp_path / "log", checkpoint_line)

    def test_one_that_fails_says_why(self, tmp_path: Path) -> None:
        process = self.run("raise ValueError('no such topic: password=abc')", tmp_path)

        def failure() -> TailraceError | None:
            try:
                process.check()
            except TailraceError as error:
                return error
            return None

        error = until(failure, "the job has failed")
        process.kill()
        assert error.code == "TAILRACE_BENCH_JOB_FAILED"
        assert "ValueError: no such topic" in error.problem
        assert "abc" not in error.problem
        assert str(tmp_path / "log") in error.fix

    def test_killing_it_ends_everything_it_started(self, tmp_path: Path) -> None:
        code = (
            "import subprocess, sys, time\n"
            "subprocess.Popen([sys.executable, '-c', 'import os, time; os.setpgrp(); time.sleep(600)'])\n"
            "print('up', flush=True); time.sleep(600)"
        )
        process = self.run(code, tmp_path)
        until(lambda: "up" in (tmp_path / "log").read_text() if (tmp_path / "log").exists() else None, "it runs")
        family = until(lambda: found if len(found := {p.pid for p in process.processes()}) == 3 else None, "all three")
        process.kill()
        process.kill()
        assert [pid for pid in family if alive(pid)] == []

    def test_it_ends_with_its_owner(self, tmp_path: Path) -> None:
        code = (
            "import sys\nfrom pathlib import Path\nfrom tailrace.bench.job_process import JobProcess\nimport os, time\n"
            "JobProcess([sys.executable, '-c', 'import time; time.sleep(600)'], dict(os.environ), Path(sys.argv[1]))\n"
            "print('up', flush=True); time.sleep(600)"
        )
        command = [sys.executable, "-c", code, str(tmp_path / "log")]
        owner = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert owner.stdout is not None
        assert owner.stdout.readline() == "up\n"
        family = until(lambda: found if len(found := descendants(owner.pid)) == 2 else None, "the guard and the job")
        owner.kill()
        owner.wait()
        owner.stdout.close()
        until(lambda: [pid for pid in family if alive(pid)] == [], "nothing is left")

    def test_checkpoints_are_heard(self, tmp_path: Path) -> None:
        code = "print('@checkpoint 12.5'); print('INFO: Committed a checkpoint in 0.1s'); print('other')"
        process = self.run(code, tmp_path, checkpoint_line="Committed a checkpoint")
        until(lambda: "other" in (tmp_path / "log").read_text() if (tmp_path / "log").exists() else None, "all lines")
        process.kill()
        assert process.checkpoints[0] == 12.5
        assert len(process.checkpoints) == 2

    def test_files_of_checkpoints(self, tmp_path: Path) -> None:
        (tmp_path / "commits").mkdir()
        for name in ("0", "1", ".1.crc"):
            (tmp_path / "commits" / name).touch()
        assert len(files_written(tmp_path, "commits/*")) == 2


class TestEnvironments:
    def test_a_package_that_does_not_exist_is_a_coded_error(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("TAILRACE_CACHE", str(tmp_path))
        monkeypatch.setenv("PIP_NO_INDEX", "1")
        peer = System("peer", "Peer", "peer", "none", (), packages=("tailrace-no-such-package==1",))
        with pytest.raises(TailraceError) as failure:
            environments.python_of(peer)
        assert failure.value.code == "TAILRACE_PEER_NOT_INSTALLED"
        assert "tailrace-no-such-package" in failure.value.problem

    def test_a_peer_sees_its_own_packages_and_not_ours(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        packages = tmp_path / "lib" / "python3" / "site-packages"
        packages.mkdir(parents=True)
        monkeypatch.setattr(environments, "python_of", lambda _: str(tmp_path / "bin" / "python"))
        peer = System("peer", "Peer", "peer", "none", (), packages=("some",))
        path = environments.environment_of(peer, tmp_path / "jobs")["PYTHONPATH"]
        assert path.split(os.pathsep) == [str(tmp_path / "jobs"), str(packages)]

    def test_the_jobs_are_a_package_of_their_own(self, tmp_path: Path) -> None:
        staging = environments.stage(JOBS, tmp_path)
        code = "import bench_jobs.job, bench_jobs.stateless.loop as loop; print(loop.answer(b'{\"amount\": 10}'))"
        answer = subprocess.run(
            [sys.executable, "-I", "-c", f"import sys; sys.path.insert(0, {str(staging)!r}); {code}"],
            capture_output=True,
            text=True,
        )
        assert answer.stdout == "None\n", answer.stderr


class TestFiles:
    def test_a_result_survives_its_file(self, tmp_path: Path) -> None:
        result = make_result([make_run("stateless", "tailrace", p50=5.0)])
        path = files.write(result, tmp_path)
        assert files.read(path) == files.read(tmp_path) == result

    @pytest.mark.parametrize("text", ["", "{}", "[]", '{"format": 99}', '{"runs": 1}'])
    def test_another_file_is_a_coded_error(self, tmp_path: Path, text: str) -> None:
        (tmp_path / "bench.json").write_text(text)
        with pytest.raises(TailraceError) as failure:
            files.read(tmp_path / "bench.json")
        assert failure.value.code == "TAILRACE_BAD_BENCH_FILE"

    def test_no_file(self, tmp_path: Path) -> None:
        with pytest.raises(TailraceError) as failure:
            files.read(tmp_path / "gone.json")
        assert failure.value.code == "TAILRACE_BAD_BENCH_FILE"

    def test_it_is_plain_json(self, tmp_path: Path) -> None:
        found = json.loads(files.write(make_result([make_run("stateless", "loop")]), tmp_path).read_text())
        assert found["runs"][0]["latency"]["p99_ms"] > 0
        assert Cell("stateless", "loop", 200).refusal is None


class TestRamp:
    def test_it_finds_the_highest_rate_below_the_limit(self) -> None:
        asked: list[int] = []

        def measured(rate: int) -> Run:
            asked.append(rate)
            return make_run("stateless", "loop", rate=rate, p50=rate / 100)  # p99 is three times that

        found = climb("stateless", "loop", 200, 50, measured)
        # 1,600 gives a p99 of 48 ms; 3,200 and, halfway back, 2,400 are too much.
        assert found.rate == 1600
        assert asked == [200, 400, 800, 1600, 3200, 2400]
        assert [rate for rate, _ in found.steps] == [float(rate) for rate in asked]

    def test_lost_records_and_failures_end_it(self) -> None:
        def measured(rate: int) -> Run:
            if rate > 400:
                raise TailraceError("TAILRACE_GENERATOR_TOO_SLOW", "too fast.", "slower.")
            return make_run("stateless", "loop", rate=rate, lost=int(rate > 200))

        assert climb("stateless", "loop", 200, 50, measured).rate == 200
        assert climb("stateless", "loop", 800, 50, measured).rate == 0


class TestRecovery:
    def test_the_outage_ends_with_the_first_new_answer(self) -> None:
        """Killed after 3 s, the system answers again after 8 s what was due meanwhile."""
        latencies = []
        for number in range(2000):
            due = number / 100
            answered = max(due, 8.0 + (due - 3.0) / 10) if due >= 3.0 else due
            latencies.append((due, int((answered - due + 0.002) * 1e6)))
        report = LatencyReport.from_latencies(latencies, expected=2001, duplicates=40, started_ns=0, seconds=20)
        found = recovery_of(Cell("stateless", "loop", 100), report, 3.0)
        assert found.first_row_s == pytest.approx(5.0, abs=0.05)
        assert 5 <= found.caught_up_s <= 6.5
        assert (found.repeated, found.lost) == (40, 1)

    def test_one_that_never_comes_back(self) -> None:
        latencies = [(number / 100, 2000) for number in range(300)]
        report = LatencyReport.from_latencies(latencies, expected=2000, duplicates=0, started_ns=0, seconds=20)
        with pytest.raises(TailraceError) as failure:
            recovery_of(Cell("stateless", "loop", 100), report, 3.0)
        assert failure.value.code == "TAILRACE_BENCH_JOB_FAILED"
