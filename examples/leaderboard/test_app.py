"""The application on real servers: every score counts once."""

from __future__ import annotations

import os

import pytest
from load import totals
from run import measure, servers


def test_each_score_counts_once(monkeypatch: pytest.MonkeyPatch) -> None:
    with servers() as environment:
        for name, value in environment.items():
            monkeypatch.setitem(os.environ, name, value)
        result = measure(seconds=3, rate=50)
    assert (result.at_the_reader.lost, result.at_the_reader.duplicates) == (0, 0)
    assert result.board == totals(result.sent)
