"""What changes for a micro-batch query, from facts made up for it."""

from __future__ import annotations

from typing import Any

import pytest

from tailrace.check.rules import migration
from tailrace.contract.findings import Finding, Severity
from tests.unit.check.made_up import CHECKPOINT, facts, only


def changes_for(**more: Any) -> dict[str, Finding]:
    writer = {"trigger": {"interval_ms": 1000}, **more.pop("writer", {})}
    return {finding.title: finding for finding in migration.changes(facts(writer=writer, **more))}


def test_what_changes_for_a_micro_batch_query() -> None:
    changes = changes_for(batch_ms=400, checkpoint={**CHECKPOINT, "epoch": 3, "commit_version": "v2"})
    assert 'processingTime="1 second"' in changes["trigger"].detail
    assert 'realTime="5 minutes"' in changes["trigger"].fix
    assert "output mode" not in changes
    assert "400 ms" in changes["latency"].detail
    assert "can be kept" in changes["checkpoint"].detail
    assert "2 slots" in changes["task slots"].detail
    assert "up to 5 minutes" in changes["duplicates"].detail
    assert list(migration.changes(facts())) == []


@pytest.mark.parametrize(
    ("mode", "state", "told"),
    [
        ("append", [], "the rows stay the same"),
        ("append", [{"name": "aggregation", "bounded": True}], "instead of one final row"),
        ("complete", [{"name": "aggregation", "bounded": False}], "instead of the whole result"),
    ],
)
def test_what_another_output_mode_means(mode: str, state: list[Any], told: str) -> None:
    assert told in changes_for(writer={"output_mode": mode}, state=state)["output mode"].detail


def test_a_checkpoint_that_cannot_be_kept() -> None:
    kept = {
        **CHECKPOINT,
        "exists": True,
        "epoch": 3,
        "commit_version": "v1",
        "offsets": [{"payments": {"0": 7, "1": 9}}],
    }
    finding = only(facts(checkpoint=kept), "TAILRACE_CHECKPOINT_FORMAT", Severity.BLOCKING)
    assert """.option("startingOffsets", '{"payments":{"0":7,"1":9}}')""" in finding.fix
    assert "cannot be kept" in changes_for(checkpoint=kept)["checkpoint"].detail
