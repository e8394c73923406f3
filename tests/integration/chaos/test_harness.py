"""The harness from end to end: real kills, real books, and a query that loses and doubles rows, which is caught."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import textwrap
from pathlib import Path

import pytest
from rich.console import Console

from tailrace import EmbeddedKafka, TailraceError
from tailrace.chaos import ChaosOptions, ChaosResult, ChaosView, UsersQuery, run_chaos
from tailrace.chaos.faults import FAULTS
from tailrace.chaos.workloads import PARTNER, SINKS
from tests.helpers.processes import alive, command_line, descendants, tailrace_command
from tests.helpers.processes import tailrace as tailrace_cli
from tests.helpers.topics import new_topic, produce
from tests.helpers.waiting import until

# Several starts of a driver each, which on a busy machine take a minute.
pytestmark = pytest.mark.timeout(600)
WORKLOADS = ("stateless", "python", "aggregation", "dedup")


@pytest.mark.parametrize(
    ("rounds", "workloads"),
    [
        pytest.param(2, ("python", "aggregation"), id="two queries"),
        pytest.param(3, WORKLOADS, id="all queries", marks=pytest.mark.chaos),
    ],
)
def test_kills_lose_nothing_and_write_nothing_twice(rounds: int, workloads: tuple[str, ...]) -> None:
    faults = ("--fault", "driver-kill", "--fault", "python-worker-kill")
    chosen = [word for workload in workloads for word in ("--workload", workload)]
    how = ("--rounds", str(rounds), "--seed", "1", "--sink", "both", "--json")
    ran = tailrace_cli("chaos", *how, *faults, *chosen, timeout_s=560)
    assert ran.returncode == 0, ran.stderr
    found = json.loads(ran.stdout)
    assert {each["fault"] for each in found["rounds"]} == {"driver-kill", "python-worker-kill"}
    assert found["queries"].keys() == {f"{workload}/{sink}" for workload in workloads for sink in SINKS}
    assert found["balanced"]
    twice = dict.fromkeys(SINKS, 0)
    for query, books in found["queries"].items():
        assert books["sent"] > 1000
        assert (books["lost"], books["unknown"], books["wrong"], books["wrong_keys"]) == (0, 0, 0, 0)
        assert books["out"] == books["due"] + books["twice"]
        twice[query.partition("/")[2]] += books["twice"]
    # What was in the open epoch when the driver was killed, Spark's own sink writes again.
    assert twice["kafka"] > 0
    assert twice["tailrace-kafka"] == 0


@pytest.mark.chaos
def test_kills_of_a_processor_a_session_and_a_join() -> None:
    """They are asked for by name."""
    workloads = ("--workload", "processor", "--workload", "session", "--workload", "join")
    faults = ("--fault", "driver-kill", "--fault", "python-worker-kill")
    ran = tailrace_cli(
        "chaos", "--rounds", "3", "--seed", "1", "--sink", "both", *workloads, *faults, "--json", timeout_s=560
    )
    assert ran.returncode == 0, ran.stderr
    found = json.loads(ran.stdout)
    once = {"processor/tailrace-kafka", "session/tailrace-kafka", "join/tailrace-kafka"}
    assert found["queries"].keys() == {"processor/kafka", "session/kafka", "join/kafka", *once}
    for books in found["queries"].values():
        assert (books["lost"], books["unknown"], books["wrong"], books["wrong_keys"]) == (0, 0, 0, 0)
        assert books["out"] == books["due"] + books["twice"]
    for join in (found["queries"]["join/kafka"], found["queries"]["join/tailrace-kafka"]):
        assert join["due"] == join["sent"] - PARTNER
    assert found["queries"]["processor/kafka"]["twice"] > 0
    for query in once:
        assert (found["queries"][query]["twice"], found["queries"][query]["stepped_back"]) == (0, 0), query


# Between topics of the user's, from a checkpoint; the query is right or wrong as its last argument says.
SCRIPT = """
import sys
from pyspark.sql import SparkSession, functions as F
import tailrace

