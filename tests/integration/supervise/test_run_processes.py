"""The supervisor and real processes, without Spark: lives, signals, exit codes, output."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from tailrace.cli.main import app
from tailrace.contract.codec import to_json
from tests.helpers.processes import alive, descendants
from tests.helpers.supervised import SPARK_SUBMIT, SupervisedRun
from tests.helpers.synthetic_monitor import SyntheticMonitor, make_query
from tests.helpers.tree import ROOT
from tests.helpers.waiting import until

SOON_S = 300
BAD_RECORD = ROOT / "tests" / "unit" / "supervise" / "failures" / "bad-record.txt"

Start = Callable[..., SupervisedRun]


@pytest.fixture
def lives(tmp_path: Path) -> Callable[[], list[list[str]]]:
    """What spark-submit was given, each time."""
    return lambda: [json.loads(line) for line in (tmp_path / "lives").read_text().splitlines()]


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    submit = tmp_path / "spark" / "bin" / "spark-submit"
    submit.parent.mkdir(parents=True)
    submit.write_text(SPARK_SUBMIT)
    submit.chmod(0o755)
    return {"SPARK_HOME": str(tmp_path / "spark"), "LIVES": str(tmp_path / "lives")}


@pytest.fixture
def start(tmp_path: Path, environment: dict[str, str]) -> Start:
    def run(script: str, *options: str, arguments: tuple[str, ...] = ()) -> SupervisedRun:
        (tmp_path / "app.py").write_text(script)
        return SupervisedRun(*options, str(tmp_path / "app.py"), *arguments, folder=tmp_path, env=environment)

    return run


def test_arguments_and_output_pass_through(start: Start, lives: Any) -> None:
    script = """
import os, sys
print(sys.argv[1:], "TAILRACE_RUN_FOLDER" in os.environ)
print("to standard error", file=sys.stderr)
"""
    options = ("--master", "local[4]", "--restarts", "1", "--conf", "spark.a=b c", "--of-tomorrow", "yes")
    with start(script, *options, arguments=("--restarts", "x y")) as run:
        assert run.ends(within_s=SOON_S) == 0
        assert run.printed == "['--restarts', 'x y'] True\nto standard error\n"
        assert "this is Spark's log" in run.log.read_text()
        assert "this is Spark's log" not in run.said
        assert run.reports() == []
    (given,) = lives()
    assert given[:6] == ["--master", "local[4]", "--conf", "spark.a=b c", "--of-tomorrow", "yes"]
    assert given[6:8] == ["--driver-java-options", "-XX:+UseParallelGC"]
    assert given[9:] == ["--restarts", "x y"]


def test_what_a_restart_cannot_cure_ends_the_run(start: Start, lives: Any) -> None:
    with start("import not_there", "--conf", "spark.my.password=geheim") as run:
        assert run.ends(within_s=SOON_S) == 3
        (report,) = run.reports()
        assert report["code"] == "PROGRAM_ERROR"
        assert "not_there" in report["problem"]
        (page,) = run.incidents.glob("*.md")
        assert str(page) in run.said
        assert "not_there" in page.read_text()
        assert "geheim" not in page.read_text() + json.dumps(report) + run.said
    assert len(lives()) == 1


def test_a_record_that_fails_twice_ends_the_run(start: Start, lives: Any) -> None:
    """By what Spark printed of it; `make chaos` has a real query that fails."""
    script = f"import sys; sys.stderr.write(open({str(BAD_RECORD)!r}).read()); raise SystemExit(1)"
    with start(script) as run:
        assert run.ends(within_s=SOON_S) == 3
        first, second = run.reports()
        assert "restart 1 of 10" in first["next_step"]
        assert "same record" in second["next_step"]
        for report in (first, second):
            (place,) = report["records"]
            assert (place["first"], place["last"]) == (7, 7)
    assert len(lives()) == 2


def test_the_limit_of_restarts(start: Start, lives: Any) -> None:
    with start("raise SystemExit(7)", "--restarts", "2") as run:
        assert run.ends(within_s=SOON_S) == 4
        assert [report["exit_code"] for report in run.reports()] == [7, 7, 7]
        assert "restart 2 of 2" in run.reports()[1]["next_step"]
    assert len(lives()) == 3


def test_a_killed_application_is_started_again(start: Start, lives: Any) -> None:
    script = """
import os, signal
if len(open(os.environ["LIVES"]).readlines()) == 1:
    os.kill(os.getpid(), signal.SIGKILL)
