"""The buckets of durations equal the plugin's: the same test vector checks both."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tailrace.monitor.histogram import highest_us, lowest_us

VECTOR = json.loads((Path(__file__).parents[2] / "buckets.json").read_text())["durations"]


@pytest.mark.parametrize("case", VECTOR, ids=lambda case: str(case["micros"]))
def test_buckets_are_those_of_the_vector(case: dict[str, int]) -> None:
    assert lowest_us(case["bucket"]) == case["lowest_us"]
    assert highest_us(case["bucket"]) == case["highest_us"]
    longest = VECTOR[-1]["highest_us"]
    assert case["lowest_us"] <= min(max(case["micros"], 0), longest) <= case["highest_us"]
