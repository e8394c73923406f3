"""The features by hand, and the application on real servers: each event counts once."""

from __future__ import annotations

import json
import os

import pytest
from app import HALF_LIFE_MS, LAST_ITEMS, decayed
from load import USERS, item_of, user_of
from run import measure, servers
from service import OFFERS, rank


def test_interest_decays_and_ranks() -> None:
    assert decayed(4.0, HALF_LIFE_MS) == 2.0
    ranked = rank({"books": 1.0, "audio": 3.0}, last_items=["piano"])
    assert ranked[:3] == ["headphones", "atlas", "novel"]
    assert ranked[-1] == "piano"
    assert sorted(ranked) == sorted(OFFERS)


def test_each_event_counts_once(monkeypatch: pytest.MonkeyPatch) -> None:
    with servers() as environment:
        for name, value in environment.items():
            monkeypatch.setitem(os.environ, name, value)
        result = measure(seconds=3, rate=50)
    assert (result.staleness.lost, result.staleness.duplicates) == (0, 0)
    for place in range(USERS):
        numbers = range(place, result.sent, USERS)
        features = result.features[user_of(place)]
        assert int(features["events"]) == len(numbers)
        assert int(features["event"]) == numbers[-1]
        items = [item_of(number) for number in numbers]
        assert json.loads(features["last_items"]) == items[::-1][:LAST_ITEMS]
        interests = json.loads(features["interests"])
        assert interests.keys() == {OFFERS[item] for item in items}
        # The run is much shorter than the half-life.
        assert 0.5 * len(items) < sum(interests.values()) <= len(items)