print("well")
"""
    with start(script) as run:
        assert run.ends(within_s=SOON_S) == 0
        assert run.printed == "well\n"
        assert [report["code"] for report in run.reports()] == ["KILLED"]
    assert len(lives()) == 2


def test_health_answers_while_nothing_runs(start: Start) -> None:
    with start("raise SystemExit(7)", "--backoff", "600", "--backoff-limit", "600") as run:
        until(lambda: run.state() == "waiting to restart", "it waits")
        code, health = run.ask()
        assert code == 200
        assert health["restarts"] == {"used": 1, "limit": 10, "total": 1}
        assert health["last_incident"]["code"] == "UNKNOWN"
        assert run.ask("ready")[0] == 503
        run.process.send_signal(signal.SIGTERM)
        assert run.ends(within_s=SOON_S) == 143, "nothing was running that could be drained"


STUBBORN = """
import os, signal, subprocess, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(3600)"])
print(os.getpid(), child.pid, flush=True)
time.sleep(3600)
"""


@pytest.mark.parametrize(("sign", "code"), [(signal.SIGTERM, 0), (signal.SIGKILL, -9)])
def test_nothing_outlives_the_supervisor(start: Start, sign: signal.Signals, code: int) -> None:
    with start(STUBBORN) as run:
        pids = until(lambda: [int(pid) for pid in run.printed.split()], "two processes")
        started = descendants(run.process.pid)
        assert set(pids) < started, "and a guard"
        run.process.send_signal(sign)
        assert run.ends(within_s=SOON_S) == code
        until(lambda: not [pid for pid in started if alive(pid)], "nothing is left")


def test_a_guard_that_is_killed_leaves_nothing(start: Start) -> None:
    with start(STUBBORN, "--restarts", "0") as run:
        pids = until(lambda: [int(pid) for pid in run.printed.split()], "two processes")
        (guard,) = descendants(run.process.pid) - set(pids)
        os.kill(guard, signal.SIGKILL)
        assert run.ends(within_s=SOON_S) == 4
        until(lambda: not [pid for pid in pids if alive(pid)], "nothing is left")


# The dashboard of an application that does not get done.
HANGS = """
import http.server, json, os, pathlib, time
class Hangs(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        print("asked to drain", flush=True)
        time.sleep(3600)
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Hangs)
note = {"url": f"http://127.0.0.1:{server.server_address[1]}/", "token": "geheim"}
pathlib.Path(os.environ["TAILRACE_RUN_FOLDER"], "dashboard.json").write_text(json.dumps(note))
print("serves", flush=True)
server.serve_forever()
"""


def test_a_drain_that_takes_too_long(start: Start) -> None:
    with start(HANGS, "--drain-timeout", "0.1") as run:
        until(lambda: "serves" in run.printed, "it serves")
        run.process.send_signal(signal.SIGTERM)
        assert run.ends(within_s=SOON_S) == 5
        (report,) = run.reports()
        assert report["code"] == "TAILRACE_DRAIN_TIMEOUT"


@pytest.mark.parametrize(("sign", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_the_second_signal_stops_at_once(start: Start, sign: signal.Signals, code: int) -> None:
    with start(HANGS, "--drain-timeout", "600") as run:
        until(lambda: "serves" in run.printed, "it serves")
        run.process.send_signal(sign)
        until(lambda: "asked to drain" in run.printed, "it is asked to drain")
        assert run.state() == "draining"
        run.process.send_signal(sign)
        assert run.ends(within_s=SOON_S) == code


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        ((), 2, "Missing argument"),
        (("--master", "local"), 2, "Missing argument"),
        (("nowhere.py",), 2, "nowhere.py"),
        (("--restarts", "many", "app.py"), 2, "--restarts"),
        (("README.md",), 2, "not a Python script"),
        (("--deploy-mode", "cluster", "tests/__init__.py"), 1, "TAILRACE_NOT_SUPERVISED"),
    ],
)
def test_usage(arguments: tuple[str, ...], code: int, says: str) -> None:
    done = CliRunner().invoke(app, ["run", *arguments])
    assert done.exit_code == code
    assert says in f"{done.output} {done.exception}"


def test_a_report_folder_that_cannot_be_written(start: Start, unwritable_folder: Path) -> None:
    with start("import not_there", "--incidents", str(unwritable_folder)) as run:
        assert run.ends(within_s=SOON_S) == 3
        assert "No incident report" in run.said


ANSWERS_UNTIL_TOLD = """
import http.server, json, os, pathlib, time
class Dashboard(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        if os.path.exists(os.environ["LIVES"] + ".silent"):
            time.sleep(3600)
        body = SNAPSHOT
        self.send_response(200)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def log_message(self, *_): pass
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Dashboard)
note = {"url": f"http://127.0.0.1:{server.server_address[1]}/", "token": "geheim"}
pathlib.Path(os.environ["TAILRACE_RUN_FOLDER"], "dashboard.json").write_text(json.dumps(note))
server.serve_forever()
""".replace("SNAPSHOT", repr(to_json(SyntheticMonitor(make_query("scores")).snapshot()).encode()))


def test_an_application_that_does_not_answer_is_not_ready(start: Start, tmp_path: Path) -> None:
    with start(ANSWERS_UNTIL_TOLD) as run:
        until(lambda: run.ask("ready")[0] == 200, "it is ready")
        (tmp_path / "lives.silent").touch()
        until(lambda: run.ask("ready")[0] == 503, "it is not ready")
        code, health = run.ask()
        assert (code, health["application"]["status"]) == (200, "no answer")
