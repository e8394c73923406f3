"""The application on real servers: every payment is decided once, by the right figures."""

from __future__ import annotations

import os
from collections import defaultdict

import pytest
from app import MINUTE_MS
from load import is_stolen, payment
from run import measure, servers


def test_each_payment_is_decided_once(monkeypatch: pytest.MonkeyPatch) -> None:
    with servers() as environment:
        for name, value in environment.items():
            monkeypatch.setitem(os.environ, name, value)
        result = measure(seconds=3, rate=50)
    assert (result.at_the_reader.lost, result.at_the_reader.duplicates, result.written_again) == (0, 0, 0)

    numbers = [number for number, *_ in result.decisions]
    assert numbers == list(range(len(numbers))), "a payment has no decision"
    earlier: defaultdict[str, list[int]] = defaultdict(list)
    for number, at_ms, payments, decision in result.decisions:
        times = earlier[payment(number)["card"]]
        times.append(at_ms)
        assert payments == sum(at_ms - MINUTE_MS < time_ms for time_ms in times)
        assert decision == ("decline" if is_stolen(number) else "approve")
