"""Chaos runs that take minutes: stateful queries, a wrong query, every fault."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tailrace import EmbeddedKafka
from tailrace.chaos import ChaosOptions, UsersQuery
from tailrace.chaos.faults import FAULTS
from tailrace.chaos.workloads import PARTNER
from tests.helpers.chaos_query import run_silently, wrong_query
from tests.helpers.processes import tailrace as tailrace_cli

# Several starts of a driver each, which on a busy machine take a minute.
pytestmark = pytest.mark.timeout(600)


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
    for delivery in found["queries"].values():
        assert (delivery["lost"], delivery["unknown"], delivery["wrong"], delivery["wrong_keys"]) == (0, 0, 0, 0)
        assert delivery["out"] == delivery["due"] + delivery["duplicates"]
    for join in (found["queries"]["join/kafka"], found["queries"]["join/tailrace-kafka"]):
        assert join["due"] == join["sent"] - PARTNER
    assert found["queries"]["processor/kafka"]["duplicates"] > 0
    for query in once:
        assert (found["queries"][query]["duplicates"], found["queries"][query]["regressions"]) == (0, 0), query


@pytest.fixture
def yours(kafka: EmbeddedKafka, tmp_path: Path) -> UsersQuery:
    return wrong_query(kafka, tmp_path)


def test_a_query_that_loses_and_doubles_rows_is_caught(yours: UsersQuery) -> None:
    topics = (
        "--bootstrap-servers",
        str(yours.cluster),
        "--input",
        yours.input_topic,
        "--output",
        yours.output_topic,
    )
    records = ("--id-field", yours.id_field, "--record", yours.template, "--exactly-once")
    how = ("--rounds", "1", "--fault", "driver-kill", "--patience", "8", "--json")
    ran = tailrace_cli("chaos", *topics, *records, *how, str(yours.script), *yours.arguments, timeout_s=560)
    assert ran.returncode == 1, ran.stderr
    assert "TAILRACE_GUARANTEE_BROKEN" in ran.stderr
    found = json.loads(ran.stdout)
    assert not found["guarantees_held"]
    delivery = found["queries"]["yours"]
    assert delivery["lost"] == len(range(17, delivery["sent"], 100))
    assert delivery["examples"]["lost"] == [17, 117, 217, 317, 417]
    assert delivery["duplicates"] >= len(range(18, delivery["sent"], 100))
    assert delivery["unknown"] == 0
    assert {text.split(":")[0].split(" ", 1)[1] for text in delivery["broken"]} == {"lost", "duplicates"}


def test_wrong_values_of_a_users_query_are_caught(kafka: EmbeddedKafka, tmp_path: Path) -> None:
    """Every record is answered, but after the kill with another value than in the references."""
    stale = wrong_query(kafka, tmp_path, "stale")
    result = run_silently(ChaosOptions(rounds=1, faults=("driver-kill",), patience_s=30, yours=stale))
    tally = result.queries["yours"]
    assert "the values of" in tally.reference
    assert (tally.counts.lost, tally.counts.unknown, tally.counts.out_of_order) == (0, 0, 0)
    assert tally.counts.wrong
    assert tally.counts.keys == 20


@pytest.mark.timeout(1500)
def test_every_fault_once() -> None:
    rounds = sum(fault.kind.weight for fault in FAULTS.values())
    result = run_silently(ChaosOptions(rounds=rounds, seed=7))
    assert result.broken() == {}
    assert {each.planned.fault for each in result.rounds} | result.unavailable.keys() == FAULTS.keys()
