"""The harness end to end: real kills, real counts, and it catches a query that loses and duplicates rows."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path

import pytest

from tailrace import EmbeddedKafka, TailraceError
from tailrace.chaos import ChaosOptions, UsersQuery
from tailrace.chaos.workloads import SINKS
from tests.helpers.chaos_query import run_silently, wrong_query
from tests.helpers.processes import alive, command_line, descendants, tailrace_command
from tests.helpers.processes import tailrace as tailrace_cli
from tests.helpers.topics import produce
from tests.helpers.waiting import until

# Several starts of a driver each, which on a busy machine take a minute.
pytestmark = pytest.mark.timeout(1800)
WORKLOADS = ("stateless", "python", "aggregation", "dedup")


@pytest.mark.parametrize(
    ("faults", "workloads"),
    [
        pytest.param(("driver-kill",), ("python",), id="one query"),
        pytest.param(("driver-kill", "python-worker-kill"), WORKLOADS, id="all queries", marks=pytest.mark.chaos),
    ],
)
def test_kills_lose_nothing_and_write_no_duplicates(faults: tuple[str, ...], workloads: tuple[str, ...]) -> None:
    chosen = [word for fault in faults for word in ("--fault", fault)]
    chosen += [word for workload in workloads for word in ("--workload", workload)]
    how = ("--rounds", str(2 * len(faults) - 1), "--seed", "1", "--sink", "both", "--json")
    ran = tailrace_cli("chaos", *how, *chosen, timeout_s=560)
    assert ran.returncode == 0, ran.stderr
    found = json.loads(ran.stdout)
    assert {each["fault"] for each in found["rounds"]} == set(faults)
    assert found["queries"].keys() == {f"{workload}/{sink}" for workload in workloads for sink in SINKS}
    assert found["guarantees_held"]
    duplicates = dict.fromkeys(SINKS, 0)
    for query, delivery in found["queries"].items():
        assert delivery["sent"] > 1000
        assert (delivery["lost"], delivery["unknown"], delivery["wrong"], delivery["wrong_keys"]) == (0, 0, 0, 0)
        assert delivery["out"] == delivery["due"] + delivery["duplicates"]
        duplicates[query.partition("/")[2]] += delivery["duplicates"]
    # What was in the open epoch when the driver was killed, Spark's own sink writes again.
    assert duplicates["kafka"] > 0
    assert duplicates["tailrace-kafka"] == 0


@pytest.fixture
def yours(kafka: EmbeddedKafka, tmp_path: Path) -> UsersQuery:
    return wrong_query(kafka, tmp_path)


def test_topics_must_be_fresh(yours: UsersQuery) -> None:
    produce(str(yours.cluster), yours.output_topic, [{"payment": 1}])
    with pytest.raises(TailraceError) as failure:
        run_silently(ChaosOptions(rounds=1, yours=yours))
    assert failure.value.code == "TAILRACE_TOPIC_NOT_FRESH"


@pytest.mark.parametrize(
    ("sign", "code"),
    [
        # As it cleans up here, so do `demo` and `bench`, with tests of their own.
        pytest.param(signal.SIGINT, 130, marks=pytest.mark.chaos),
        pytest.param(signal.SIGTERM, 130, marks=pytest.mark.chaos),
        (signal.SIGKILL, -9),
    ],
)
def test_nothing_is_left_behind(sign: signal.Signals, code: int, tmp_path: Path) -> None:
    harness = subprocess.Popen(
        tailrace_command("chaos", "--workload", "stateless", "--rounds", "9"),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "TMPDIR": str(tmp_path)},
    )

    def all_processes() -> list[int] | None:
        """The driver, once it has a JVM, and the broker."""
        drivers = [pid for pid in descendants(harness.pid) if "tailrace.chaos._app" in command_line(pid)]
        return list(descendants(harness.pid)) if drivers and descendants(drivers[0]) else None

    started = until(all_processes, "broker and driver")
    harness.send_signal(sign)
    assert harness.wait(timeout=300) == code
    until(lambda: not any(alive(pid) for pid in started), "all its processes are gone")
    until(lambda: not list(tmp_path.glob("tailrace-*")), "its data is gone")


@pytest.mark.chaos
def test_a_killed_run_is_continued(tmp_path: Path) -> None:
    """SIGKILL when one of two pieces is done: the other one is left."""
    folder = tmp_path / "run"
    how = ("--rounds", "2", "--piece", "1", "--workload", "stateless", "--fault", "query-stop", "--resume", str(folder))
    harness = subprocess.Popen(
        tailrace_command("chaos", *how),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "TMPDIR": str(tmp_path)},
    )

    def pieces() -> list[dict[str, object]]:
        state = folder / "state.json"
        return json.loads(state.read_text())["pieces"] if state.exists() else []

    first = until(pieces, "the first piece is saved", within_s=240)
    harness.kill()
    harness.wait()
    assert len(first) == 1, "the second takes longer than it takes to see the first"
    ran = tailrace_cli("chaos", "--resume", str(folder), "--json", timeout_s=300)
    assert ran.returncode == 0, ran.stderr
    found = json.loads(ran.stdout)
    assert found["guarantees_held"]
    assert [each["seed"] for each in found["pieces"]] == [7, 8]
    assert len(found["rounds"]) == 2
    assert pieces()[0] == first[0], "it was not run again"
    assert found["queries"]["stateless/kafka"]["sent"] == sum(
        piece["tallies"]["stateless/kafka"]["counts"]["sent"]  # type: ignore[index]
        for piece in pieces()
    )
    assert "query-stop | 2 |" in (folder / "summary.md").read_text()
