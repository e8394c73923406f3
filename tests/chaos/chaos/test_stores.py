"""Chaos against the sinks of stores: their servers are killed, stopped and cut off, and so is the driver."""

from __future__ import annotations

import json

import pytest

from tailrace.chaos.workloads import STORES
from tests.helpers.processes import tailrace as tailrace_cli

FAULTS = ("store-kill", "store-restart", "store-stop", "store-network-cut", "driver-kill", "query-stop")
WORKLOADS = ("stateless", "python", "aggregation", "extremes")


@pytest.mark.timeout(3000)
@pytest.mark.parametrize("store", STORES)
def test_nothing_is_lost_duplicated_or_steps_back(store: str) -> None:
    chosen = [word for fault in FAULTS for word in ("--fault", fault)]
    chosen += [word for workload in WORKLOADS for word in ("--workload", workload)]
    ran = tailrace_cli("chaos", "--rounds", "8", "--seed", "1", "--sink", store, "--json", *chosen, timeout_s=2900)
    assert ran.returncode == 0, ran.stderr
    found = json.loads(ran.stdout)
    assert found["guarantees_held"]
    assert found["queries"].keys() == {f"{workload}/{store}" for workload in WORKLOADS}
    assert "store-kill" in {each["fault"] for each in found["rounds"]}
    for delivery in found["queries"].values():
        assert delivery["promise"] == "exactly once"
        assert (delivery["lost"], delivery["duplicates"], delivery["unknown"], delivery["wrong"]) == (0, 0, 0, 0)
        assert (delivery["regressions"], delivery["wrong_keys"]) == (0, 0)
        assert delivery["out"] > 500
