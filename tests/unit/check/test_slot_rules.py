"""The findings about task slots and what takes them, from facts made up for each."""

from __future__ import annotations

from typing import Any

import pytest

from tailrace.check.facts import Facts
from tailrace.check.slots import Holder, Slots
from tailrace.contract.findings import Severity
from tests.unit.check.made_up import CHECKPOINT, STAGE, facts, found, only


def shuffled(tasks: int, *, overlaps: bool = False, **more: Any) -> Facts:
    operators = [{"name": "groupBy().agg()", "stateful": True, "overlaps": overlaps}]
    stage = {"number": 1, "inputs": [0], "sources": [], "operators": operators, "tasks": tasks}
    return facts(stages=[STAGE, stage], **more)


def test_slots_for_one_epoch_but_not_for_two() -> None:
    code = "TAILRACE_NO_SLOTS_TO_OVERLAP"
    assert only(facts(slots=Slots("local[3]", 3)), code, Severity.NOTE).fix.startswith('.master("local[4]")')
    assert code not in found(facts(slots=Slots("local[4]", 4)))
    assert code not in found(facts(slots=Slots("local[3]", 3), settings={"spark.tailrace.epochs.overlap": "off"}))
    assert code not in found(facts(slots=Slots("spark://host:7077", 3)))
    assert code not in found(facts(slots=Slots("local[1]", 1))), "another finding says so"


def test_slots_for_two_epochs_with_a_shuffle() -> None:
    code = "TAILRACE_NO_SLOTS_TO_OVERLAP"
    assert only(shuffled(3, overlaps=True), code, Severity.NOTE).fix.startswith('.master("local[10]")')
    assert code not in found(shuffled(2, overlaps=True))
    assert code not in found(shuffled(3)), "an operator whose epochs do not overlap"


def test_slots_add_up() -> None:
    finding = only(shuffled(200), "TAILRACE_TOO_FEW_SLOTS", Severity.BLOCKING)
    assert "2 + 200 = 202" in finding.detail
    assert 'spark.conf.set("spark.sql.shuffle.partitions", 6)' in finding.fix
    assert set(found(shuffled(6))) == {"TAILRACE_GUARANTEE"}


def test_slots_of_other_queries_count() -> None:
    slots = Slots("local[8]", 8, (Holder("id", "alerts", 5),))
    finding = only(shuffled(4, slots=slots), "TAILRACE_TOO_FEW_SLOTS", Severity.BLOCKING)
    assert "5 by 'alerts'" in finding.detail
    assert "stop another query" in finding.fix


def test_a_checkpoint_decides_the_number_of_partitions() -> None:
    """State is divided into as many as there were."""
    kept = {**CHECKPOINT, "operators": ["stateStoreSave"]}
    settings = {"spark.sql.shuffle.partitions": "9"}
    finding = found(shuffled(9, settings=settings, checkpoint=kept, stateful=True))["TAILRACE_TOO_FEW_SLOTS"]
    assert "shuffle.partitions" not in finding.fix
    assert "shuffle.partitions" in found(shuffled(9, settings=settings))["TAILRACE_TOO_FEW_SLOTS"].fix


def test_slots_that_are_not_known_block_nothing() -> None:
    assert set(found(shuffled(200, slots=Slots("yarn", None), settings={"spark.sql.shuffle.partitions": "200"}))) == {
        "TAILRACE_GUARANTEE"
    }


def test_partitions_that_nobody_has_chosen() -> None:
    finding = only(shuffled(200, slots=Slots("spark://…", 400)), "TAILRACE_DEFAULT_SHUFFLE_PARTITIONS")
    assert "200 tasks" in finding.detail
    chosen = shuffled(200, slots=Slots("spark://…", 400), settings={"spark.sql.shuffle.partitions": "200"})
    assert set(found(chosen)) == {"TAILRACE_GUARANTEE"}


@pytest.mark.parametrize(
    ("key", "code"),
    [("spark.speculation", "TAILRACE_SPECULATION"), ("spark.dynamicAllocation.enabled", "TAILRACE_DYNAMIC_ALLOCATION")],
)
def test_settings_that_spark_refuses_with_a_shuffle(key: str, code: str) -> None:
    cluster = Slots("spark://host:7077", 8)
    assert key in only(facts(settings={key: "true"}, slots=cluster), code).fix
    assert key in only(shuffled(2, settings={key: "true"}, slots=cluster), code, Severity.BLOCKING).fix
    assert code not in found(facts(settings={key: "false"}, slots=cluster))


def test_dynamic_allocation_means_nothing_on_one_machine() -> None:
    assert set(found(shuffled(2, settings={"spark.dynamicAllocation.enabled": "true"}))) == {"TAILRACE_GUARANTEE"}


def test_a_neighbor_that_takes_slots_in_turns() -> None:
    assert "'reports'" in only(shuffled(2, running={"id": "reports"}), "TAILRACE_SHARED_SLOTS").detail
    slots = Slots("local[8]", 8, (Holder("id", "alerts", 2),))
    for fine in (shuffled(2, running={"id": "alerts"}, slots=slots), facts(running={"id": "reports"})):
        assert set(found(fine)) == {"TAILRACE_GUARANTEE"}, "a real-time one is counted; without a shuffle a task waits"
