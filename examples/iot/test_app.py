"""The application on a real broker: every fault is found, and each alert and command is sent once."""

from __future__ import annotations

import os

import pytest
from load import DEVICES, PERIOD, STOP, is_alert, is_command
from run import measure, servers


def test_each_fault_is_answered_once(monkeypatch: pytest.MonkeyPatch) -> None:
    with servers() as environment:
        for name, value in environment.items():
            monkeypatch.setitem(os.environ, name, value)
        result = measure(seconds=3, rate=200)
    assert result.commands.received > 0
    assert (result.commands.lost, result.commands.duplicates) == (0, 0)
    assert sorted(result.alerted) == list(filter(is_alert, range(result.sent)))
    assert sorted(result.commanded) == [
        (number, "stop" if number // DEVICES % PERIOD == STOP else "resume")
        for number in filter(is_command, range(result.sent))
    ]