servers, source, target, checkpoint, what = sys.argv[1:]
spark = tailrace.configure(SparkSession.builder.master("local[4]").config("spark.ui.enabled", "false")).getOrCreate()
rows = (
    spark.readStream.format("kafka").option("kafka.bootstrap.servers", servers).option("subscribe", source)
    .option("startingOffsets", "earliest").load()
    .select(F.from_json(F.col("value").cast("string"), "payment LONG, card STRING").alias("row")).select("row.*")
)
if what == "wrong":
    rows = rows.where("payment % 100 != 17")
    twice = F.when(F.col("payment") % 100 == 18, F.array(F.lit(1), F.lit(2))).otherwise(F.array(F.lit(1)))
    rows = rows.select("*", F.explode(twice)).drop("col")
query = (
    rows.select(F.col("card").alias("key"), F.to_json(F.struct("*")).alias("value"))
    .writeStream.format("kafka").option("kafka.bootstrap.servers", servers).option("topic", target)
    .option("checkpointLocation", checkpoint).outputMode("update").trigger(realTime="5 seconds").start()
)
query.awaitTermination()
"""


@pytest.fixture
def yours(kafka: EmbeddedKafka, tmp_path: Path) -> UsersQuery:
    script = tmp_path / "app.py"
    script.write_text(textwrap.dedent(SCRIPT))
    source, target = (new_topic(kafka.bootstrap_servers, name) for name in ("in", "out"))
    return UsersQuery(
        script,
        (kafka.bootstrap_servers, source, target, str(tmp_path / "checkpoint"), "wrong"),
        kafka.bootstrap_servers,
        source,
        target,
        id_field="payment",
        template='{"payment": $id, "card": "$key"}',
    )


def run(options: ChaosOptions) -> ChaosResult:
    return run_chaos(options, ChaosView(Console(file=io.StringIO())))


@pytest.mark.chaos
def test_a_query_that_loses_and_doubles_rows_is_caught(yours: UsersQuery) -> None:
    topics = (
        "--bootstrap-servers",
        yours.bootstrap_servers,
        "--input",
        yours.input_topic,
        "--output",
        yours.output_topic,
    )
    records = ("--id-field", yours.id_field, "--record", yours.template, "--exactly-once")
    how = ("--rounds", "1", "--fault", "driver-kill", "--patience", "8", "--json")
    ran = tailrace_cli("chaos", *topics, *records, *how, str(yours.script), *yours.arguments, timeout_s=560)
    assert ran.returncode == 1, ran.stderr
    assert "TAILRACE_BOOKS_DO_NOT_BALANCE" in ran.stderr
    found = json.loads(ran.stdout)
    assert not found["balanced"]
    books = found["queries"]["yours"]
    assert books["lost"] == len(range(17, books["sent"], 100))
    assert books["examples"]["lost"] == [17, 117, 217, 317, 417]
    assert books["twice"] >= len(range(18, books["sent"], 100))
    assert books["unknown"] == 0
    assert {text.split(":")[0].split(" ", 1)[1] for text in books["broken"]} == {"lost", "written twice"}


def test_topics_must_be_fresh(yours: UsersQuery) -> None:
    produce(yours.bootstrap_servers, yours.output_topic, [{"payment": 1}])
    with pytest.raises(TailraceError) as failure:
        run(ChaosOptions(rounds=1, yours=yours))
    assert failure.value.code == "TAILRACE_TOPIC_NOT_FRESH"


@pytest.mark.parametrize(
    ("sign", "code"),
    [
        pytest.param(signal.SIGINT, 130, marks=pytest.mark.chaos),  # the same way as the next
        (signal.SIGTERM, 130),
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

    started = until(all_processes, "broker and driver", within_s=90)
    harness.send_signal(sign)
    assert harness.wait(timeout=60) == code
    until(lambda: not any(alive(pid) for pid in started), "all its processes are gone", within_s=60)
    until(lambda: not list(tmp_path.glob("tailrace-*")), "its data is gone", within_s=90)


@pytest.mark.chaos
@pytest.mark.timeout(1500)
def test_every_fault_once() -> None:
    rounds = sum(fault.kind.weight for fault in FAULTS.values())
    result = run(ChaosOptions(rounds=rounds, seed=7))
    assert result.broken() == {}
    assert {each.planned.fault for each in result.rounds} | result.left_out.keys() == FAULTS.keys()
