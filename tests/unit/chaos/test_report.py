"""The report of a run: a table for each sink, a verdict for each query."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from rich.console import Console

from tailrace.chaos import ChaosOptions, ChaosResult, report
from tailrace.chaos.delivery import Delivery
from tailrace.chaos.result import PieceResult, Round, Tally
from tailrace.chaos.schedule import Planned

OPTIONS = ChaosOptions(sinks=("kafka", "tailrace-kafka"), epoch_s=5)


@pytest.fixture
def result() -> ChaosResult:
    """The same duplicates under both sinks, of which one promises none."""
    rounds = [
        Round(Planned(number, fault, 1.0, 0.0, 0.5), dict.fromkeys(OPTIONS.queries, seconds), steps, 2, False)
        for number, fault, seconds, steps in (
            (1, "driver-kill", 20.0, {"process": 0.5, "session": 8.0, "queries": 14.0}),
            (2, "driver-kill", 30.0, {"process": 0.7, "session": 10.0, "queries": 16.0}),
            (3, "broker-stop", 1.0, {}),
        )
    ]
    delivery = Delivery(1000, 1000, 1003, duplicates=[7, 8, 9], out_of_order=[])
    tallies = {query: Tally.of(delivery, OPTIONS.promise_of(query)) for query in OPTIONS.queries}
    piece = PieceResult(OPTIONS, rounds, tallies, {"executor-kill": "no cluster"}, 100.0, Path("chaos.log"))
    return ChaosResult(OPTIONS, [piece])


def test_the_verdict_depends_on_the_promise(result: ChaosResult) -> None:
    assert result.broken().keys() == {query for query in OPTIONS.queries if query.endswith("/tailrace-kafka")}
    assert not report.to_dict(result)["guarantees_held"]


def test_it_fits_a_narrow_terminal(result: ChaosResult) -> None:
    printed = io.StringIO()
    report.show(result, Console(file=printed, width=80))
    text = printed.getvalue()
    assert "…" not in text.replace("9 …", "")
    assert "tailrace-kafka, exactly once" in text
    assert "dedup/tailrace-kafka: 3 duplicates: 7, 8, 9" in text
    assert "20.0 / 30.0" in text


def test_the_dictionary_has_counts_and_examples(result: ChaosResult) -> None:
    found = report.to_dict(result)
    delivery = found["queries"]["stateless/kafka"]
    assert (delivery["lost"], delivery["duplicates"], delivery["examples"]) == (0, 3, {"duplicates": [7, 8, 9]})
    assert delivery["promise"] == "at least once"
    assert found["start_s"] == {"process": 0.6, "session": 9.0, "queries": 15.0}
    assert [each["fault"] for each in found["rounds"]] == ["driver-kill", "driver-kill", "broker-stop"]
    assert found["unavailable"] == {"executor-kill": "no cluster"}


def test_a_run_without_a_fault(result: ChaosResult) -> None:
    calm = ChaosResult(OPTIONS, [PieceResult(OPTIONS, [], result.queries, {}, 10.0, Path("chaos.log"))])
    report.show(calm, Console(file=io.StringIO()))
    assert report.to_dict(calm)["start_s"] == {}


def test_a_failure_says_how_to_repeat_it(result: ChaosResult) -> None:
    printed = io.StringIO()
    report.show(result, Console(file=printed, width=80))
    command = "tailrace chaos --rounds 20 --seed 7 --epoch 5 --sink both --workload stateless --workload python"
    assert command in printed.getvalue()
    assert report.to_dict(result)["pieces"][0]["repeat"].startswith(command)
